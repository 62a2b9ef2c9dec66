// Our client in a process of its own: `client.ts SERVER_PORT ORIGIN_PORT NAME KIND`. KIND is a wire, `tcp`, or `udp` (TCP too).

import { TunnelClient } from '../../src/index.ts'
import { enableOnClient } from './features.ts'

const [serverPort, originPort, subdomain, kind] = process.argv.slice(2)
const origin = { host: '127.0.0.1', port: Number(originPort) }
const client = new TunnelClient({
  server: `http://127.0.0.1:${serverPort}`,
  wire: kind === 'json' ? 'json' : 'streams',
  ...(kind !== 'tcp' && kind !== 'udp' && { ...origin, subdomain }),
})
client.on('error', (error: Error) => console.error(error.message))
enableOnClient(client, (process.env.BENCH_FEATURES ?? '').split(';'))
if (kind === 'tcp') await client.tcp(origin)
else if (kind === 'udp') {
  const { port = 0 } = await client.tcp(origin)
  await client.udp({ ...origin, remotePort: port })
} else await client.connect()
process.on('SIGTERM', () => void client.disconnect().then(() => process.exit(0)))
console.log(`connected ${client.getTunnelUrl()}`)
