// The honest client: `client-process.ts SPEC`, with an HTTP, a TCP and a UDP tunnel. Prints `ready TCP_PORT UDP_PORT`.

import type { GuardOptions } from '../../../src/index.ts'
import { libraryAt } from './source.ts'

export interface ClientSpec {
  readonly source: string
  readonly port: number
  readonly isTls?: boolean
  readonly token: string
  readonly subdomain: string
  readonly app: number
  readonly tcp?: number
  readonly udp?: number
  readonly guard?: GuardOptions
}

// The runner wrote it.
const spec = JSON.parse(process.argv[2] ?? '') as ClientSpec
const { TunnelClient } = await libraryAt(spec.source)
const client = new TunnelClient({
  server: `${spec.isTls === true ? 'https' : 'http'}://127.0.0.1:${spec.port}`,
  // The certificate was made for this run.
  verifyServer: spec.isTls !== true,
  host: '127.0.0.1',
  port: spec.app,
  subdomain: spec.subdomain,
  token: spec.token,
  wildcard: true,
  ...(spec.guard !== undefined && { guard: spec.guard }),
  maxBackoffMs: 500,
})
client.on('error', error => console.log(`event error ${error.message}`))
for (const event of ['disconnected', 'reconnecting', 'connected'] as const) {
  client.on(event, () => console.log(`event ${event}`))
}
await client.connect()
const tcp = spec.tcp === undefined ? undefined : await client.tcp({ port: spec.tcp, host: '127.0.0.1' })
const udp = spec.udp === undefined ? undefined : await client.udp({ port: spec.udp, host: '127.0.0.1' })
process.on('SIGUSR2', () => {
  Bun.gc(true)
  console.log('collected')
})
// An older tree knows only the abrupt end.
const end = (): Promise<void> =>
  typeof Reflect.get(client, 'close') === 'function' ? client.close() : client.disconnect()
process.on('SIGTERM', () => void end().then(() => process.exit(0)))
console.log(`ready ${tcp?.port ?? 0} ${udp?.port ?? 0} ${client.getSubdomain()}`)
