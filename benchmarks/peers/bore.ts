// bore: one TCP connection per visitor; its control port 7835 cannot be changed. Crate `bore-cli`.

import { launch } from '../measure/children.ts'
import { freePort, listening } from '../measure/ports.ts'
import { assemble } from './assemble.ts'
import { command, detectBinary } from './binary.ts'
import { endpoint, type Origins, type Peer, type Tunnel } from './peer.ts'

const CONTROL_PORT = 7835

export const bore: Peer = {
  name: 'bore',
  kind: 'tcp',
  how: 'no secret; plain TCP is all it has; one client per origin',
  detect: () => detectBinary('bore', '--version'),
  start,
}

function start(origins: Origins): Promise<Tunnel> {
  const proxies = Object.entries(origins).map(([name, port]) => ({ name, port, open: freePort() }))
  return assemble({
    async server() {
      const child = await launch(command('bore', 'server --bind-addr 127.0.0.1 --bind-tunnels 127.0.0.1'))
      await listening(CONTROL_PORT)
      return [child]
    },
    client: () =>
      Promise.all(
        proxies.map(({ port, open }) =>
          launch(command('bore', `local ${port} --local-host 127.0.0.1 --to 127.0.0.1 --port ${open}`)),
        ),
      ),
    endpoints: () => Object.fromEntries(proxies.map(({ name, open }) => [name, endpoint(open)])),
  })
}
