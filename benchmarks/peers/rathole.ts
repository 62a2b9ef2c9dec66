// rathole: one TCP connection per visitor, TOML on both ends. Crate `rathole`.

import { launch } from '../measure/children.ts'
import { freePort, listening } from '../measure/ports.ts'
import { assemble } from './assemble.ts'
import { detectBinary, need, scratch } from './binary.ts'
import { endpoint, type Origins, type Peer, type Tunnel } from './peer.ts'

const TRANSPORT = (end: string): string =>
  `[${end}.transport]\ntype = "tcp"\n[${end}.transport.tcp]\nnodelay = true\n`

export const rathole: Peer = {
  name: 'rathole',
  kind: 'tcp',
  how: 'transport tcp with nodelay, no TLS, no noise',
  detect: () => detectBinary('rathole', '--version'),
  start,
}

async function start(origins: Origins): Promise<Tunnel> {
  const control = freePort()
  const services = Object.entries(origins).map(([name, port]) => ({ name, port, open: freePort() }))
  const files = scratch('rathole')
  const serverFile = `[server]\nbind_addr = "127.0.0.1:${control}"\ndefault_token = "bench"\n${TRANSPORT('server')}`
  const clientFile = `[client]\nremote_addr = "127.0.0.1:${control}"\ndefault_token = "bench"\n${TRANSPORT('client')}`
  await Bun.write(
    files.path('server.toml'),
    serverFile +
      services.map(({ name, open }) => service('server', name, `bind_addr = "127.0.0.1:${open}"`)).join(''),
  )
  await Bun.write(
    files.path('client.toml'),
    clientFile +
      services.map(({ name, port }) => service('client', name, `local_addr = "127.0.0.1:${port}"`)).join(''),
  )
  return assemble({
    async server() {
      const child = await launch([need('rathole'), '--server', files.path('server.toml')])
      await listening(control)
      return [child]
    },
    client: async () => [await launch([need('rathole'), '--client', files.path('client.toml')])],
    endpoints: () => Object.fromEntries(services.map(({ name, open }) => [name, endpoint(open)])),
    cleanup: files.remove,
  })
}

function service(end: string, name: string, address: string): string {
  return `[${end}.services.${name}]\ntype = "tcp"\nnodelay = true\n${address}\n`
}
