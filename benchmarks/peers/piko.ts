// piko: HTTP by Host, a new multiplexed stream per request. Go module `github.com/andydunstall/piko`.

import { launch } from '../measure/children.ts'
import { freePort, listening } from '../measure/ports.ts'
import { assemble } from './assemble.ts'
import { command, detectBinary } from './binary.ts'
import { byHost, type Origins, type Peer, type Tunnel } from './peer.ts'

export const piko: Peer = {
  name: 'piko',
  kind: 'http',
  how: 'one node, no usage report, no access log; one agent per origin',
  detect: () => detectBinary('piko', '--version'),
  start,
}

function start(origins: Origins): Promise<Tunnel> {
  const [proxy, upstream, admin, gossip] = [freePort(), freePort(), freePort(), freePort()]
  return assemble({
    async server() {
      const child = await launch(
        command(
          'piko',
          'server --usage.disable --proxy.access-log=false --log.level error ' +
            `--proxy.bind-addr 127.0.0.1:${proxy} --upstream.bind-addr 127.0.0.1:${upstream} ` +
            `--admin.bind-addr 127.0.0.1:${admin} --cluster.gossip.bind-addr 127.0.0.1:${gossip}`,
        ),
      )
      await Promise.all([listening(proxy), listening(upstream)])
      return [child]
    },
    client: () =>
      Promise.all(
        Object.entries(origins).map(([name, port]) =>
          launch(
            command(
              'piko',
              `agent http ${name} 127.0.0.1:${port} --access-log=false --log.level error ` +
                `--connect.url http://127.0.0.1:${upstream} --server.enabled=false`,
            ),
          ),
        ),
      ),
    endpoints: () => byHost(origins, proxy, 'test'),
  })
}
