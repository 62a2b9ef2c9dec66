// Runs the benchmark suites, each in a process of its own: `bun benchmarks/index.ts [filter …]`.
//
//   bun benchmarks/index.ts                    all of them, in about an hour
//   bun benchmarks/index.ts throughput         those whose name or file contains the word
//   bun benchmarks/index.ts --quick            a smoke run of every suite, every check and every attack, in two minutes
//   --json FILE      save everything with the environment
//   --compare FILE   ratios against a saved run, marked where they are more than noise
//
// A new suite is one file and one line below; docs/benchmarks.md explains what the file needs.

import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Subprocess } from 'bun'
import { readRun, type SuiteResult, writeJson } from './measure/result.ts'
import { scratch } from './peers/binary.ts'

const suites: readonly { readonly name: string; readonly file: string }[] = [
  { name: 'Utility Functions', file: 'utils.ts' },
  { name: 'Connection Lifecycle', file: 'connection.ts' },
  { name: 'Throughput', file: 'throughput.ts' },
  { name: 'Latency', file: 'latency.ts' },
  { name: 'Scalability', file: 'scalability.ts' },
  { name: 'Cross-Tool Comparison', file: 'comparison.ts' },
  { name: 'Load', file: 'load.ts' },
  { name: 'Transfer', file: 'transfer.ts' },
  { name: 'Memory', file: 'memory.ts' },
  { name: 'Streaming', file: 'streaming.ts' },
  { name: 'Features', file: 'features.ts' },
  { name: 'Scaling', file: 'scaling.ts' },
  { name: 'Frameworks', file: 'frameworks.ts' },
]

/** Besides the suites in a quick run: it has a verdict and no figures to save. */
const ATTACKS = { name: 'Attacks (soak.ts --hostile)', file: 'soak.ts', flags: ['--hostile', '--quick'] }

const { values: options, positionals: filters } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    json: { type: 'string' },
    compare: { type: 'string' },
    rounds: { type: 'string' },
  },
  allowPositionals: true,
})

const isWanted = ({ name, file }: { readonly name: string; readonly file: string }): boolean =>
  filters.length === 0 ||
  filters.some(filter => `${name} ${file}`.toLowerCase().includes(filter.toLowerCase()))
const chosen = suites.filter(isWanted)
const withAttacks = options.quick && isWanted(ATTACKS)
if (chosen.length === 0 && !withAttacks) {
  console.error(
    `no suite matches ${filters.join(' ')}; there are: ${suites.map(({ file }) => file).join(' ')}`,
  )
  process.exit(2)
}

let interrupted = false
let running: Subprocess | null = null
// The suite is in a group of its own, so that it hears of Ctrl+C once, saves what it has and ends its processes.
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    interrupted = true
    running?.kill(signal)
  })
}

const saved = scratch('results')
const results: SuiteResult[] = []
const failed: string[] = []
const began = performance.now()
for (const [index, { name, file }] of chosen.entries()) {
  if (interrupted) break
  const minutes = ((performance.now() - began) / 60_000).toFixed(1)
  process.stderr.write(`\n━━ ${name} (${index + 1} of ${chosen.length}, after ${minutes} min)\n`)
  const json = saved.path(file.replace('.ts', '.json'))
  const flags = [
    '--json',
    json,
    ...(options.quick ? ['--quick'] : []),
    ...(options.compare ? ['--compare', options.compare] : []),
    ...(options.rounds ? ['--rounds', options.rounds] : []),
  ]
  running = Bun.spawn(['bun', join(import.meta.dir, file), ...flags], {
    stdio: ['ignore', 'inherit', 'inherit'],
    detached: true,
  })
  const code = await running.exited
  if (code !== 0) failed.push(`${name} ended with ${code}`)
  if (await Bun.file(json).exists()) results.push(...(await readRun(json)).suites)
}
if (withAttacks && !interrupted) {
  process.stderr.write(`\n━━ ${ATTACKS.name}\n`)
  running = Bun.spawn(['bun', join(import.meta.dir, ATTACKS.file), ...ATTACKS.flags], {
    stdio: ['ignore', 'inherit', 'inherit'],
    detached: true,
  })
  const code = await running.exited
  if (code !== 0) failed.push(`${ATTACKS.name} ended with ${code}`)
}
saved.remove()
if (options.json && results.length > 0) await writeJson(options.json, { suites: results })
for (const line of failed) console.error(line)
process.exit(interrupted ? 130 : failed.length > 0 ? 1 : 0)
