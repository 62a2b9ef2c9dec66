// Large bodies, raw bitrates, and 64-byte round trips. `bun benchmarks/transfer.ts`.

import { datagramRoundTrips } from './load/datagram-trips.ts'
import { hasIperf, iperf, startIperf } from './load/iperf.ts'
import { type BulkLoad, run } from './load/load.ts'
import { hasPostgres, startPostgres, transactions } from './load/postgres.ts'
import { interrupted, stopAll } from './measure/children.ts'
import { column, interleave, type Subject, type Taken } from './measure/interleave.ts'
import type { Group } from './measure/result.ts'
import { startPeers } from './measure/running.ts'
import { conclude, peersOr, printGroup, roundsOr, say, unlessQuick } from './measure/suite.ts'
import { startDatagramEcho, startEcho } from './origin/origin.ts'
import { RAW_ORIGIN } from './peers/assemble.ts'
import { withDatagrams } from './peers/datagrams.ts'
import { choose } from './peers/list.ts'
import { oursJson, oursStreams, oursTcp } from './peers/ours.ts'
import type { Peer, Tunnel } from './peers/peer.ts'

const NAMES = [
  'direct',
  'ours-streams',
  'ours-json',
  'rathole',
  'bore',
  'frp',
  'chisel',
  'ferrotunnel',
  'piko',
]
const rounds = roundsOr(3)
const seconds = unlessQuick(1, 0.2)
const MB = 1_048_576
const groups: Group[] = []

await bulkTransfers()
if (!interrupted.aborted) await bitrates()
if (!interrupted.aborted) await trips()
if (!interrupted.aborted) await datagramTrips()
if (!interrupted.aborted) await database()
await conclude('transfer', 'Transfer', groups)
await stopAll()
process.exit(interrupted.aborted ? 130 : 0)

function show(group: Group): void {
  groups.push(group)
  printGroup(group)
}

async function bulkTransfers(): Promise<void> {
  const { tunnels } = await startPeers(NAMES)
  const columns = [column('mbps', 'rate', 'MB/s', 'higher'), column('success', 'success', '%', 'higher')]
  for (const [name, load] of [
    ['100 MB down, one stream', { kind: 'down', path: '/100m', bytes: 100 * MB, parallel: 1, seconds }],
    ['100 MB up, one stream', { kind: 'up', path: '/', bytes: 100 * MB, parallel: 1, seconds }],
    ['10 × 10 MB down at once', { kind: 'down', path: '/10m', bytes: 10 * MB, parallel: 10, seconds }],
  ] as const satisfies readonly (readonly [string, BulkLoad])[]) {
    const origin = load.kind === 'up' ? 'sink' : 'files'
    const subjects = [...tunnels].map(([peer, tunnel]) => ({
      name: peer,
      take: () => bulk(tunnel, origin, load),
    }))
    show(await interleave(name, columns, subjects, rounds))
  }
  for (const tunnel of tunnels.values()) await tunnel.stop()
}

async function bulk(tunnel: Tunnel, origin: string, load: BulkLoad): Promise<Taken> {
  const { requests, errors, bytes, seconds: took } = await run(tunnel.endpoints[origin]!, load)
  if (requests === 0) return `failed: ${errors} of ${errors} transfers`
  return { mbps: bytes / 1e6 / took, success: (100 * requests) / (requests + errors) }
}

/** Tunnels to one local port, started one at a time: for what is not HTTP. */
async function raw(
  port: number,
  measure: (tunnel: Tunnel, peer: Peer) => Promise<Taken>,
): Promise<readonly Subject[]> {
  const subjects: Subject[] = []
  for (const named of choose(peersOr(NAMES))) {
    const peer = named === oursStreams ? oursTcp : named
    const detected = await peer.detect()
    const take = async (): Promise<Taken> => {
      if ('missing' in detected) return detected.missing
      if (peer.kind === 'http' || peer === oursJson) return 'carries HTTP only'
      const tunnel = await peer.start({ [RAW_ORIGIN]: port })
      try {
        return await measure(tunnel, peer)
      } finally {
        await tunnel.stop()
      }
    }
    subjects.push({ name: peer.name, take })
  }
  return subjects
}

