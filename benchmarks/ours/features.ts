// Optional features that a benchmark can switch on in our server and client, each alone or all together.

import { RedisRates } from '../../src/directories/redis-rates.ts'
import {
  accessLog,
  type TunnelClient,
  type TunnelClientOptions,
  type TunnelServerOptions,
} from '../../src/index.ts'
import { rate } from '../../src/plugins/rate.ts'

/** Where it is switched on. */
export interface Feature {
  readonly name: string
  readonly at: 'server' | 'client'
}

export const FEATURES: readonly Feature[] = [
  { name: 'rate limit (local)', at: 'server' },
  { name: 'rate limit (Redis)', at: 'server' },
  { name: 'circuit breaker', at: 'server' },
  { name: 'access log', at: 'server' },
  { name: 'metrics', at: 'server' },
  { name: 'correlation ids', at: 'server' },
  { name: 'inspector', at: 'client' },
  { name: 'inspector of every request', at: 'client' },
  { name: 'request reports (one line per request at the client)', at: 'client' },
]

/** So many that no request is refused: what is measured is the counting. */
const UNREACHED = { limit: 1_000_000, windowMs: 1_000 }

/** Options of the server that has these; `BENCH_REDIS` is the URL of its Redis. */
export async function serverOptionsOf(names: readonly string[]): Promise<TunnelServerOptions> {
  const guards = names.includes('rate limit (local)') ? [rate(UNREACHED)] : []
  if (names.includes('rate limit (Redis)')) {
    const shared = await RedisRates.open({ url: process.env.BENCH_REDIS ?? '' })
    guards.push(rate({ ...UNREACHED, shared, whenUnreachable: 'closed' }))
  }
  return {
    guards,
    ...(names.includes('circuit breaker') && { tunnelRules: [{ breaker: {} }] }),
    ...(names.includes('correlation ids') && { tracing: true }),
    ...(names.includes('metrics') && { admin: { port: 0, token: 'a-token-of-the-benchmark' } }),
    ...(names.includes('access log') && { observers: [accessLog({ file: '/dev/null', maxFileBytes: 0 })] }),
  }
}

/** Options of the client that has these. */
export function clientOptionsOf(names: readonly string[]): Pick<TunnelClientOptions, 'inspect'> {
  if (names.includes('inspector of every request')) return { inspect: { rate: 0 } }
  return names.includes('inspector') ? { inspect: true } : {}
}

export function enableOnClient(client: TunnelClient, names: readonly string[]): void {
  if (!names.some(name => name.startsWith('request reports'))) return
  const sink = Bun.file('/dev/null').writer()
  client.on('response', response => {
    void sink.write(`${response.method} ${response.status} ${response.durationMs} ms ${response.path}\n`)
  })
}
