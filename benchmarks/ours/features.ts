// Optional features that a benchmark can switch on in our server and client, each alone or all together.

import type { TunnelClient, TunnelServer } from '../../src/index.ts'

/** Where it is switched on; `none`: it is planned and cannot be yet. */
export interface Feature {
  readonly name: string
  readonly at: 'server' | 'client' | 'none'
}

export const FEATURES: readonly Feature[] = [
  { name: 'rate limit (local)', at: 'none' },
  { name: 'rate limit (Redis)', at: 'none' },
  { name: 'circuit breaker', at: 'none' },
  { name: 'retries', at: 'none' },
  { name: 'access log', at: 'server' },
  { name: 'metrics', at: 'none' },
  { name: 'correlation ids', at: 'none' },
  { name: 'inspector', at: 'none' },
  { name: 'request reports (one line per request at the client)', at: 'client' },
]

/** An access log as JSON lines to a file nobody reads: one write for what a tick collected. */
export function enableOnServer(server: TunnelServer, names: readonly string[]): void {
  if (!names.includes('access log')) return
  const sink = Bun.file('/dev/null').writer()
  server.on('request', request => {
    void sink.write(`${JSON.stringify({ time: Date.now(), ...request })}\n`)
  })
}

export function enableOnClient(client: TunnelClient, names: readonly string[]): void {
  if (!names.some(name => name.startsWith('request reports'))) return
  const sink = Bun.file('/dev/null').writer()
  client.on('response', response => {
    void sink.write(`${response.method} ${response.status} ${response.durationMs} ms ${response.path}\n`)
  })
}
