// Resident memory idle, held, under load and over time; garbage collection pauses. `bun benchmarks/memory.ts [--hours N]`.

import { join } from 'node:path'
import { ROWS } from './ahead/rows.ts'
import { run } from './load/load.ts'
import { interrupted, launch, stopAll } from './measure/children.ts'
import { column, interleave, type Subject, type Taken } from './measure/interleave.ts'
import { growthPerHour, type MemorySamples, sampleWhile } from './measure/memory-samples.ts'
import { openFiles } from './measure/proc.ts'
import type { Group } from './measure/result.ts'
import { percentile, summarize } from './measure/samples.ts'
import { conclude, hours, peersOr, printGroup, roundsOr, say, unlessQuick } from './measure/suite.ts'
import { startOrigins } from './origin/origin.ts'
import { choose } from './peers/list.ts'
import { endpoint, type Peer, type Tunnel } from './peers/peer.ts'

const NAMES = ['ours-streams', 'ours-json', 'rathole', 'bore', 'frp-tcp', 'ferrotunnel']
/** The soak does these in turn. */
const SOAK_STEPS = [
  { kind: 'closed', path: '/20', connections: 50 },
  { kind: 'closed', path: '/64k', connections: 10 },
  { kind: 'closed', path: '/20', connections: 20, reconnect: true },
  { kind: 'open', path: '/1k', rate: 500 },
  { kind: 'closed', path: '/1m', connections: 4 },
] as const

const groups: Group[] = []
const origins = await startOrigins('nginx')
const peers: Peer[] = []
for (const peer of choose(peersOr(NAMES))) {
  const detected = await peer.detect()
  if ('missing' in detected) say(`${peer.name}: ${detected.missing}`)
  else peers.push(peer)
}

for (const part of [idleAndHeld, underLoad, soak, collections]) {
  if (interrupted.aborted) break
  const group = await part()
  groups.push(group)
  printGroup(group)
}
await conclude('memory', 'Memory', groups)
await stopAll()
process.exit(interrupted.aborted ? 130 : 0)

/** Every peer in processes of its own, started for the measurement. */
function fresh(measure: (tunnel: Tunnel, peer: Peer) => Promise<Taken>): readonly Subject[] {
  return peers.map(peer => ({
    name: peer.name,
    async take() {
      const tunnel = await peer.start({ files: origins.ports.files! })
      try {
        return await measure(tunnel, peer)
      } finally {
        await tunnel.stop()
      }
    },
  }))
}

function idleAndHeld(): Promise<Group> {
  const columns = [
    column('idleServerMb', 'server idle', 'MB', 'lower'),
    column('idleClientMb', 'client idle', 'MB', 'lower'),
    column('heldServerMb', 'server, 1,000 connections', 'MB', 'lower'),
    column('heldClientMb', 'client, 1,000 connections', 'MB', 'lower'),
    column('kbPerConnection', 'per connection, both ends', 'KB', 'lower'),
  ]
  const held = ROWS.find(({ id }) => id === 'held')!
  return interleave(
    'Idle, and with 1,000 open connections',
    columns,
    fresh(tunnel => held.run(tunnel, [], 1)),
    roundsOr(3),
  )
}

async function underLoad(): Promise<Group> {
  const seconds = unlessQuick(60, 1)
  const series: { name: string; points: readonly (readonly [number, number])[] }[] = []
  const columns = [
    column('server', 'server, median', 'MB', 'lower'),
    column('serverMax', 'server, peak', 'MB', 'lower'),
    column('client', 'client, median', 'MB', 'lower'),
    column('clientMax', 'client, peak', 'MB', 'lower'),
  ]
  const subjects = fresh(async (tunnel, peer) => {
    const samples = await sampleWhile(tunnel.processes, 500, async () => {
      await run(tunnel.endpoints.files!, { kind: 'open', path: '/20', rate: 1_000, seconds })
    })
    series.push({ name: `${peer.name} server`, points: samples.server })
    return { ...spreadOf('server', samples.server), ...spreadOf('client', samples.client) }
  })
  const group = await interleave(`${seconds} s at 1,000 requests/s`, columns, subjects, 1)
  return { ...group, chart: { x: 'seconds', y: 'server, MB', series } }
}

function spreadOf(end: string, points: MemorySamples['server']): Record<string, number> {
  const { median, max } = summarize(points.map(([, megabytes]) => megabytes))
  return { [end]: median, [`${end}Max`]: max }
}

