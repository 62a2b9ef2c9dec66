// Our client in a process of its own: `client.ts SERVER_PORT ORIGIN_PORT NAME WIRE`.

import { TunnelClient } from '../../src/index.ts'
import { enableOnClient } from './features.ts'

const [serverPort, originPort, subdomain, wire] = process.argv.slice(2)
const client = new TunnelClient({
  server: `http://127.0.0.1:${serverPort}`,
  host: '127.0.0.1',
  port: Number(originPort),
  subdomain,
  wire: wire === 'json' ? 'json' : 'streams',
})
client.on('error', (error: Error) => console.error(error.message))
enableOnClient(client, (process.env.BENCH_FEATURES ?? '').split(';'))
await client.connect()
process.on('SIGTERM', () => void client.disconnect().then(() => process.exit(0)))
console.log(`connected ${client.getTunnelUrl()}`)
