// What only ours has: more server processes, more tunnels. `bun benchmarks/ours-only.ts`

import { run } from './load/load.ts'
import { SMALL } from './load/traffic.ts'
import { COLUMNS, observe } from './measure/load-rows.ts'
import { cpuSeconds, residentBytes } from './measure/proc.ts'
import { column } from './measure/result.ts'
import { type Figures, measure, type Row } from './measure/rounds.ts'
import { conclude, isQuick, seconds, unlessQuick } from './measure/suite.ts'
import { summary } from './measure/summary.ts'
import { ours, oursLibrary } from './peers/ours.ts'
import type { Peer } from './peers/peer.ts'

/** One tunnel is asked while so many are registered: its latency must not know of the others. */
const CROWD: Row = {
  id: 'tunnels',
  title: 'GET 20 B, 50 connections to one of so many tunnels of one client',
  columns: [
    ...COLUMNS.rate,
    column('serverMb', 'server memory', 'MB', 'lower'),
    column('registered', 'all registered', 'ms', 'lower'),
  ],
  goals: [{ key: 'rps', reach: 0.9, against: 'ours-1' }],
  fresh: true,
  atMost: 3,
  async take(scene): Promise<Figures> {
    const { n0 } = scene.tunnel.endpoints
    const load = {
      exchanges: [{ ...SMALL[0]!, to: 'n0' }],
      connections: 50,
      seconds: Math.max(seconds, unlessQuick(1, 0.2)),
    }
    const figures = await observe(scene, () => run({ n0: n0! }, load))
    const { processes, readyMs } = scene.tunnel
    return { ...figures, serverMb: residentBytes(processes.server) / 1e6, registered: readyMs.client }
  },
}
const crowd = (services: number): Peer => ours(`ours-${services}`, `${services} tunnels`, { services })

/** Several servers with a client each, the same number of connections over all of them. */
const CONNECTIONS = 48
const PROCESSES: Row = {
  id: 'processes',
  title: `Server processes, ${CONNECTIONS} connections in all`,
  columns: COLUMNS.rate.slice(0, 4),
  note: 'Servers, clients, app and load share the cores of the machine: two of each already want more than two.',
  fresh: true,
  atMost: 3,
  async take({ tunnel, peer }): Promise<Figures> {
    const { endpoints } = tunnel
    const names = Object.keys(endpoints)
    const connections = Math.floor(CONNECTIONS / names.length)
    const pids = [...tunnel.processes.server, ...tunnel.processes.client]
    const before = cpuSeconds(pids)
    const results = await Promise.all(
      names.map(to => run(endpoints, { exchanges: [{ ...SMALL[0]!, to }], connections, seconds })),
    )
    if (names.length !== Number(peer.name.split('-')[1])) throw new Error('a server is missing')
    const answers = results.reduce((sum, { ok }) => sum + ok, connections * names.length)
    const worst = (key: 'p50' | 'p99'): number => Math.max(...results.map(result => result[key]))
    return {
      rps: results.reduce((sum, { ok, seconds: took }) => sum + ok / took, 0),
      p50: worst('p50'),
      p99: worst('p99'),
      cpu: ((cpuSeconds(pids) - before) / answers) * 1e6,
    }
  },
}
function processes(count: number): Peer {
  return {
    ...oursLibrary,
    name: `ours-${count}`,
    plan({ files }, site) {
      const plans = Array.from({ length: count }, (_, i) => oursLibrary.plan({ [`s${i}`]: files! }, site))
      return {
        server: plans.flatMap(({ server }) => server),
        client: plans.flatMap(({ client }) => client),
        listens: [],
        endpoints: Object.assign({}, ...plans.map(({ endpoints }) => endpoints)),
      }
    },
  }
}

const { tables } = await measure([
  { origins: ['files'], peers: (isQuick ? [1, 50] : [1, 10, 50, 1_000, 4_000]).map(crowd), rows: [CROWD] },
  { origins: ['files'], peers: (isQuick ? [1, 2] : [1, 2, 4]).map(processes), rows: [PROCESSES] },
])
console.log(`\n${summary(tables)}`)
await conclude('ours-only', 'Ours alone', tables)
