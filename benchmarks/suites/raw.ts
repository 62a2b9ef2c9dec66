// Bytes and datagrams without HTTP: bitrates, round trips of 64 bytes, a database session. `bun benchmarks/index.ts raw`

import { datagramRoundTrips } from '../load/datagram-trips.ts'
import { hasIperf, iperf, startIperf } from '../load/iperf.ts'
import { type Load, run } from '../load/load.ts'
import { hasPostgres, startPostgres, transactions } from '../load/postgres.ts'
import { observe } from '../measure/load-rows.ts'
import { cpuSeconds } from '../measure/proc.ts'
import { column, type Table } from '../measure/result.ts'
import { type Figures, measure, type Row, type Scene } from '../measure/rounds.ts'
import { conclude, isQuick, options, say, unlessQuick } from '../measure/suite.ts'
import { summary } from '../measure/summary.ts'
import { direct } from '../peers/floors.ts'
import { choose } from '../peers/list.ts'
import { oursCliTcp, oursPrivate, oursTcp, oursUdp } from '../peers/ours.ts'
import { type Peer, RAW_ORIGIN } from '../peers/peer.ts'
import {
  bore,
  chisel,
  ferrotunnelTcp,
  frpBest,
  frpMux,
  pikoTcp,
  ratholeBest,
  withDatagrams,
} from '../peers/tcp.ts'

const TUNNELS = [
  direct,
  oursTcp,
  oursPrivate,
  oursCliTcp,
  ratholeBest,
  bore,
  frpBest,
  frpMux,
  chisel,
  pikoTcp,
  ferrotunnelTcp,
]
const TRIPS = unlessQuick(options.minutes === undefined ? 10_000 : 3_000, 200)
const iperfSeconds = 1

const cpu = column('cpuGb', 'CPU, both ends', 's a GB', 'lower')
const gbit = column('gbit', 'received', 'Gbit/s', 'higher')
const p50 = column('p50', 'p50', 'ms', 'lower')
const p90 = column('p90', 'p90', 'ms', 'lower')
const mean = column('mean', 'mean', 'ms', 'lower')
const p99 = column('p99', 'p99', 'ms', 'lower')
const p999 = column('p999', 'p99.9', 'ms', 'lower')
const tripCpu = column('cpu', 'CPU, both ends', 'µs a trip', 'lower')

const trips: Row = {
  id: 'trips',
  title: `${TRIPS.toLocaleString('en-US')} round trips of 64 bytes by TCP`,
  columns: [p50, p90, p99, p999, mean, tripCpu],
  path: 'ordinary',
  take: async scene => {
    const bytes = new Uint8Array(64).fill(120)
    const load: Load = {
      exchanges: [],
      messages: { to: RAW_ORIGIN, send: bytes, expect: bytes },
      connections: 1,
      seconds: 30,
      passes: TRIPS,
      warm: TRIPS / 10,
    }
    const { rps: _, ...figures } = await observe(scene, () => run(scene.tunnel.endpoints, load), TRIPS / 10)
    return figures
  },
}

const datagramTrips: Row = {
  id: 'datagrams',
  title: `${TRIPS.toLocaleString('en-US')} round trips of 64 bytes by UDP`,
  columns: [p50, p99, column('lost', 'lost', '%', 'lower'), tripCpu],
  take: async scene => {
    const { server, client } = scene.tunnel.processes
    const before = cpuSeconds([...server, ...client])
    const { lost, ...latency } = await datagramRoundTrips(portOf(scene), {
      bytes: 64,
      trips: TRIPS,
      warmup: TRIPS / 10,
    })
    const used = (cpuSeconds([...server, ...client]) - before) / (1.1 * TRIPS)
    return { ...latency, lost: (100 * lost) / (TRIPS + lost), cpu: used * 1e6 }
  },
}

