// Every tunnel over a road of 100 Mbit/s: 100 ms there and back, with and without loss, 20 ms, and 1 ms.
// `bun benchmarks/index.ts wan [--rounds 3] [--seconds 5] [--peers ours,rathole]`, as root, on Linux.
//
// Server and visitors stand at one end, client and app at the other. `direct` is a visitor that crosses the road to the
// app without a tunnel.

import { keepBusy, run } from '../load/load.ts'
import { get, post, SMALL } from '../load/traffic.ts'
import { COLUMNS, loadRow, observe } from '../measure/load-rows.ts'
import type { Table } from '../measure/result.ts'
import { measure, type Row } from '../measure/rounds.ts'
import { reasonOf } from '../measure/samples.ts'
import { conclude, isQuick, options, refuse, unlessQuick } from '../measure/suite.ts'
import { summary } from '../measure/summary.ts'
import { direct } from '../peers/floors.ts'
import { ferrotunnel, frpHttp, piko } from '../peers/http.ts'
import { choose } from '../peers/list.ts'
import { ours, oursCli, oursLibrary } from '../peers/ours.ts'
import { eachPort, endpoint, type Peer } from '../peers/peer.ts'
import { bore, chisel, frpBest, frpMux, ratholeBest } from '../peers/tcp.ts'
import { CLIENT_ADDRESS, Road } from '../wan/road.ts'

if (process.getuid?.() !== 0) refuse('a slow road needs root: it is built of network namespaces')
const ROADS = [
  { name: '100 ms, no loss', oneWayMs: 50, loss: 0 },
  { name: '100 ms, 1 % loss', oneWayMs: 50, loss: 0.01 },
  { name: '20 ms, 0.1 % loss', oneWayMs: 10, loss: 0.001 },
  { name: '1 ms, no loss', oneWayMs: 0.5, loss: 0 },
] as const

/** Across the road to the app itself. */
const plain: Peer = {
  ...direct,
  how: 'no tunnel: visitors cross the road to the app',
  plan: ports => ({
    server: [],
    client: [],
    listens: [],
    endpoints: eachPort(ports, (_, port) => endpoint(port, undefined, { host: CLIENT_ADDRESS })),
  }),
}
const noLinks = ours('ours-no-links', 'library, maxLinks 0: everything on one connection', {
  env: { BENCH_LIMITS: '{"maxLinks":0}' },
})
const PEERS = [
  plain,
  oursLibrary,
  oursCli,
  noLinks,
  ratholeBest,
  bore,
  frpBest,
  frpMux,
  chisel,
  frpHttp,
  piko,
  ferrotunnel,
]

const length = options.seconds ?? unlessQuick(4, 1)
const bulk = { seconds: length, warm: 0, timeoutMs: 60_000 }
const upload = { ...post(0), body: '10m', answer: Buffer.from('10485760') }
const rowsOf = (road: string): readonly Row[] =>
  [
    loadRow({
      id: 'wan-down',
      title: '10 MB down',
      columns: COLUMNS.bulk,
      exchanges: [get('10m')],
      connections: 1,
      more: bulk,
    }),
    loadRow({
      id: 'wan-up',
      title: '10 MB up',
      columns: COLUMNS.bulk,
      exchanges: [upload],
      connections: 1,
      more: bulk,
    }),
    loadRow({
      id: 'wan-small',
      title: 'GET 20 B, 10 connections',
      columns: COLUMNS.latency,
      exchanges: SMALL,
      connections: 10,
      more: { seconds: length },
    }),
    beside(),
  ].map(row => ({ ...row, id: `${row.id} ${road}`, title: `${road}: ${row.title}` }))

/** Small requests while a download goes on. */
function beside(): Row {
  return {
    id: 'wan-beside',
    title: 'GET 20 B at 20 a second beside a download',
    columns: COLUMNS.fixed,
    async take(scene) {
      const { endpoints } = scene.tunnel
      const download = await keepBusy(endpoints, {
        exchanges: [get('10m')],
        connections: 1,
        seconds: 120,
        warm: 0,
      })
      const load = { exchanges: SMALL, connections: 10, rate: 20, seconds: length }
      return observe(scene, () => run(endpoints, load)).finally(download.end)
    },
  }
}

const tables: Table[] = []
const versions: Record<string, string> = {}
const roads = isQuick ? ROADS.slice(0, 1) : ROADS
for (const [index, { name, ...road }] of roads.entries()) {
  const built = new Road()
  try {
    await built.open({ rateMbit: 100, ...road })
    const peers = choose(PEERS, { names: options.peers, quick: isQuick })
    const result = await measure(
      [{ origins: ['files', 'sink'], peers, rows: rowsOf(name), ground: built.ground }],
      [],
      1 / (roads.length - index),
    )
    tables.push(...result.tables)
    Object.assign(versions, result.versions, { congestion: built.congestion })
  } catch (error) {
    built.close()
    refuse(reasonOf(error))
  }
  built.close()
}
console.log(`\n${summary(tables)}`)
await conclude('wan', 'A slow road', tables, versions)
