// A client in a process of its own, for tests that kill or freeze it. Prints one JSON line per event.

import { TunnelClient, type TunnelClientOptions } from '../../src/index.ts'

const [server = '', name = '', origin = '', extra] = process.argv.slice(2)
/** `extra`: `pool`, `json` for that wire, or the URL of a proxy. */
const service = { port: Number(origin), host: '127.0.0.1' }
/**
 * `tcp` takes any port, `tcp-20000` that one; `share:tcp:db` shares a private service, `end:tcp:db` finds one on the port `origin`. Anything
 * else is a subdomain.
 */
const [, isTcp, remotePort] = /^(tcp)(?:-(\d+))?$/.exec(name) ?? []
const [, kind, protocol, own = ''] = /^(share|end):(tcp|udp):(\w+)$/.exec(name) ?? []
const client = new TunnelClient({
  server,
  maxBackoffMs: 100,
  ...(isTcp === undefined && kind === undefined && { ...service, subdomain: name }),
  ...optionsOf(extra),
})
for (const event of ['connected', 'disconnected', 'reconnecting', 'error', 'close'] as const) {
  client.on(event, () => console.log(JSON.stringify({ event, name: nameOf() })))
}
if (kind === 'end') await client.connectTo({ name: `${protocol}:${own}`, port: service.port })
else if (kind === 'share')
  await (protocol === 'udp'
    ? client.udp({ ...service, private: own })
    : client.tcp({ ...service, private: own }))
else if (isTcp === undefined) await client.connect()
else await client.tcp({ ...service, ...(remotePort !== undefined && { remotePort: Number(remotePort) }) })
// Then it ends by itself.
process.once('SIGTERM', () => void client.disconnect())

function nameOf(): string {
  return client.getState() === 'idle' || client.getState() === 'connecting' ? '' : client.getSubdomain()
}

function optionsOf(extra: string | undefined): Partial<TunnelClientOptions> {
  if (extra === 'pool') return { pool: true }
  if (extra === 'json') return { wire: 'json' }
  return extra === undefined ? {} : { proxy: extra }
}
