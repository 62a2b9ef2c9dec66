// What each optional feature costs, alone and all together, as a share of the bare path. `bun benchmarks/features.ts`
//
// Features are listed in ours/features.ts and grow there; what cannot be switched on yet says so.

import { run } from './load/load.ts'
import { interrupted, stopAll } from './measure/children.ts'
import { column, interleave, reasonOf, type Subject, type Taken } from './measure/interleave.ts'
import { observe } from './measure/observe.ts'
import type { Figure, Group, ResultRow } from './measure/result.ts'
import { conclude, printGroup, roundsOr, unlessQuick } from './measure/suite.ts'
import { startOrigins } from './origin/origin.ts'
import { FEATURES } from './ours/features.ts'
import { oursWith } from './peers/ours.ts'
import type { Tunnel } from './peers/peer.ts'

const BARE = 'bare path'
const origins = await startOrigins('nginx')
const built = FEATURES.filter(({ at }) => at !== 'none').map(({ name }) => name)
const columns = [
  column('rps', 'requests/s', '', 'higher'),
  column('p95', 'p95', 'ms', 'lower'),
  column('p99', 'p99', 'ms', 'lower'),
  column('cpu100k', 'CPU s per 100k', '', 'lower'),
]

const subjects: Subject[] = [await withFeatures(BARE, [])]
for (const { name, at } of FEATURES) {
  subjects.push(
    at === 'none' ? { name, take: () => Promise.resolve('not built') } : await withFeatures(name, [name]),
  )
}
subjects.push(await withFeatures(`all that are built (${built.length})`, built))

const group = withShares(
  await interleave('GET 20 B, 50 connections, streams wire', columns, subjects, roundsOr(3)),
)
printGroup(group)
await conclude('features', 'Features', [group])
await stopAll()
process.exit(interrupted.aborted ? 130 : 0)

async function withFeatures(name: string, features: readonly string[]): Promise<Subject> {
  const tunnel = await oursWith(features).start({ files: origins.ports.files! }).catch(reasonOf)
  if (typeof tunnel === 'string') return { name, take: () => Promise.resolve(tunnel) }
  return { name, take: () => measure(tunnel) }
}

async function measure(tunnel: Tunnel): Promise<Taken> {
  const load = { kind: 'closed', path: '/20', connections: 50, seconds: unlessQuick(3, 0.2) } as const
  return observe(tunnel, origins.pids, () => run(tunnel.endpoints.files!, load))
}

/** Requests a second as a percentage of the bare path. */
function withShares(measured: Group): Group {
  const rate = ({ cells }: ResultRow): number => (cells.rps as Figure | undefined)?.value ?? Number.NaN
  const bare = rate(measured.rows.find(({ name }) => name === BARE)!)
  const share = column('share', 'of the bare path', '%', 'higher')
  const rows = measured.rows.map(row => {
    const cell = typeof row.cells.rps === 'string' ? row.cells.rps : { value: (100 * rate(row)) / bare }
    return { ...row, cells: { ...row.cells, share: cell } }
  })
  return { ...measured, columns: [...measured.columns, share], rows }
}
