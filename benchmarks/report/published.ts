// What authors say of their own work, on their machines, beside what was measured here: docs/benchmarks/published.csv.

import type { SuiteResult } from '../measure/result.ts'
import { figure, median } from '../measure/samples.ts'
import { csv } from '../measure/table.ts'
import { figuresOf } from '../measure/verdict.ts'

interface Published {
  readonly by: string
  readonly group: string
  /** Id of the table here, and key of its column. */
  readonly at: string
  readonly column: string
  readonly unit: string
  /** From our column's unit to that of the figures. Default 1. */
  readonly factor?: number
  /** Empty where only a picture is published. */
  readonly rows: Readonly<Record<string, number | ''>>
}

// Of its own type.
export const PUBLISHED = (await Bun.file(`${import.meta.dir}/published.json`).json()) as readonly Published[]

/** One line for each published row: where it is here, what the same program reached, and ours. */
export function publishedCsv(suites: readonly SuiteResult[]): string {
  const lines = PUBLISHED.flatMap(({ by, group, at, column, unit, factor = 1, rows }) => {
    const suite = suites.find(({ tables }) => tables.some(({ id }) => id === at))
    const table = suite?.tables.find(({ id }) => id === at)
    const measured = (name: string): string => {
      const values = figuresOf(
        table?.rows.find(row => row.name === name),
        column,
      )
      return values.length === 0 ? '' : figure(median(values) * factor)
    }
    const where = suite === undefined ? 'not in this run' : `${suite.suite}.csv: ${table!.title}`
    return Object.entries(rows).map(([name, value]) => [
      by,
      group,
      name,
      unit,
      String(value),
      where,
      ...[name, 'ours-cli', 'ours', 'Tunnel'].map(measured),
    ])
  })
  const here = ['the same row', 'ours-cli', 'ours', 'ours, in one process']
  return csv(['published by', 'group', 'row', 'unit', 'published', 'measured in', ...here], lines)
}
