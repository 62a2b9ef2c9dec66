// Runs the benchmark suites, each in a process of its own: `bun benchmarks/index.ts [word …]`.
//
//   bun benchmarks/index.ts              all that have figures: 70 minutes on two cores, with all peers
//   bun benchmarks/index.ts throughput   those whose name or file contains the word
//   bun benchmarks/index.ts soak         a long one, which runs only when it is named
//   bun benchmarks/index.ts --quick      a smoke run of every suite, every check and every attack, in minutes
//   bun benchmarks/index.ts --minutes 12 the rows that say most, in the time there is
//
// Exits with 1 when ours was missing, failed or answered wrongly in any of them. A peer that is missing is left out.
// A new suite is one file and one line below; docs/benchmarks.md explains what the file needs.

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { readRun, type SuiteResult, writeRun } from './measure/result.ts'
import { options, refuse, savedRun } from './measure/suite.ts'
import { scratch } from './peers/binary.ts'

interface Suite {
  readonly name: string
  readonly file: string
  /** `figures`: takes the arguments and saves. `prints`: only prints, and runs only when it is named. */
  readonly kind: 'figures' | 'prints'
  readonly flags?: string
  /** Of `--minutes`, its share; and what it measures then, since not everything can be measured in minutes. */
  readonly share?: number
  readonly inTime?: string
  /** Left out of a smoke run, and where the user is another one. */
  readonly needsRoot?: true
}

const MAIN = 'direct,nginx-hop,ours,ours-cli,rathole,bore,frp-nomux,nginx-tls,nginx-tls+'
const FEW = 'direct,ours,ours-cli,rathole,frp-nomux'

/** What says most comes first: a run that is stopped keeps what was measured. */
const SUITES: readonly Suite[] = [
  {
    name: 'Speed',
    file: 'speed.ts',
    kind: 'figures',
    share: 60,
    inTime: `--seconds 0.3 --peers ${MAIN} --only t1,t10,t50,t100,t500,t1000,10k10,64k10,1m10,10m10,r1000,r4000,down,first10m,post,site,node,websocket,tls50,tlssite,h2`,
  },
  {
    name: 'Memory and start-up',
    file: 'memory.ts',
    kind: 'figures',
    share: 7,
    inTime:
      '--rounds 3 --only held1000,start,version,load,collections,many --peers ours,ours-cli,rathole,bore,frp-nomux,frp-mux',
  },
  {
    name: 'Bytes and datagrams',
    file: 'raw.ts',
    kind: 'figures',
    share: 6,
    inTime: `--rounds 3 --only trips,datagrams,up1,udp --peers ${FEW},frp-mux`,
  },
  {
    name: 'Fidelity',
    file: 'fidelity.ts',
    kind: 'figures',
    share: 6,
    inTime: '--peers ours-cli,frp-http',
  },
  {
    name: 'Faults',
    file: 'faults.ts',
    kind: 'figures',
    share: 3,
    inTime: '--rounds 3 --only client-killed,cut --peers ours-cli,rathole,frp-http',
  },
  {
    name: 'A slow road',
    file: 'wan.ts',
    kind: 'figures',
    needsRoot: true,
    share: 5,
    inTime: `--only wan-down,wan-small --seconds 2 --peers ${FEW}`,
  },
  {
    name: 'Features',
    file: 'features.ts',
    kind: 'figures',
    share: 4,
    inTime: '--only features --rounds 3 --seconds 0.35',
  },
  {
    name: 'Frameworks',
    file: 'frameworks.ts',
    kind: 'figures',
    share: 5,
    inTime: '--rounds 3 --seconds 0.3 --peers direct,ours,ours-cli',
  },
  {
    name: 'More than one server',
    file: 'scaling.ts',
    kind: 'figures',
    share: 3,
    inTime: '--only small --peers one,two,two-other,workers-1,workers-2',
  },
  { name: 'Cross-Tool Comparison', file: 'comparison.ts', kind: 'figures', share: 5, inTime: '--rounds 3' },
  { name: 'Connection Lifecycle', file: 'connection.ts', kind: 'figures', share: 1 },
  { name: 'Throughput', file: 'throughput.ts', kind: 'figures', share: 2.5 },
  { name: 'Latency', file: 'latency.ts', kind: 'figures', share: 2.5 },
  { name: 'Scalability', file: 'scalability.ts', kind: 'figures', share: 2.5 },
  { name: 'Utility Functions', file: 'utils.ts', kind: 'figures', share: 2 },
  {
    name: 'Rows that others publish',
    file: 'published.ts',
    kind: 'figures',
    share: 8,
    inTime: `--rounds 3 --seconds 0.3 --peers ${FEW},frp-mux`,
  },
  { name: 'Other load generators', file: 'generators.ts', kind: 'figures', share: 3, inTime: '--rounds 1' },
  { name: 'Soak', file: 'soak.ts', kind: 'prints' },
]

