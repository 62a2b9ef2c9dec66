// Ports where nothing listens.

/** Below the range from which the system gives ports to all other tests, and from which tests give public ports to tunnels. */
const FIRST_PORT = 10_000
const PORTS = 10_000

/** Returns a port that was free a moment ago, and that the system gives to nobody who asks for any. */
export function freePort(): number {
  for (;;) {
    const port = FIRST_PORT + Math.floor(Math.random() * PORTS)
    try {
      Bun.listen({ hostname: '127.0.0.1', port, socket: { data() {} } }).stop(true)
      return port
    } catch {
      // Something listens there: another one is tried.
    }
  }
}
