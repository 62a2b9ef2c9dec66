// frp in the three ways that differ: HTTP by Host, TCP over its multiplexer, TCP on connections of their own.
// Go module `github.com/fatedier/frp`.

import { launch } from '../measure/children.ts'
import { freePort, listening } from '../measure/ports.ts'
import { assemble } from './assemble.ts'
import { detectBinary, need, scratch } from './binary.ts'
import { endpoint, type Origins, type Peer, type Tunnel } from './peer.ts'

interface Way {
  readonly type: 'http' | 'tcp'
  readonly mux: boolean
}

export const frpTcp: Peer = frp('frp-tcp', 'proxy type tcp, tcpMux on (its default)', {
  type: 'tcp',
  mux: true,
})
export const frpNoMux: Peer = frp('frp-nomux', 'proxy type tcp, tcpMux off, poolCount 5', {
  type: 'tcp',
  mux: false,
})
export const frpHttp: Peer = frp('frp-http', 'proxy type http, tcpMux on (its default)', {
  type: 'http',
  mux: true,
})

function frp(name: string, how: string, way: Way): Peer {
  return {
    name,
    kind: way.type,
    how: `${how}, no TLS, no compression`,
    detect: () => detectBinary('frps', '--version'),
    start: origins => start(name, way, origins),
  }
}

async function start(name: string, way: Way, origins: Origins): Promise<Tunnel> {
  const control = freePort()
  const vhost = freePort()
  const proxies = Object.entries(origins).map(([origin, port]) => ({ origin, port, remote: freePort() }))
  const files = scratch(name)
  const log = 'log.level = "error"\n'
  const mux = `transport.tcpMux = ${way.mux}\n`
  const address = `bindAddr = "127.0.0.1"\nbindPort = ${control}\nproxyBindAddr = "127.0.0.1"\n`
  const http = way.type === 'http' ? `vhostHTTPPort = ${vhost}\n` : ''
  await Bun.write(files.path('server.toml'), address + http + mux + log)
  const head = `serverAddr = "127.0.0.1"\nserverPort = ${control}\ntransport.tls.enable = false\n`
  const pool = way.mux ? '' : 'transport.poolCount = 5\n'
  const entries = proxies.map(({ origin, port, remote }) => {
    const open = way.type === 'http' ? `customDomains = ["${origin}.test"]` : `remotePort = ${remote}`
    return `[[proxies]]\nname = "${origin}"\ntype = "${way.type}"\nlocalIP = "127.0.0.1"\nlocalPort = ${port}\n${open}\n`
  })
  await Bun.write(files.path('client.toml'), head + mux + pool + log + entries.join(''))
  return assemble({
    async server() {
      const child = await launch([need('frps'), '-c', files.path('server.toml')])
      await listening(control)
      return [child]
    },
    client: async () => [await launch([need('frpc'), '-c', files.path('client.toml')])],
    endpoints: () =>
      Object.fromEntries(
        proxies.map(({ origin, remote }) => [
          origin,
          way.type === 'http' ? endpoint(vhost, `${origin}.test`) : endpoint(remote),
        ]),
      ),
    cleanup: files.remove,
  })
}