/** Sizes, rates, held and dropped connections mixed: minutes by default. */
async function soak(): Promise<Group> {
  const seconds = hours === null ? unlessQuick(300, 2) : hours * 3600
  const columns = [
    column('requests', 'requests', ''),
    column('success', 'success', '%', 'higher'),
    column('serverEnd', 'server at the end', 'MB', 'lower'),
    column('serverGrowth', 'server growth per hour', 'MB'),
    column('clientEnd', 'client at the end', 'MB', 'lower'),
    column('clientGrowth', 'client growth per hour', 'MB'),
    column('files', 'open files more than at the start', ''),
  ]
  const series: { name: string; points: readonly (readonly [number, number])[] }[] = []
  const subjects = fresh(async (tunnel, peer) => {
    const pids = [...tunnel.processes.server, ...tunnel.processes.client]
    const filesBefore = openFiles(pids)
    let [requests, errors] = [0, 0]
    const samples = await sampleWhile(tunnel.processes, Math.max(200, (seconds * 1000) / 600), async () => {
      const end = performance.now() + seconds * 1000
      for (let step = 0; performance.now() < end && !interrupted.aborted; step++) {
        const load = SOAK_STEPS[step % SOAK_STEPS.length]!
        const result = await run(tunnel.endpoints.files!, { ...load, seconds: unlessQuick(5, 0.2) })
        requests += result.requests
        errors += result.errors
      }
    })
    series.push({ name: `${peer.name} server`, points: samples.server })
    series.push({ name: `${peer.name} client`, points: samples.client })
    // Connections of the last step are closed by then on both sides, but not yet by those who wait for it.
    await Bun.sleep(1_000)
    return {
      requests,
      success: (100 * requests) / Math.max(1, requests + errors),
      serverEnd: samples.server.at(-1)![1],
      serverGrowth: growthPerHour(samples.server),
      clientEnd: samples.client.at(-1)![1],
      clientGrowth: growthPerHour(samples.client),
      files: openFiles(pids) - filesBefore,
    }
  }).filter(({ name }) => name.startsWith('ours'))
  const group = await interleave(`Soak, ${seconds} s of mixed load`, columns, subjects, 1)
  return { ...group, chart: { x: 'seconds', y: 'MB', series } }
}

/** How often and how long our processes stop for garbage, while a fixed rate shows what it does to latency. */
async function collections(): Promise<Group> {
  const pauses = { server: [] as number[], client: [] as number[] }
  const start = (end: 'server' | 'client', args: readonly string[], ready: RegExp) =>
    launch(['bun', join(import.meta.dir, `ours/${end}.ts`), ...args], {
      ready,
      // JavaScriptCore's own log: one line per collection, `p=` is how long the program stood still.
      env: { BUN_JSC_logGC: '1' },
      onLine: line => {
        for (const [, ms] of line.matchAll(/\bp=([\d.]+)ms/g)) pauses[end].push(Number(ms))
      },
    })
  const server = await start('server', [], /^listening (\d+)$/)
  const port = Number(server.match?.[1])
  const client = await start(
    'client',
    [String(port), String(origins.ports.files), 'gc', 'streams'],
    /^connected /,
  )
  const seconds = unlessQuick(20, 1)
  const to = endpoint(port, `gc.localhost:${port}`)
  const { latency } = await run(to, { kind: 'open', path: '/1k', rate: unlessQuick(4_000, 500), seconds })
  await client.stop()
  await server.stop()
  const row = (name: 'server' | 'client') => {
    const sorted = pauses[name].toSorted((a, b) => a - b)
    const figures = {
      perSecond: sorted.length / seconds,
      p50: percentile(sorted, 50),
      max: sorted.at(-1) ?? 0,
      share: (100 * sorted.reduce((sum, ms) => sum + ms, 0)) / (seconds * 1000),
    }
    return {
      name,
      cells: Object.fromEntries(Object.entries(figures).map(([key, value]) => [key, { value }])),
    }
  }
  return {
    name: 'Garbage collection at a fixed rate of small requests',
    columns: [
      column('perSecond', 'pauses per second', ''),
      column('p50', 'median pause', 'ms', 'lower'),
      column('max', 'longest pause', 'ms', 'lower'),
      column('share', 'share of time', '%', 'lower'),
    ],
    rows: [row('server'), row('client')],
    ...(latency && {
      note: `Meanwhile requests took p50 ${latency.p50.toFixed(2)}, p99 ${latency.p99.toFixed(2)}, p99.9 ${latency.p999.toFixed(2)} ms.`,
    }),
  }
}
