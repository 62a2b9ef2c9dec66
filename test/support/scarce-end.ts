// A server, or a client with tunnels to an app, in a process with few descriptors. Prints a JSON line for each event.

import { spliceCounts } from '../../src/accelerator/threads.ts'
import { freeDescriptors } from '../../src/descriptors.ts'
import { TunnelClient, TunnelServer } from '../../src/index.ts'

const [kind = '', ...args] = process.argv.slice(2)
const say = (line: object) => console.log(JSON.stringify(line))
const failed = (error: Error) => say({ error: 'code' in error ? error.code : error.message })

if (kind === 'server') {
  const server = new TunnelServer({ port: 0, host: '127.0.0.1', tcpPorts: '20000-29999' })
  server.on('error', failed)
  await server.start()
  say({ ports: [server.port] })
} else {
  const [port, http, echo, bulk] = args.map(Number)
  const host = '127.0.0.1'
  const client = new TunnelClient({
    server: `http://127.0.0.1:${port}`,
    port: http ?? 0,
    host,
    subdomain: 'app',
    maxBackoffMs: 500,
  })
  client.on('error', failed)
  await client.connect()
  const tunnels = [await client.tcp({ port: echo ?? 0, host }), await client.tcp({ port: bulk ?? 0, host })]
  say({ ports: tunnels.map(tunnel => tunnel.port) })
}
// Asked for by a line of anything.
for await (const _ of console) say({ free: freeDescriptors(1_000), ...spliceCounts() })
