// More server processes, and more tunnels on one server. `bun benchmarks/scaling.ts`

import { join } from 'node:path'
import { run } from './load/load.ts'
import { type Child, interrupted, launch, stopAll } from './measure/children.ts'
import { column, interleave, type Subject, type Taken } from './measure/interleave.ts'
import { residentBytes } from './measure/proc.ts'
import type { Figure, Group } from './measure/result.ts'
import { conclude, printGroup, roundsOr, unlessQuick } from './measure/suite.ts'
import { startOrigins } from './origin/origin.ts'
import { oursStreams } from './peers/ours.ts'
import { endpoint, type Tunnel } from './peers/peer.ts'

const CONNECTIONS = 48
const seconds = unlessQuick(3, 0.2)
const rounds = roundsOr(3)
const origins = await startOrigins('nginx')
const groups: Group[] = []

for (const part of [processes, tunnels]) {
  if (interrupted.aborted) break
  const group = await part()
  groups.push(group)
  printGroup(group)
}
await conclude('scaling', 'Scaling', groups)
await stopAll()
process.exit(interrupted.aborted ? 130 : 0)

/** So many servers with a client each, the same number of connections over all of them. */
async function processes(): Promise<Group> {
  const columns = [column('rps', 'requests/s', '', 'higher'), column('p99', 'p99, worst', 'ms', 'lower')]
  const subjects: Subject[] = []
  for (const count of unlessQuick([1, 2, 4], [1, 2])) {
    const running: Tunnel[] = []
    for (let i = 0; i < count; i++) running.push(await oursStreams.start({ files: origins.ports.files! }))
    subjects.push({ name: `${count} server process${count === 1 ? '' : 'es'}`, take: () => atOnce(running) })
  }
  const group = await interleave(
    `Server processes, ${CONNECTIONS} connections in all`,
    columns,
    subjects,
    rounds,
  )
  const one = (group.rows[0]!.cells.rps as Figure).value
  const rows = group.rows.map((row, i) => {
    const { rps } = row.cells
    const count = Number(subjects[i]!.name.split(' ')[0])
    return {
      ...row,
      cells: {
        ...row.cells,
        efficiency: typeof rps === 'object' ? { value: (100 * rps.value) / one / count } : '–',
      },
    }
  })
  return {
    ...group,
    columns: [...columns, column('efficiency', 'efficiency', '%', 'higher')],
    rows,
    note: `${navigator.hardwareConcurrency} cores here carry servers, clients, the app and the load: two of each already want more.`,
  }
}

async function atOnce(running: readonly Tunnel[]): Promise<Taken> {
  const connections = CONNECTIONS / running.length
  const results = await Promise.all(
    running.map(({ endpoints }) =>
      run(endpoints.files!, { kind: 'closed', path: '/20', connections, seconds }),
    ),
  )
  return {
    rps: results.reduce((sum, result) => sum + result.requests / result.seconds, 0),
    p99: Math.max(...results.map(({ latency }) => latency?.p99 ?? Number.NaN)),
  }
}

/** One tunnel is asked while so many are registered: its latency must not know of the others. */
async function tunnels(): Promise<Group> {
  const columns = [
    column('rps', 'requests/s', '', 'higher'),
    column('p50', 'p50', 'ms', 'lower'),
    column('p99', 'p99', 'ms', 'lower'),
    column('serverMb', 'server memory', 'MB', 'lower'),
    column('registerMs', 'all registered after', 'ms', 'lower'),
  ]
  const subjects = unlessQuick([1, 10, 50, 1_000, 5_000], [1, 50]).map(count => crowd(count))
  return interleave('Registered tunnels, GET 20 B, 50 connections to one of them', columns, subjects, rounds)
}

function crowd(count: number): Subject {
  return {
    name: `${count.toLocaleString('en-US')} tunnel${count === 1 ? '' : 's'}`,
    async take() {
      const children: Child[] = []
      try {
        const server = await launch(['bun', join(import.meta.dir, 'ours/server.ts')], {
          ready: /^listening (\d+)$/,
        })
        children.push(server)
        const port = String(server.match?.[1])
        const began = performance.now()
        const program = join(import.meta.dir, 'ours/crowd.ts')
        const args = [port, String(origins.ports.files), String(count), 'streams']
        children.push(await launch(['bun', program, ...args], { ready: /^registered /, deadlineMs: 60_000 }))
        const registerMs = performance.now() - began
        const to = endpoint(Number(port), `n0.localhost:${port}`)
        const load = { kind: 'closed', path: '/20', connections: 50, seconds } as const
        const { requests, seconds: took, latency } = await run(to, load)
        if (!latency) return 'no answer'
        const serverMb = residentBytes([server.pid]) / 1e6
        return { rps: requests / took, p50: latency.p50, p99: latency.p99, serverMb, registerMs }
      } finally {
        for (const child of children.toReversed()) await child.stop()
      }
    },
  }
}
