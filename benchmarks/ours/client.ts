// Our client in a process of its own: `client.ts SPEC`, a JSON text or file that `peers/ours.ts` writes.

import type { TunnelClientOptions } from '../../src/index.ts'
import { clientOptionsOf, enableOnClient } from './features.ts'
import { TunnelClient } from './tunnel.ts'

interface Spec {
  readonly server: string
  readonly stateFolder: string
  readonly tunnels: readonly TunnelClientOptions[]
  readonly wire?: 'streams' | 'json'
  readonly kind?: 'tcp' | 'udp' | 'private' | 'end'
  readonly token?: string
  readonly remotePort?: number
}

const [spec = ''] = process.argv.slice(2)
// Written by peers/ours.ts.
const {
  server,
  stateFolder,
  tunnels,
  wire,
  kind,
  remotePort,
  token = '',
} = JSON.parse(spec.startsWith('{') ? spec : await Bun.file(spec).text()) as Spec
const [first, ...others] = tunnels
const features = (process.env.BENCH_FEATURES ?? '').split(';')
const connection = {
  server,
  stateFolder,
  verifyServer: false,
  token,
  ...(wire && { wire }),
  ...clientOptionsOf(features),
}
const client = new TunnelClient(kind ? connection : { ...connection, ...first })
client.on('error', (error: Error) => console.error(error.message))
enableOnClient(client, features)
if (kind === 'private') {
  await client.tcp({ host: '127.0.0.1', port: first!.port!, private: first!.subdomain! })
} else if (kind === 'end') {
  // Both clients start at once, and the other one may be later.
  const connect = (): Promise<unknown> =>
    client
      .connectTo({ name: first!.subdomain!, port: remotePort! })
      .catch(error => (error.code === 'SERVICE_NOT_FOUND' ? connect() : Promise.reject(error)))
  await connect()
} else if (kind) {
  const service = { host: '127.0.0.1', port: first!.port!, ...(remotePort !== undefined && { remotePort }) }
  await client.tcp(service)
  if (kind === 'udp') await client.udp(service)
} else {
  await client.connect()
  for (const tunnel of others) await client.http(tunnel)
}
process.on('SIGTERM', () => void client.disconnect().then(() => process.exit(0)))
console.log(`connected ${client.getTunnelUrl()}`)
