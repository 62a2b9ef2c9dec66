// A client in a process of its own, for tests that kill or freeze it. Prints one JSON line per event.

import { TunnelClient } from '../../src/index.ts'

const [server = '', subdomain = '', origin = '', pool] = process.argv.slice(2)
const client = new TunnelClient({
  server,
  subdomain,
  port: Number(origin),
  host: '127.0.0.1',
  maxBackoffMs: 100,
  ...(pool !== undefined && { pool: true }),
})
for (const event of ['connected', 'disconnected', 'reconnecting', 'error', 'close'] as const) {
  client.on(event, () => console.log(JSON.stringify({ event, name: nameOf() })))
}
await client.connect()

function nameOf(): string {
  return client.getState() === 'idle' || client.getState() === 'connecting' ? '' : client.getSubdomain()
}
