// The peers that forward UDP: the same port for TCP and UDP, because iperf3 talks over both.

import { launch } from '../measure/children.ts'
import { freePort, listening } from '../measure/ports.ts'
import { assemble, RAW_ORIGIN } from './assemble.ts'
import { command, scratch } from './binary.ts'
import { chisel } from './chisel.ts'
import { frpTcp } from './frp.ts'
import { oursUdp } from './ours.ts'
import { endpoint, type Origins, type Peer, type Tunnel } from './peer.ts'
import { rathole } from './rathole.ts'

const KINDS = ['tcp', 'udp']

export const withDatagrams: readonly Peer[] = [
  oursUdp,
  { ...rathole, start: ratholeBoth },
  { ...frpTcp, name: 'frp', start: frpBoth },
  { ...chisel, start: chiselBoth },
]

async function ratholeBoth(origins: Origins): Promise<Tunnel> {
  const port = origins[RAW_ORIGIN]
  const [control, open] = [freePort(), freePort()]
  const files = scratch('rathole-udp')
  const services = (end: string, address: string): string =>
    KINDS.map(kind => `[${end}.services.${kind}]\ntype = "${kind}"\n${address}\n`).join('')
  const head = (end: string, key: string): string =>
    `[${end}]\n${key} = "127.0.0.1:${control}"\ndefault_token = "bench"\n`
  await Bun.write(
    files.path('server.toml'),
    head('server', 'bind_addr') + services('server', `bind_addr = "127.0.0.1:${open}"`),
  )
  await Bun.write(
    files.path('client.toml'),
    head('client', 'remote_addr') + services('client', `local_addr = "127.0.0.1:${port}"`),
  )
  return assemble({
    async server() {
      const child = await launch(command('rathole', '--server', files.path('server.toml')))
      await listening(control)
      return [child]
    },
    client: async () => [await launch(command('rathole', '--client', files.path('client.toml')))],
    endpoints: () => ({ [RAW_ORIGIN]: endpoint(open) }),
    cleanup: files.remove,
  })
}

async function frpBoth(origins: Origins): Promise<Tunnel> {
  const port = origins[RAW_ORIGIN]
  const [control, open] = [freePort(), freePort()]
  const files = scratch('frp-udp')
  const log = 'log.level = "error"\n'
  const address = `bindAddr = "127.0.0.1"\nbindPort = ${control}\nproxyBindAddr = "127.0.0.1"\n`
  await Bun.write(files.path('server.toml'), address + log)
  const proxies = KINDS.map(
    kind =>
      `[[proxies]]\nname = "${kind}"\ntype = "${kind}"\nlocalIP = "127.0.0.1"\n` +
      `localPort = ${port}\nremotePort = ${open}\n`,
  )
  const head = `serverAddr = "127.0.0.1"\nserverPort = ${control}\ntransport.tls.enable = false\n`
  await Bun.write(files.path('client.toml'), head + log + proxies.join(''))
  return assemble({
    async server() {
      const child = await launch(command('frps', '-c', files.path('server.toml')))
      await listening(control)
      return [child]
    },
    client: async () => [await launch(command('frpc', '-c', files.path('client.toml')))],
    endpoints: () => ({ [RAW_ORIGIN]: endpoint(open) }),
    cleanup: files.remove,
  })
}

function chiselBoth(origins: Origins): Promise<Tunnel> {
  const port = origins[RAW_ORIGIN]
  const [control, open] = [freePort(), freePort()]
  const remotes = KINDS.map(kind => `R:127.0.0.1:${open}:127.0.0.1:${port}/${kind}`)
  return assemble({
    async server() {
      const child = await launch(command('chisel', `server --host 127.0.0.1 --port ${control} --reverse`))
      await listening(control)
      return [child]
    },
    client: async () => [await launch(command('chisel', `client http://127.0.0.1:${control}`, ...remotes))],
    endpoints: () => ({ [RAW_ORIGIN]: endpoint(open) }),
  })
}