/** Besides the suites in a quick run: they have a verdict and no figures. */
const VERDICTS: readonly Suite[] = [
  { name: 'Gate', file: 'speed.ts', kind: 'prints', flags: await gateFlags() },
  { name: 'Chaos', file: '../test/chaos/run.ts', kind: 'prints', flags: '--quick' },
  { name: 'Attacks', file: '../test/hostile/run.ts', kind: 'prints', flags: '--quick' },
]

const matches = ({ name, file }: Suite): boolean =>
  options.words.some(word => `${name} ${file}`.toLowerCase().includes(word.toLowerCase()))
const isRoot = process.getuid?.() === 0
const isWanted = (suite: Suite): boolean =>
  options.words.length > 0
    ? matches(suite)
    : suite.kind === 'figures' && !(suite.needsRoot && (options.quick || !isRoot))
const chosen = SUITES.filter(isWanted).filter(({ kind }) => !options.quick || kind === 'figures')
if (options.quick) chosen.push(...VERDICTS.filter(suite => options.words.length === 0 || matches(suite)))
if (chosen.length === 0) {
  refuse(
    `no suite matches ${options.words.join(' ')}; there are: ${SUITES.map(({ file }) => file).join(' ')}`,
  )
}
const { json: target } = options
/** Of an earlier run into the same file: what is not measured anew stays, with the commit and the date that it has. */
const earlier = target !== undefined && existsSync(target) ? (await savedRun(target)).suites : []
if (earlier.some(({ quick }) => quick !== options.quick))
  refuse(`${target} has a smoke run in it, or would get one`)

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
  .filter((word, i, all) => !options.words.includes(word) && !isOwn(word, all[i - 1]))
const results: SuiteResult[] = []
const failed: string[] = []
const began = performance.now()
const shares = chosen.reduce((sum, { share = 0 }) => sum + share, 0)
for (const [index, { name, file, kind, flags = '', share = 0, inTime }] of chosen.entries()) {
  if (interrupted) break
  const minutes = ((performance.now() - began) / 60_000).toFixed(1)
  process.stderr.write(`\n━━ ${name} (${index + 1} of ${chosen.length}, after ${minutes} min)\n`)
  const json = saved.path(`${index}.json`)
  const own = (words: string): readonly string[] => words.split(' ').filter(Boolean)
  const inShare =
    options.minutes === undefined
      ? []
      : [...own(inTime ?? ''), '--minutes', ((options.minutes * share) / shares).toFixed(2)]
  const more = kind === 'figures' ? [...inShare, ...shared, '--json', json] : own(flags)
  running = Bun.spawn(['bun', join(import.meta.dir, file), ...more], {
    stdio: ['ignore', 'inherit', 'inherit'],
    detached: true,
  })
  const code = await running.exited
  if (code !== 0) failed.push(`error: ${name} ended with ${code}`)
  if (await Bun.file(json).exists()) results.push(...(await readRun(json)).suites)
  if (target !== undefined) await writeRun(target, merged(earlier, results))
}
for (const line of failed) console.error(line)
process.exit(interrupted ? 130 : failed.length > 0 ? 1 : 0)

/** Flags of this program, which each suite gets with values of its own. */
function isOwn(word: string, before: string | undefined): boolean {
  return (
    [word, before].some(one => /^--(?:json|minutes)$/.test(one ?? '')) || /^--(?:json|minutes)=/.test(word)
  )
}

/** One row of each way through ours, against the saved run: a build that got slow fails. */
async function gateFlags(): Promise<string> {
  const { version } = (await Bun.file(join(import.meta.dir, '../package.json')).json()) as { version: string }
  const saved = join(import.meta.dir, `results/${version}.json`)
  return `--gate ${saved} --rounds 3 --seconds 0.4 --only t1,t10,post,tls50 --peers nginx-hop,nginx-tls,ours-cli`
}

/** In the order of the list above. */
function merged(old: readonly SuiteResult[], now: readonly SuiteResult[]): readonly SuiteResult[] {
  const all = new Map([...old, ...now].map(one => [`${one.suite}.ts`, one]))
  return SUITES.flatMap(({ file }) => all.get(file) ?? [])
}
