// Latency under a fixed rate up to the knee, then concurrency, then payload sizes. `bun benchmarks/load.ts`.

import { type Load, type LoadResult, run, toolFor } from './load/load.ts'
import { WARM_UP_SECONDS, warmUp } from './load/warm.ts'
import { interrupted, stopAll } from './measure/children.ts'
import { column, interleave, type Subject, type Taken, toRow } from './measure/interleave.ts'
import type { Group } from './measure/result.ts'
import { startPeers } from './measure/running.ts'
import { conclude, printGroup, roundsOr, say, unlessQuick } from './measure/suite.ts'
import type { Tunnel } from './peers/peer.ts'

const { tunnels, versions } = await startPeers([
  'direct',
  'ours-streams',
  'ours-json',
  'rathole',
  'frp-tcp',
  'frp-http',
])
const seconds = unlessQuick(4, 0.2)
const rounds = roundsOr(2)
const groups: Group[] = []

const RATES = unlessQuick(
  [1, 1_000, 2_000, 3_000, 4_000, 6_000, 8_000, 12_000, 16_000, 24_000, 32_000],
  [1, 1_000],
)
const RATE_COLUMNS = [
  column('mean', 'mean', 'ms', 'lower'),
  column('p50', 'p50', 'ms', 'lower'),
  column('p99', 'p99', 'ms', 'lower'),
  column('p999', 'p99.9', 'ms', 'lower'),
  column('success', 'success', '%', 'higher'),
]
const COLUMNS = [
  column('rps', 'requests/s', '', 'higher'),
  column('mbps', 'MB/s', '', 'higher'),
  column('p50', 'p50', 'ms', 'lower'),
  column('p95', 'p95', 'ms', 'lower'),
  column('p99', 'p99', 'ms', 'lower'),
  column('success', 'success', '%', 'higher'),
]

/** Beyond this a tunnel does not keep up: higher rates would only measure its queue. */
const KNEE_P99_MS = 100
const KNEE_SUCCESS = 99

await warmUp(tunnels.values(), unlessQuick(WARM_UP_SECONDS, 0.2))
for (const [name, tunnel] of tunnels) show(await openLoop(name, tunnel))
for (const count of unlessQuick([10, 50, 100, 200, 500, 1000], [10])) {
  const load = { kind: 'closed', path: '/20', connections: count, seconds } as const
  show(await interleave(`Concurrency: ${count} connections, 20 B`, COLUMNS, subjects(load), rounds))
}
for (const [title, path] of unlessQuick(
  [
    ['1 KB', '/1k'],
    ['10 KB', '/10k'],
    ['100 KB', '/100k'],
    ['1 MB', '/1m'],
    ['10 MB', '/10m'],
  ],
  [['1 KB', '/1k']],
) as readonly (readonly [string, string])[]) {
  const load = { kind: 'closed', path, connections: 10, seconds } as const
  show(await interleave(`Payload: ${title}, 10 connections`, COLUMNS, subjects(load), rounds))
}
await conclude('load', 'Load', groups, {
  ...versions,
  'open loop': toolFor({ kind: 'open', path: '', rate: 1, seconds: 1 }),
})
await stopAll()
process.exit(interrupted.aborted ? 130 : 0)

function show(group: Group): void {
  groups.push(group)
  printGroup(group)
}

function subjects(load: Load): readonly Subject[] {
  return [...tunnels].map(([name, tunnel]) => ({
    name,
    take: async () => figures(await run(tunnel.endpoints.files!, load)),
  }))
}

async function openLoop(name: string, tunnel: Tunnel): Promise<Group> {
  const rows = []
  let beyondKnee = false
  for (const rate of RATES) {
    if (beyondKnee || interrupted.aborted) break
    say(`Open loop: ${name} at ${rate}/s`)
    const taken: Taken[] = []
    for (let round = 0; round < rounds && !interrupted.aborted; round++) {
      // Ten requests at least, or a percentile means nothing.
      const load = {
        kind: 'open',
        path: '/20',
        rate,
        seconds: Math.max(seconds, unlessQuick(10, 1) / rate),
      } as const
      taken.push(await run(tunnel.endpoints.files!, load).then(figures, (error: unknown) => String(error)))
    }
    rows.push(toRow(`${rate.toLocaleString('en-US')} requests/s`, RATE_COLUMNS, taken))
    beyondKnee = taken.some(
      one => typeof one !== 'string' && (one.p99! > KNEE_P99_MS || one.success! < KNEE_SUCCESS),
    )
  }
  return {
    name: `Open loop: ${name}`,
    columns: RATE_COLUMNS,
    rows,
    note: beyondKnee ? 'The last row is beyond the knee: the queue grows.' : 'The knee was not reached.',
  }
}

function figures(result: LoadResult): Taken {
  const { latency } = result
  const all = result.requests + (result.tool === 'wrk' ? result.errors : 0)
  const good = result.tool === 'wrk' ? result.requests : result.requests - result.errors
  return {
    rps: result.requests / result.seconds,
    mbps: result.bytes / 1e6 / result.seconds,
    success: (100 * good) / Math.max(1, all),
    ...(latency && { ...latency }),
  }
}
