// A client in a process of its own, for tests that kill or freeze it. Prints one JSON line per event.

import { TunnelClient } from '../../src/index.ts'

const [server = '', subdomain = '', origin = '', proxy] = process.argv.slice(2)
const client = new TunnelClient({
  server,
  subdomain,
  port: Number(origin),
  host: '127.0.0.1',
  maxBackoffMs: 100,
  ...(proxy !== undefined && { proxy }),
})
for (const event of ['connected', 'disconnected', 'reconnecting', 'error', 'close'] as const) {
  client.on(event, () => console.log(JSON.stringify({ event, name: nameOf() })))
}
await client.connect()
// Then it ends by itself.
process.once('SIGTERM', () => void client.disconnect())

function nameOf(): string {
  return client.getState() === 'idle' || client.getState() === 'connecting' ? '' : client.getSubdomain()
}
