// The existing localtunnels 0.2.12, from its own repository, because no registry has it: HTTP by Host, JSON wire, on Bun.

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { launch } from '../measure/children.ts'
import { freePort, listening } from '../measure/ports.ts'
import { assemble } from './assemble.ts'
import { peersFolder } from './binary.ts'
import { byHost, type Origins, type Peer, type Tunnel } from './peer.ts'

const VERSION = '0.2.12'
const CHECKOUT = join(peersFolder, 'src/localtunnels')
const PACKAGE = join(CHECKOUT, 'packages/localtunnels')
const REPOSITORY = 'https://github.com/stacksjs/localtunnels'

/** Its API as its README has it; nothing is written to the machine's hosts or resolvers. */
const SERVER = `
const [module, port] = process.argv.slice(1)
const { TunnelServer } = await import(module)
await new TunnelServer({ host: '127.0.0.1', port: Number(port) }).start()
`
const CLIENT = `
const [module, port, origin, subdomain] = process.argv.slice(1)
const { TunnelClient } = await import(module)
const to = { host: '127.0.0.1', port: Number(port), subdomain, manageHosts: false }
await new TunnelClient({ ...to, localHost: '127.0.0.1', localPort: Number(origin) }).connect()
console.log('connected')
`

export const existing: Peer = {
  name: 'localtunnels-0.2',
  kind: 'http',
  how: `stacksjs/localtunnels ${VERSION} from its repository, on Bun; one client per origin`,
  async detect() {
    const remedy = `git clone --branch v${VERSION} ${REPOSITORY} ${CHECKOUT}`
    if (!existsSync(PACKAGE)) return { missing: `localtunnels 0.2 is not there: ${remedy}` }
    // The package's own manifest.
    const { version } = (await Bun.file(join(PACKAGE, 'package.json')).json()) as { version: string }
    return { version }
  },
  start,
}

function start(origins: Origins): Promise<Tunnel> {
  const port = freePort()
  const module = join(PACKAGE, 'src/tunnel.ts')
  return assemble({
    async server() {
      const child = await launch(['bun', '-e', SERVER, module, String(port)], { cwd: CHECKOUT })
      await listening(port)
      return [child]
    },
    client: () =>
      Promise.all(
        Object.entries(origins).map(([name, origin]) =>
          launch(['bun', '-e', CLIENT, module, String(port), String(origin), name], {
            cwd: CHECKOUT,
            ready: /^connected$/,
          }),
        ),
      ),
    endpoints: () => byHost(origins, port, 'localhost'),
  })
}