function bitrate(id: string, title: string, load: Parameters<typeof iperf>[2]): Row {
  return {
    id,
    title,
    columns: load.udp ? [gbit, column('lost', 'lost', '%', 'lower'), cpu] : [gbit, cpu],
    async take(scene): Promise<Figures> {
      const { server, client } = scene.tunnel.processes
      const before = cpuSeconds([...server, ...client])
      const { gbitPerSecond, lost } = await iperf(portOf(scene), iperfSeconds, load)
      const used = cpuSeconds([...server, ...client]) - before
      const gigabytes = (gbitPerSecond / 8) * iperfSeconds
      return {
        gbit: gbitPerSecond,
        ...(load.udp && { lost }),
        ...(server.length > 0 && { cpuGb: used / gigabytes }),
      }
    },
  }
}

const BITRATES: readonly Row[] = [
  bitrate('up1', 'iperf3, one stream up', { streams: 1, way: 'up' }),
  bitrate('down1', 'iperf3, one stream down', { streams: 1, way: 'down' }),
  bitrate('up10', 'iperf3, ten streams up', { streams: 10, way: 'up' }),
  bitrate('down10', 'iperf3, ten streams down', { streams: 10, way: 'down' }),
]

const DATABASE: Row = {
  id: 'pgbench',
  title: 'PostgreSQL, pgbench -S, 10 clients',
  columns: [
    column('tps', 'transactions', '/s', 'higher'),
    column('cpu', 'CPU, both ends', 'µs a transaction', 'lower'),
  ],
  async take(scene) {
    const { server, client } = scene.tunnel.processes
    const pids = [...server, ...client]
    const before = cpuSeconds(pids)
    const { rate, count } = await transactions(portOf(scene), unlessQuick(2, 1))
    return { tps: rate, ...(pids.length > 0 && { cpu: ((cpuSeconds(pids) - before) / count) * 1e6 }) }
  },
}

/** Of the calls below: each gets an equal part of the time that is left. */
let stagesLeft = 5
const TABLES = [trips, datagramTrips, ...BITRATES, DATABASE].map(({ id }) => id).concat('udp')
const tables: Table[] = []
const versions: Record<string, string> = {}
const datagramTunnels = [direct, oursUdp, ...withDatagrams]
await stage([trips], TUNNELS, { name: 'echo' })
await stage([datagramTrips], datagramTunnels, { name: 'datagrams' })
if (hasIperf()) {
  const server = await startIperf()
  const rows = isQuick ? BITRATES.slice(0, 1) : BITRATES
  await stage(rows, TUNNELS, server)
  await stage([bitrate('udp', 'iperf3 by UDP, -b 0 -l 1400', { udp: true })], datagramTunnels, server)
  await server.stop()
} else say('Bitrates are left out: iperf3 is not installed')
if (hasPostgres()) {
  const server = await startPostgres()
  await stage([DATABASE], TUNNELS, server)
  await server.stop()
} else say('The database session is left out: PostgreSQL with pgbench is not installed')
console.log(`\n${summary(tables)}`)
await conclude('raw', 'Bytes and datagrams', tables, versions)

/** Each tunnel leads to one port, and is up for its own measurement only. */
async function stage(
  rows: readonly Row[],
  peers: readonly Peer[],
  origin: { readonly name: 'echo' | 'datagrams' } | { readonly port: number },
): Promise<void> {
  const ported = choose(peers, {
    names: options.peers,
    quick: isQuick,
    known: [...TUNNELS, ...datagramTunnels],
  }).map(peer => ({
    ...peer,
    plan: (ports: Readonly<Record<string, number>>, site: Parameters<Peer['plan']>[1]) =>
      peer.plan({ [RAW_ORIGIN]: 'port' in origin ? origin.port : ports[origin.name]! }, site),
  }))
  const result = await measure(
    [
      {
        origins: 'name' in origin ? [origin.name] : [],
        peers: ported,
        rows: rows.map(row => ({ ...row, fresh: true })),
      },
    ],
    TABLES,
    1 / stagesLeft--,
  )
  tables.push(...result.tables)
  Object.assign(versions, result.versions)
}

function portOf({ tunnel }: Scene): number {
  return tunnel.endpoints[RAW_ORIGIN]!.port
}
