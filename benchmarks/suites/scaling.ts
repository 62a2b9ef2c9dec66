// More than one server, more than one core: `bun benchmarks/index.ts scaling [--rounds 5] [--only small] [--peers one,two-other]`.
//
// The same six tunnels (HTTP and TCP) at one server, at two and at three of a cluster (with a Redis), and at one with `--workers`; visitors come to the
// server that has the client, or to the next one, which sends them on. All of it shares the cores of this machine, as do the load
// generator and the app: what a request costs in processor time says what more machines would give.

import { join } from 'node:path'
import type { Exchange } from '../load/load.ts'
import { type LoadResult, run } from '../load/load.ts'
import { get, SMALL } from '../load/traffic.ts'
import { COLUMNS, observe } from '../measure/load-rows.ts'
import { freePort } from '../measure/ports.ts'
import { withDescendants } from '../measure/proc.ts'
import { measure, type Row, type Scene } from '../measure/rounds.ts'
import { conclude, isQuick, options, refuse, say, seconds, unlessQuick } from '../measure/suite.ts'
import { summary } from '../measure/summary.ts'
import { endpoint, type Peer, type Program } from '../peers/peer.ts'

const PROGRAM = join(import.meta.dir, '../../bin/localtunnels.ts')
const CROWD = join(import.meta.dir, '../ours/crowd.ts')
const TUNNELS = 6
const WARM_SECONDS = 2
/** Of the TCP tunnels, below those that the system gives to connections. */
const TCP_PORT = 21_000

interface Shape {
  readonly servers: number
  /** Visitors come to the server behind the one that has the client. */
  readonly isOther?: boolean
  readonly workers?: number
  /** TCP tunnels of the first server; the second one has the same ports at another address. */
  readonly tcp?: true
}

function shaped(name: string, how: string, { servers, isOther = false, workers, tcp }: Shape): Peer {
  return {
    name,
    role: 'ours',
    carries: 'http',
    how,
    detect: () => Promise.resolve({ version: 'this commit' }),
    plan({ files }, site) {
      const ports = Array.from({ length: servers }, () => freePort())
      const redisPort = freePort()
      const hostOf = (at: number): string => `127.0.0.${tcp ? at + 1 : 1}`
      const more = [
        ...(servers > 1 ? ['--cluster', `redis://127.0.0.1:${redisPort}`] : []),
        ...(workers === undefined ? [] : ['--workers', `${workers}`]),
        ...(tcp ? ['--tcp-ports', `${TCP_PORT}-${TCP_PORT + TUNNELS - 1}`] : []),
      ]
      const server = (port: number, at: number): Program => ({
        command: ['bun', PROGRAM, 'server', '--host', hostOf(at), '--port', `${port}`, ...more],
        env: { XDG_STATE_HOME: site.file(`server-${at}/.keep`, '').replace('/.keep', '') },
      })
      const redis: Program = {
        command: ['redis-server', '--port', `${redisPort}`, '--bind', '127.0.0.1', '--save', ''],
        ready: /Ready to accept connections/,
      }
      const holders = tcp ? ports.slice(0, 1) : ports
      const share = TUNNELS / holders.length
      const crowd = (port: number, at: number): Program => ({
        command: [
          ...['bun', CROWD, `${port}`, `${files}`, `${share}`],
          ...(tcp ? ['tcp', `${TCP_PORT}`] : ['streams', `${at * share}`]),
        ],
        ready: /^registered/,
      })
      const tunnels = Array.from({ length: TUNNELS }, (_, tunnel) => {
        const at = (Math.floor(tunnel / share) + (isOther ? 1 : 0)) % servers
        const port = tcp ? TCP_PORT + tunnel : ports[at]!
        const host = hostOf(at)
        return [
          `n${tunnel}`,
          endpoint(port, `${tcp ? host : `n${tunnel}.localhost`}:${port}`, { host }),
        ] as const
      })
      return {
        server: [...(servers > 1 ? [redis] : []), ...ports.map(server)],
        client: holders.map(crowd),
        listens: holders,
        endpoints: Object.fromEntries(tunnels),
      }
    },
  }
}

