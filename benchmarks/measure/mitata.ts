// mitata, with what the suites need on top: results in our form, and a smoke mode that runs every benchmark a few times.

import * as mitata from 'mitata'
import { interrupt } from './children.ts'
import { busyTimes, type MachineTimes } from './proc.ts'
import type { Cell, Column, ResultRow, SuiteResult, Table } from './result.ts'
import { reasonOf } from './samples.ts'
import { conclude, fault, isQuick, msLeft, options, refuse, say } from './suite.ts'

type Work = () => unknown

interface Smoke {
  readonly group: string
  readonly name: string
  readonly work: Work
}

/** As mitata has it: the time of one benchmark. */
const USUAL_NS = 642e6
let startedWith = process.cpuUsage()
const smokes: Smoke[] = []
const groupNames: string[] = []
let groupName = ''

const COLUMNS: readonly Column[] = [
  { key: 'avg', title: 'avg', unit: 'ns', better: 'lower' },
  { key: 'p50', title: 'p50', unit: 'ns', better: 'lower' },
  { key: 'p99', title: 'p99', unit: 'ns', better: 'neither' },
  { key: 'p999', title: 'p99.9', unit: 'ns', better: 'neither' },
]

/** A named set of benchmarks, ranked against each other. */
export function group(name: string, define: () => void): void {
  groupNames.push(name)
  if (options.only?.includes(name) === false) return
  groupName = name
  mitata.boxplot(() => mitata.summary(() => mitata.group(name, define)))
}

/** Only within a group. */
export function bench(name: string, work: Work): void {
  smokes.push({ group: groupName, name, work })
  mitata.bench(name, work)
}

/** Keeps the optimizer from leaving out what nobody reads. */
export const keep: (value: unknown) => void = mitata.do_not_optimize

export interface SuiteOptions {
  /** Remarks under groups, by group name. */
  readonly notes?: Readonly<Record<string, string>>
  /** Tables measured by other means, put in front, and the ids of all that there are of them. */
  readonly more?: readonly Table[]
  readonly ids?: readonly string[]
  readonly tools?: Readonly<Record<string, string>>
}

/**
 * Hands out the values in turn. With one constant input the compiler computes a small function once and the benchmark
 * measures nothing: a regular expression in 0.4 ns was seen here.
 */
export function inTurn<T>(...values: readonly T[]): () => T {
  const ring = Array.from({ length: 8 }, (_, i) => values[i % values.length]!)
  let at = 0
  return () => ring[at++ & 7]!
}

/** Runs all that was defined and concludes the suite. What failed is said, and makes the exit code 1. */
export async function runSuite(
  suite: string,
  title: string,
  { notes = {}, more = [], ids = [], tools = {} }: SuiteOptions = {},
): Promise<never> {
  const known = [...ids, ...groupNames]
  const unknown = options.only?.find(name => !known.includes(name))
  if (unknown !== undefined) refuse(`there is no table ${unknown}; there are: ${known.join(', ')}`)
  const rows = new Map<string, ResultRow[]>()
  let failed = 0
  const add = (group: string, name: string, stats: Stats | undefined, error: unknown): void => {
    if (!stats) {
      failed++
      fault(`${group}: ${name}: ${reasonOf(error)}`)
    }
    const cells = stats ? cellsOf(stats) : { avg: 'failed' }
    rows.set(group, [...(rows.get(group) ?? []), { name, role: 'ours', cells }])
  }
  const before = busyTimes()
  startedWith = process.cpuUsage()
  const save = (): Promise<never> =>
    conclude(
      suite,
      title,
      [...more, ...[...rows].map(([name, all]) => toTable(name, all, notes[name]))],
      tools,
      otherWork(before),
    )
  // mitata cannot be stopped between two benchmarks: what is there is saved, and that is the end.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      interrupt()
      void save()
    })
  }

  const tuning = isQuick
    ? {
        min_samples: 2,
        max_samples: 3,
        min_cpu_time: 1,
        warmup_samples: 1,
        batch_samples: 2,
        batch_threshold: 1,
      }
    : { min_cpu_time: Math.min(USUAL_NS, (msLeft() * 1e6) / smokes.length) }
  if (isQuick || options.minutes !== undefined) {
    for (const { group, name, work } of smokes) {
      await mitata.measure(work, { ...tuning }).then(
        stats => add(group, name, stats, null),
        (error: unknown) => add(group, name, undefined, error),
      )
    }
    say(`${suite}: ${smokes.length - failed} of ${smokes.length} benchmarks run`)
  } else {
    let index = 0
    await mitata.run({
      observe: trial => {
        for (const run of trial.runs) add(smokes[index++]!.group, run.name, run.stats, run.error)
        return trial
      },
    })
  }
  return save()
}

/** Since `before`, beside this process. */
function otherWork(before: MachineTimes): SuiteResult['meanwhile'] {
  const after = busyTimes()
  const seconds = (after.at - before.at) / 1_000
  const { user, system } = process.cpuUsage(startedWith)
  return {
    foreign: Math.max(0, after.busy - before.busy - (user + system) / 1e6) / seconds,
    steal: (100 * (after.steal - before.steal)) / seconds / navigator.hardwareConcurrency,
  }
}

interface Stats {
  readonly avg: number
  readonly min: number
  readonly p25: number
  readonly p50: number
  readonly p75: number
  readonly p99: number
  readonly p999: number
}

/** Quartiles stand where other suites have rounds. */
function cellsOf({ avg, p25, p50, p75, p99, p999 }: Stats): Record<string, Cell> {
  return { avg: [avg], p50: [p25, p50, p75], p99: [p99], p999: [p999] }
}

function toTable(title: string, rows: readonly ResultRow[], note: string | undefined): Table {
  return { id: title, title, columns: COLUMNS, rows, ...(note !== undefined && { note }) }
}
