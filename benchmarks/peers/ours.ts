// localtunnels itself, on each of its wires, and with TCP tunnels: server and client in processes of their own, as users run them.

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

export const oursStreams: Peer = ours('streams', 'streams wire')
export const oursJson: Peer = ours('json', 'json wire')
/** For what is not HTTP. */
export const oursTcp: Peer = ours('tcp', 'TCP tunnels')
/** TCP and UDP on one public port. */
export const oursUdp: Peer = ours('udp', 'TCP and UDP tunnels on one port')
/** As where nothing can be spliced: every byte goes through the program. */
export const oursUnspliced: Peer = {
  ...oursStreams,
  name: 'ours-unspliced',
  how: 'localtunnels, streams wire, LOCALTUNNELS_SPLICE=0',
  start: origins => start('streams', origins, { LOCALTUNNELS_SPLICE: '0' }),
}

type Kind = 'streams' | 'json' | 'tcp' | 'udp'

function ours(kind: Kind, what: string): Peer {
  return {
    name: `ours-${kind}`,
    kind: 'ours',
    how: `localtunnels, ${what}; one client per origin`,
    async detect() {
      const built = await Bun.file(join(import.meta.dir, '../../src/index.ts')).exists()
      return built ? { version: 'this commit' } : { missing: 'src/index.ts is not written yet' }
    },
    start: origins => start(kind, origins),
  }
}

function start(kind: Kind, origins: Origins, env: Readonly<Record<string, string>> = {}): Promise<Tunnel> {
  let port = 0
  /** Of TCP tunnels, by origin. */
  const publicPorts = new Map<string, number>()
  const endpointOf = (name: string) =>
    kind === 'tcp' || kind === 'udp'
      ? endpoint(publicPorts.get(name) ?? 0)
      : endpoint(port, `${name}.localhost:${port}`)
  return assemble({
    async server() {
      const child = await launch(['bun', join(FOLDER, 'server.ts')], { ready: /^listening (\d+)$/, env })
      port = Number(child.match?.[1])
      return [child]
    },
    client: () =>
      Promise.all(
        Object.entries(origins).map(async ([name, origin]) => {
          const command = ['bun', join(FOLDER, 'client.ts'), String(port), String(origin), name, kind]
          const child = await launch(command, { ready: /^connected \w+:\/\/[^:]+:(\d+)/, env })
          publicPorts.set(name, Number(child.match?.[1]))
          return child
        }),
      ),
    endpoints: () => Object.fromEntries(Object.keys(origins).map(name => [name, endpointOf(name)])),
  })
}
