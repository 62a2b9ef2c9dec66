// Runs the benchmark suites, each in a process of its own: `bun benchmarks/index.ts [word …]`.
//
//   bun benchmarks/index.ts              all that end within the hour
//   bun benchmarks/index.ts throughput   those whose name or file contains the word
//   bun benchmarks/index.ts wan          a long one, which runs only when it is named
//   bun benchmarks/index.ts --quick      a smoke run of every suite, every check and every attack, in minutes
//
// Exits with 1 when ours was missing, failed or answered wrongly in any of them. A peer that is missing is left out.
// A new suite is one file and one line below; docs/benchmarks.md explains what the file needs.

import { join } from 'node:path'
import { readRun, type SuiteResult, writeRun } from './measure/result.ts'
import { options, refuse } from './measure/suite.ts'
import { scratch } from './peers/binary.ts'

interface Suite {
  readonly name: string
  readonly file: string
  /** `figures`: takes the arguments and saves. `prints`: only prints. `long`: prints, and runs only when it is named. */
  readonly kind: 'figures' | 'prints' | 'long'
  readonly flags?: readonly string[]
}

const SUITES: readonly Suite[] = [
  { name: 'Utility Functions', file: 'utils.ts', kind: 'figures' },
  { name: 'Connection Lifecycle', file: 'connection.ts', kind: 'figures' },
  { name: 'Throughput', file: 'throughput.ts', kind: 'figures' },
  { name: 'Latency', file: 'latency.ts', kind: 'figures' },
  { name: 'Scalability', file: 'scalability.ts', kind: 'figures' },
  { name: 'Cross-Tool Comparison', file: 'comparison.ts', kind: 'figures' },
  { name: 'Speed', file: 'speed.ts', kind: 'figures' },
  { name: 'Bytes and datagrams', file: 'raw.ts', kind: 'figures' },
  { name: 'Memory and start-up', file: 'memory.ts', kind: 'figures' },
  { name: 'Ours alone', file: 'ours-only.ts', kind: 'figures' },
  { name: 'Features', file: 'features.ts', kind: 'figures' },
  { name: 'Frameworks', file: 'frameworks.ts', kind: 'figures' },
  { name: 'Fidelity', file: 'fidelity.ts', kind: 'figures' },
  { name: 'Faults', file: 'faults.ts', kind: 'figures' },
  { name: 'More than one server', file: 'scaling.ts', kind: 'figures' },
  { name: 'Heads', file: 'heads.ts', kind: 'prints' },
  { name: 'HTTP/2', file: 'http2.ts', kind: 'prints' },
  { name: 'A slow road', file: 'wan.ts', kind: 'long' },
  { name: 'Handshakes', file: 'handshakes.ts', kind: 'long' },
  { name: 'Stalled readers', file: 'stalled.ts', kind: 'long' },
  { name: 'Chaos', file: 'chaos.ts', kind: 'long' },
  { name: 'Replaced servers', file: 'rolling.ts', kind: 'long' },
  { name: 'Size of a cluster', file: 'cluster-size.ts', kind: 'long' },
  { name: 'Soak', file: 'soak.ts', kind: 'long' },
  { name: 'Fuzz', file: 'fuzz.ts', kind: 'long' },
]

/** Besides the suites in a quick run: they have a verdict and no figures. */
const VERDICTS: readonly Suite[] = [
  { name: 'Chaos', file: 'chaos.ts', kind: 'prints', flags: ['--quick'] },
  { name: 'Attacks', file: 'soak.ts', kind: 'prints', flags: ['--hostile', '--quick'] },
]

const matches = ({ name, file }: Suite): boolean =>
  options.words.some(word => `${name} ${file}`.toLowerCase().includes(word.toLowerCase()))
const isWanted = (suite: Suite): boolean =>
  options.words.length > 0
    ? matches(suite)
    : suite.kind === 'figures' || (suite.kind === 'prints' && !options.quick)
const chosen = SUITES.filter(isWanted).filter(({ kind }) => !options.quick || kind === 'figures')
if (options.quick) chosen.push(...VERDICTS.filter(suite => options.words.length === 0 || matches(suite)))
if (chosen.length === 0) {
  refuse(
    `no suite matches ${options.words.join(' ')}; there are: ${SUITES.map(({ file }) => file).join(' ')}`,
  )
}
if (options.compare !== undefined) {
  await readRun(options.compare).catch((error: unknown) =>
    refuse(error instanceof Error ? error.message : String(error)),
  )
}

let interrupted = false
let running: Bun.Subprocess | null = null
// The suite is in a group of its own, so that it gets Ctrl+C once, saves what it has and ends its processes.
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    interrupted = true
    running?.kill(signal)
  })
}

const saved = scratch('results')
const shared = process.argv
  .slice(2)
  .filter((word, i, all) => !options.words.includes(word) && !isJson(word, all[i - 1]))
const results: SuiteResult[] = []
const failed: string[] = []
const began = performance.now()
for (const [index, { name, file, kind, flags = [] }] of chosen.entries()) {
  if (interrupted) break
  const minutes = ((performance.now() - began) / 60_000).toFixed(1)
  process.stderr.write(`\n━━ ${name} (${index + 1} of ${chosen.length}, after ${minutes} min)\n`)
  const json = saved.path(file.replace('.ts', '.json'))
  const more = kind === 'figures' ? [...shared, '--json', json] : flags
  running = Bun.spawn(['bun', join(import.meta.dir, file), ...more], {
    stdio: ['ignore', 'inherit', 'inherit'],
    detached: true,
  })
  const code = await running.exited
  if (code !== 0) failed.push(`error: ${name} ended with ${code}`)
  if (await Bun.file(json).exists()) results.push(...(await readRun(json)).suites)
}
if (options.json !== undefined && results.length > 0) await writeRun(options.json, results)
for (const line of failed) console.error(line)
process.exit(interrupted ? 130 : failed.length > 0 ? 1 : 0)

function isJson(word: string, before: string | undefined): boolean {
  return word === '--json' || before === '--json' || word.startsWith('--json=')
}
