// Free ports, and waiting until somebody answers on one.

import type { Endpoint } from '../peers/peer.ts'
import { START_DEADLINE_MS } from './children.ts'

/** A port that was free a moment ago. Somebody else may take it in between; then the start fails and says so. */
export function freePort(): number {
  const listener = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
  const { port } = listener
  listener.stop(true)
  return port
}

/** Resolves when the port accepts connections. Polls: a foreign program has no event to wait for. */
export async function listening(port: number, deadlineMs = 10_000): Promise<void> {
  const deadline = performance.now() + deadlineMs
  for (;;) {
    try {
      const socket = await Bun.connect({ hostname: '127.0.0.1', port, socket: { data() {} } })
      socket.terminate()
      return
    } catch (error) {
      if (performance.now() > deadline) throw new Error(`nothing listens on ${port}`, { cause: error })
      await Bun.sleep(2)
    }
  }
}

/** Resolves when a GET through the endpoint answers 200. */
export async function answering(
  endpoint: Endpoint,
  path: string,
  deadlineMs: number = START_DEADLINE_MS,
): Promise<void> {
  const deadline = performance.now() + deadlineMs
  let last = 'no answer'
  for (;;) {
    try {
      const response = await request(endpoint, path)
      await response.arrayBuffer()
      if (response.status === 200) return
      last = `status ${response.status}`
    } catch (error) {
      last = error instanceof Error ? error.message : String(error)
    }
    if (performance.now() > deadline) throw new Error(`${endpoint.hostHeader} does not answer: ${last}`)
    await Bun.sleep(2)
  }
}

/** Far more than any of these small requests takes: a tunnel that hangs is found out soon. */
const REQUEST_TIMEOUT_MS = 5_000

/** One request through an endpoint. */
export function request(endpoint: Endpoint, path: string, init: RequestInit = {}): Promise<Response> {
  return fetch(`${endpoint.tls ? 'https' : 'http'}://${endpoint.host}:${endpoint.port}${path}`, {
    signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
    ...init,
    ...(endpoint.tls && { tls: { rejectUnauthorized: false } }),
    headers: { ...endpoint.headers, host: endpoint.hostHeader },
    redirect: 'manual',
  })
}