async function bitrates(): Promise<void> {
  if (!hasIperf()) {
    say('TCP and UDP bitrate are left out: iperf3 is not installed')
    return
  }
  const columns = [column('gbit', 'received', 'Gbit/s', 'higher')]
  const server = await startIperf()
  const length = unlessQuick(2, 1)
  for (const streams of [1, 10]) {
    for (const way of ['up', 'down'] as const) {
      const name = `TCP bitrate ${way}, ${streams} stream${streams === 1 ? '' : 's'} (iperf3)`
      const subjects = await raw(server.port, async ({ endpoints }) => {
        const { gbitPerSecond } = await iperf(endpoints[RAW_ORIGIN]!.port, length, { streams, way })
        return { gbit: gbitPerSecond }
      })
      show(await interleave(name, columns, subjects, rounds))
    }
  }
  await server.stop()
  const datagrams = [...columns, column('lost', 'lost', '%', 'lower')]
  show(
    await interleave(
      'UDP bitrate (iperf3 -u -b 0 -l 1400)',
      datagrams,
      await udpSubjects(unlessQuick(4, 1)),
      rounds,
    ),
  )
}

/** The peers that carry datagrams, and none at all. */
async function withDatagramPeers(
  port: number,
  measure: (port: number) => Promise<Taken>,
): Promise<readonly Subject[]> {
  const subjects: Subject[] = [{ name: 'direct', take: () => measure(port) }]
  for (const peer of withDatagrams) {
    const detected = await peer.detect()
    const take = async (): Promise<Taken> => {
      const tunnel = await peer.start({ [RAW_ORIGIN]: port })
      try {
        return await measure(tunnel.endpoints[RAW_ORIGIN]!.port)
      } finally {
        await tunnel.stop()
      }
    }
    if ('missing' in detected) say(`${peer.name}: ${detected.missing}`)
    else subjects.push({ name: peer.name, take })
  }
  return subjects
}

async function datagramTrips(): Promise<void> {
  const echo = await startDatagramEcho()
  const count = unlessQuick(10_000, 200)
  const columns = [
    column('p50', 'p50', 'ms', 'lower'),
    column('p99', 'p99', 'ms', 'lower'),
    column('mean', 'mean', 'ms', 'lower'),
    column('lost', 'lost', '%', 'lower'),
  ]
  const measure = async (port: number): Promise<Taken> => {
    const { latency, lost } = await datagramRoundTrips(port, { bytes: 64, trips: count, warmup: count })
    return latency ? { ...latency, lost: (100 * lost) / (count + lost) } : 'no round trip'
  }
  const name = `${count.toLocaleString('en-US')} round trips of 64 bytes by UDP`
  show(await interleave(name, columns, await withDatagramPeers(echo.port, measure), rounds))
  await echo.stop()
}

async function udpSubjects(length: number): Promise<readonly Subject[]> {
  const measure = async (port: number): Promise<Taken> => {
    const { gbitPerSecond, lost } = await iperf(port, length, { udp: true })
    return { gbit: gbitPerSecond, lost }
  }
  const server = await startIperf()
  return withDatagramPeers(server.port, measure)
}

async function database(): Promise<void> {
  if (!hasPostgres()) {
    say('The database session is left out: PostgreSQL with pgbench is not installed')
    return
  }
  const server = await startPostgres()
  const subjects = await raw(server.port, async ({ endpoints }) => {
    const tps = await transactions(endpoints[RAW_ORIGIN]!.port, unlessQuick(3, 1))
    return { tps }
  })
  const columns = [column('tps', 'transactions/s', '', 'higher')]
  show(await interleave('PostgreSQL, pgbench -S, 10 clients', columns, subjects, rounds))
  await server.stop()
}

async function trips(): Promise<void> {
  const echo = await startEcho()
  const columns = [
    column('p50', 'p50', 'ms', 'lower'),
    column('p90', 'p90', 'ms', 'lower'),
    column('p99', 'p99', 'ms', 'lower'),
    column('p999', 'p99.9', 'ms', 'lower'),
    column('mean', 'mean', 'ms', 'lower'),
  ]
  const count = unlessQuick(10_000, 200)
  const measure = async ({ endpoints }: Tunnel): Promise<Taken> => {
    // About three seconds, as long as the other suites warm their tunnels.
    const load = { kind: 'trips', bytes: 64, trips: count, warmup: 4 * count, seconds: 10 } as const
    const { latency } = await run(endpoints[RAW_ORIGIN]!, load)
    return latency ? { ...latency } : 'no round trip'
  }
  const subjects = await raw(echo.port, measure)
  const name = `${count.toLocaleString('en-US')} round trips of 64 bytes`
  show(await interleave(name, columns, subjects, rounds))
  await echo.stop()
}