const SHAPES: readonly Peer[] = [
  shaped('one', 'one server', { servers: 1 }),
  shaped('two', 'two servers, visitors at the one that has the client', { servers: 2 }),
  shaped('two-other', 'two servers, visitors at the other one', { servers: 2, isOther: true }),
  shaped('three', 'three servers, visitors at the one that has the client', { servers: 3 }),
  shaped('three-other', 'three servers, visitors at another one', { servers: 3, isOther: true }),
  shaped('tcp-one', 'TCP tunnels, one server', { servers: 1, tcp: true }),
  shaped('tcp-two', 'TCP tunnels, two servers, visitors at the one that has the client', {
    servers: 2,
    tcp: true,
  }),
  shaped('tcp-other', 'TCP tunnels, two servers, visitors at the other one', {
    servers: 2,
    tcp: true,
    isOther: true,
  }),
  shaped('workers-1', '--workers 1', { servers: 1, workers: 1 }),
  shaped('workers-2', '--workers 2: a visitor comes to any of the two', { servers: 1, workers: 2 }),
]
const QUICK = ['one', 'two-other', 'workers-2']

/** Each tunnel has its part of the connections. */
function over(
  id: string,
  title: string,
  exchange: Exchange,
  connections: number,
  columns: Row['columns'],
): Row {
  return {
    id,
    title,
    columns,
    fresh: true,
    atMost: 3,
    async take(scene) {
      // Its programs have just started, and half a second would measure how they are compiled.
      await together(scene, exchange, connections, unlessQuick(WARM_SECONDS, 0.1))
      return observe(whole(scene), () => together(scene, exchange, connections))
    },
  }
}

/** Workers are processes that the server starts. */
function whole(scene: Scene): Scene {
  const { server, client } = scene.tunnel.processes
  const processes = { server: withDescendants(server), client }
  return { ...scene, tunnel: { ...scene.tunnel, processes } }
}

async function together(
  { tunnel }: Scene,
  exchange: Exchange,
  connections: number,
  lasts = seconds,
): Promise<LoadResult> {
  const asked = Object.keys(tunnel.endpoints).slice(0, connections)
  const each = Math.max(1, Math.floor(connections / asked.length))
  const load = (to: string) => ({ exchanges: [{ ...exchange, to }], connections: each, seconds: lasts })
  const results = await Promise.all(asked.map(to => run(tunnel.endpoints, load(to))))
  const sum = (key: keyof LoadResult): number =>
    results.reduce((total, result) => total + Number(result[key]), 0)
  const worst = (key: keyof LoadResult): number => Math.max(...results.map(result => Number(result[key])))
  return {
    ...results[0]!,
    ok: sum('ok'),
    failed: sum('failed'),
    bytes: sum('bytes'),
    cpuSeconds: sum('cpuSeconds'),
    seconds: worst('seconds'),
    p50: worst('p50'),
    p90: worst('p90'),
    p99: worst('p99'),
  }
}

const ROWS: readonly Row[] = [
  over('single', 'GET 20 B, one connection to one of the tunnels', SMALL[0]!, 1, COLUMNS.latency),
  over('small', `GET 20 B, 48 connections over ${TUNNELS} tunnels`, SMALL[0]!, 48, COLUMNS.rate),
  over('large', `GET 64 KB, 12 connections over ${TUNNELS} tunnels`, get('64k'), 12, COLUMNS.sized),
]

function chosen(): readonly Peer[] {
  const unknown = options.peers?.find(name => !SHAPES.some(shape => shape.name === name))
  if (unknown !== undefined)
    return refuse(`nothing is called ${unknown}; there are: ${SHAPES.map(({ name }) => name).join(' ')}`)
  const wanted = options.peers ?? (isQuick ? QUICK : SHAPES.map(({ name }) => name))
  const peers = SHAPES.filter(({ name }) => wanted.includes(name))
  if (Bun.which('redis-server') !== null) return peers
  say('clusters are left out: redis-server is not installed: apt-get install redis-server')
  return peers.filter(({ name }) => !/^two|^three|^tcp-(two|other)/.test(name))
}

const rows = isQuick && !options.only ? ROWS.filter(({ id }) => id === 'small') : ROWS
const { tables } = await measure([{ origins: ['files'], peers: chosen(), rows }])
console.log(`\n${summary(tables)}`)
await conclude('scaling', 'More than one server', tables)
