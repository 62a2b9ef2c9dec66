// Attacks beside honest visitors whose every byte is checked: `bun test/hostile/run.ts`.
//
//   --minutes N         for all attacks together (default 10)
//   --quick             about a second for each: that everything runs, and nothing is wrong, lost or dead;
//                       an attack that did harm beside others is run again alone
//   --only a,b          attacks of these names, or whose names contain them
//   --source DIR        the tree under test (default this one): an older commit to compare with
//   --json FILE         save the figures
//   --write             put what it found into docs/security.md, and its rows beside it
//   --list              the names
//
// An attack that made honest answers late, and did nothing else, is run again for 30 s and judged by that. Prints a line for each
// attack as it ends, then the table. Exits with 1 when one did harm.

import { resolve } from 'node:path'
import { interrupted } from '../../benchmarks/measure/children.ts'
import { readFlags } from '../../benchmarks/measure/flags.ts'
import { ATTACKS } from './attacks/index.ts'
import type { Attack } from './scene/attack.ts'
import type { Finding } from './scene/judge.ts'
import { findingsTable, lineOf, writeFindings } from './scene/print.ts'
import { runTrial } from './scene/trial.ts'

const options = readFlags(
  import.meta.path,
  {
    minutes: { type: 'string', default: '10' },
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
    source: { type: 'string', default: resolve(import.meta.dir, '../..') },
    json: { type: 'string' },
    write: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    p99: { type: 'string' },
  },
  ['minutes', 'p99'],
)

const wanted = options.only?.split(',')
const isName = (part: string): boolean => ATTACKS.some(({ name }) => name === part)
const chosen = ATTACKS.filter(
  ({ name }) =>
    wanted === undefined || wanted.some(part => (isName(part) ? name === part : name.includes(part))),
)
if (options.list) {
  for (const { name, does } of ATTACKS) console.log(`${name.padEnd(24)} ${does}`)
  process.exit(0)
}
if (chosen.length === 0) {
  console.error(`no attack matches ${options.only}; --list shows them`)
  process.exit(2)
}

/** A scene takes about this long to start, warm up and recover, beside the attack itself. */
const SCENE_SECONDS = 6
const seconds = options.quick
  ? 1
  : Math.max(3, (Number(options.minutes) * 60) / chosen.length - SCENE_SECONDS)
const trial = {
  source: resolve(options.source),
  seconds,
  isQuick: options.quick,
  warmMs: options.quick ? 300 : 2_000,
  recoveryMs: 5_000,
  // A smoke run judges no latency: the machines of a CI are too different, and a second has too few requests.
  p99Ms: Number(options.p99 ?? (options.quick ? 3_000 : 100)),
}

/**
 * The 99th percentile of four seconds is the fourth slowest of 320 requests: a single stall of the machine decides. Those that were only
 * late are judged by 2,000 requests.
 */
const LONG_SECONDS = 30

/** A smoke run mostly waits for processes to start and to end. */
const QUICK_AT_ONCE = 4

/**
 * Four scenes share the processors of a CI that may stand still for a second. An attack that did harm beside others has to do
 * none this many times alone; harm that shows again is a fault.
 */
const ALONE_TIMES = 2

function isHarmful({ harms }: Finding): boolean {
  return harms.length > 0
}

/** Those of `suspects` that do harm again, or that cannot be run. */
async function alone(suspects: readonly Finding[]): Promise<Finding[]> {
  const again: Finding[] = []
  for (const suspect of suspects) {
    console.log(`beside others: ${lineOf(suspect)}`)
    const attack = ATTACKS.find(({ name }) => name === suspect.name)!
    for (let time = 0; time < ALONE_TIMES && !interrupted.aborted; time++) {
      const finding = await runOrReport(attack)
      if (finding !== undefined && isHarmful(finding)) again.push(finding)
    }
  }
  return again
}

const findings: Finding[] = []
const broken: string[] = []
const rest = [...chosen]
async function run(): Promise<void> {
  for (let attack = rest.shift(); attack !== undefined && !interrupted.aborted; attack = rest.shift()) {
    const finding = await runOrReport(attack)
    if (finding !== undefined) findings.push(finding)
  }
}

/** Nothing where the attack could not be run, which is printed. */
async function runOrReport(attack: Attack, options = trial): Promise<Finding | undefined> {
  try {
    const finding = await runTrial(attack, options)
    console.log(lineOf(finding))
    return finding
  } catch (error) {
    broken.push(`${attack.name} could not be run: ${error instanceof Error ? error.message : String(error)}`)
    console.error(`✗ ${broken.at(-1)}`)
    return undefined
  }
}

/** In their places, the findings of a longer run of those that were only late. */
async function judgeLonger(): Promise<void> {
  for (const [at, finding] of findings.entries()) {
    if (!finding.isOnlyLate || seconds >= LONG_SECONDS || interrupted.aborted) continue
    const attack = ATTACKS.find(({ name }) => name === finding.name)!
    findings[at] = (await runOrReport(attack, { ...trial, seconds: LONG_SECONDS })) ?? finding
  }
}

await Promise.all(Array.from({ length: options.quick ? QUICK_AT_ONCE : 1 }, run))
if (!options.quick) await judgeLonger()
console.log(`\n${findingsTable(findings)}\n`)
const harmful = await (options.quick ? alone(findings.filter(isHarmful)) : findings.filter(isHarmful))
// After the table: what a log of CI shows is its end.
for (const finding of harmful) console.log(lineOf(finding))
for (const reason of broken) console.log(reason)
console.log(`${findings.length} attacks of ${Math.round(seconds * 10) / 10} s, ${harmful.length} did harm`)
if (options.write) await writeFindings(findings)
if (options.json !== undefined) await Bun.write(options.json, `${JSON.stringify(findings, null, 2)}\n`)
process.exit(harmful.length + broken.length === 0 ? 0 : 1)
