// Contract: what a suite measured, in the one form that is printed, saved, compared and turned into a report.

import type { Environment } from './environment.ts'

/** The figure of each round, in their order. A text stands for what could not be measured, and says why. */
export type Cell = readonly number[] | string

export interface Column {
  readonly key: string
  readonly title: string
  readonly unit: string
  /** `neither`: shown, never compared. */
  readonly better: 'higher' | 'lower' | 'neither'
}

export interface ResultRow {
  readonly name: string
  /** `peer`: may be the best other program; `floor`: shown for reference, such as no tunnel at all. */
  readonly role: 'ours' | 'peer' | 'floor'
  readonly cells: Readonly<Record<string, Cell>>
}

/** The first column ranks. */
export interface Table {
  readonly id: string
  readonly title: string
  readonly columns: readonly Column[]
  readonly rows: readonly ResultRow[]
  readonly note?: string
  /** Rounds of every figure. Default: one figure, however it came about. */
  readonly rounds?: number
  /** The way of the requests through ours, where it is not that of easy requests. */
  readonly path?: Path
}

/** Functions and single requests of one process. */
export function isTimed({ columns }: Table): boolean {
  return columns[0]?.unit === 'ns'
}

/** `ordinary`: through the main threads, as bodies, guards, pools and WebSockets go. `tls`: visitors come over TLS. */
export type Path = 'ordinary' | 'tls'

export interface SuiteResult {
  readonly suite: string
  readonly title: string
  readonly environment: Environment
  /** A smoke run: its figures mean nothing. */
  readonly quick: boolean
  readonly rounds: number
  /** Where it is not a column: cores that other work took, and percent that the hypervisor took. */
  readonly meanwhile?: { readonly foreign: number; readonly steal: number }
  readonly tables: readonly Table[]
}

/** What `index.ts --json` writes: all suites of one run. */
export interface SavedRun {
  readonly schema: 2
  readonly suites: readonly SuiteResult[]
}

export async function readRun(path: string): Promise<SavedRun> {
  const content: unknown = await Bun.file(path)
    .json()
    .catch((error: unknown) => {
      throw new Error(`${path} is not a saved run: ${error instanceof Error ? error.message : String(error)}`)
    })
  // Written by `writeRun`.
  const run = content as Partial<SavedRun> | null
  if (run?.schema === 2 && Array.isArray(run.suites)) return content as SavedRun
  throw new Error(`${path} is not a run that this version of the benchmarks saved`)
}

/** One line for each row, figures with the digits that a shared machine can honestly give. */
export async function writeRun(path: string, suites: readonly SuiteResult[]): Promise<void> {
  const lines: string[] = []
  for (const { tables, ...suite } of suites) {
    const all = tables.map(({ rows, ...table }) => {
      const body = rows.map(row => `   ${JSON.stringify(row, rounded)}`).join(',\n')
      return `  {${JSON.stringify(table).slice(1, -1)},"rows":[\n${body}\n  ]}`
    })
    lines.push(` {${JSON.stringify(suite).slice(1, -1)},"tables":[\n${all.join(',\n')}\n ]}`)
  }
  await Bun.write(path, `{"schema":2,"suites":[\n${lines.join(',\n')}\n]}\n`)
}

function rounded(_: string, value: unknown): unknown {
  return typeof value === 'number' ? Number(value.toPrecision(4)) : value
}

export function column(
  key: string,
  title: string,
  unit: string,
  better: Column['better'] = 'neither',
): Column {
  return { key, title, unit, better }
}
