// localtunnels itself, on each of its wires: server and client in processes of their own, as users run them.

import { join } from 'node:path'
import { launch } from '../measure/children.ts'
import { assemble } from './assemble.ts'
import { endpoint, type Origins, type Peer, type Tunnel } from './peer.ts'

const FOLDER = join(import.meta.dir, '../ours')

/** With optional features switched on. */
export function oursWith(features: readonly string[]): Peer {
  return {
    ...oursStreams,
    start: origins => start('streams', origins, { BENCH_FEATURES: features.join(';') }),
  }
}

export const oursStreams: Peer = ours('streams')
export const oursJson: Peer = ours('json')
/** As where nothing can be spliced: every byte goes through the program. */
export const oursUnspliced: Peer = {
  ...oursStreams,
  name: 'ours-unspliced',
  how: 'localtunnels, streams wire, LOCALTUNNELS_SPLICE=0',
  start: origins => start('streams', origins, { LOCALTUNNELS_SPLICE: '0' }),
}

function ours(wire: 'streams' | 'json'): Peer {
  return {
    name: `ours-${wire}`,
    kind: 'ours',
    how: `localtunnels, ${wire} wire; one client per origin`,
    async detect() {
      const built = await Bun.file(join(import.meta.dir, '../../src/index.ts')).exists()
      return built ? { version: 'this commit' } : { missing: 'src/index.ts is not written yet' }
    },
    start: origins => start(wire, origins),
  }
}

function start(wire: string, origins: Origins, env: Readonly<Record<string, string>> = {}): Promise<Tunnel> {
  let port = 0
  return assemble({
    async server() {
      const child = await launch(['bun', join(FOLDER, 'server.ts')], { ready: /^listening (\d+)$/, env })
      port = Number(child.match?.[1])
      return [child]
    },
    client: () =>
      Promise.all(
        Object.entries(origins).map(([name, origin]) =>
          launch(['bun', join(FOLDER, 'client.ts'), String(port), String(origin), name, wire], {
            ready: /^connected /,
            env,
          }),
        ),
      ),
    endpoints: () =>
      Object.fromEntries(
        Object.keys(origins).map(name => [name, endpoint(port, `${name}.localhost:${port}`)]),
      ),
  })
}
