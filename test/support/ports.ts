// Ports where nothing listens.

/** Below the range from which the system gives ports to all other tests, and from which tests give public ports to tunnels. */
const FIRST_PORT = 10_000
const PORTS = 10_000

/**
 * Returns a port that was free a moment ago, and that the system gives to nobody who asks for any. No other test gets it from
 * here as long as this process runs: each port has a unix socket without a file that stands for it.
 */
export function freePort(): number {
  const socket = { data() {} }
  for (;;) {
    const port = FIRST_PORT + Math.floor(Math.random() * PORTS)
    try {
      if (process.platform === 'linux') Bun.listen({ unix: `\0localtunnels-test-${port}`, socket }).unref()
      Bun.listen({ hostname: '127.0.0.1', port, socket }).stop(true)
      return port
    } catch {
      // It is another test's, or something listens there: another one is tried.
    }
  }
}
