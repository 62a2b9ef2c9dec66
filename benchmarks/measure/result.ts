// Contract: what a suite measured, in the one form that is saved, compared and turned into a report.

import type { Environment } from './environment.ts'

/** A value and the range it moved in: quartiles of one run's samples, or the extremes of several rounds. */
export interface Figure {
  readonly value: number
  readonly low?: number
  readonly high?: number
}

export interface Column {
  readonly key: string
  readonly title: string
  readonly unit: string
  /** `neither`: shown, never compared. */
  readonly better: 'higher' | 'lower' | 'neither'
}

export interface ResultRow {
  readonly name: string
  /** A text stands for what could not be measured, and says why. */
  readonly cells: Readonly<Record<string, Figure | string>>
}

/** Points of a curve over time or load, for a chart. */
export interface Series {
  readonly name: string
  readonly points: readonly (readonly [number, number])[]
}

export interface Chart {
  readonly x: string
  readonly y: string
  readonly series: readonly Series[]
}

export interface Group {
  readonly name: string
  readonly columns: readonly Column[]
  readonly rows: readonly ResultRow[]
  readonly note?: string
  readonly chart?: Chart
}

export interface SuiteResult {
  readonly suite: string
  readonly title: string
  readonly environment: Environment
  /** A smoke run: its figures mean nothing. */
  readonly quick: boolean
  readonly groups: readonly Group[]
}

/** What `index.ts --json` writes: all suites of one run. */
export interface SavedRun {
  readonly suites: readonly SuiteResult[]
}

/** Reads a file of one suite or of a whole run. */
export async function readRun(path: string): Promise<SavedRun> {
  // Files that this module wrote; anything else fails at the first use of a field.
  const content = (await Bun.file(path).json()) as SavedRun | SuiteResult
  return 'suites' in content ? content : { suites: [content] }
}

export async function writeJson(path: string, content: SavedRun | SuiteResult): Promise<void> {
  await Bun.write(path, `${JSON.stringify(content, null, 1)}\n`)
}
