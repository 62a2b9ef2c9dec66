// mitata, with what the suites need on top: results in our form, and a smoke mode that runs every benchmark a few times.

import * as mitata from 'mitata'
import { interrupt } from './children.ts'
import type { Cell, Column, ResultRow, Table } from './result.ts'
import { reasonOf } from './samples.ts'
import { conclude, fault, isQuick, options, refuse, say } from './suite.ts'

type Work = () => unknown

interface Smoke {
  readonly group: string
  readonly name: string
  readonly work: Work
}

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

export function bench(name: string, work: Work): void {
  smokes.push({ group: groupName, name, work })
  mitata.bench(name, work)
}

/** Keeps the optimizer from leaving out what nobody reads. */
export const keep: (value: unknown) => void = mitata.do_not_optimize

export interface SuiteOptions {
  /** Remarks under groups, by group name. */
  readonly notes?: Readonly<Record<string, string>>
  /** Tables measured by other means, put in front. */
  readonly more?: readonly Table[]
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
  { notes = {}, more = [], tools = {} }: SuiteOptions = {},
): Promise<never> {
  const unknown = options.only?.find(name => !groupNames.includes(name))
  if (unknown !== undefined) refuse(`there is no table ${unknown}; there are: ${groupNames.join(', ')}`)
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
  const save = (): Promise<never> =>
    conclude(
      suite,
      title,
      [...more, ...[...rows].map(([name, all]) => toTable(name, all, notes[name]))],
      tools,
    )
  // mitata cannot be stopped between two benchmarks: what is there is saved, and that is the end.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      interrupt()
      void save()
    })
  }

  if (isQuick) {
    for (const { group, name, work } of smokes) {
      const tuning = {
        min_samples: 2,
        max_samples: 3,
        min_cpu_time: 1,
        warmup_samples: 1,
        batch_samples: 2,
        batch_threshold: 1,
      }
      await mitata.measure(work, tuning).then(
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
