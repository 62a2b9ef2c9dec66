// This run against a saved one: ratios, and which of them are more than noise.

import type { Figure, Group, SavedRun, SuiteResult } from './result.ts'
import { figure } from './samples.ts'
import { table } from './table.ts'

export function compare(now: SuiteResult, before: SavedRun): string {
  const earlier = before.suites.find(({ suite }) => suite === now.suite)
  if (!earlier) return `${now.suite}: the saved run has no such suite`
  const rows = now.groups.flatMap(group => compareGroup(group, earlier))
  const head = `${now.title} against ${earlier.environment.commit} of ${earlier.environment.date}`
  if (rows.length === 0) return `${head}: nothing in common`
  return `${head}\n${table(['row', 'figure', 'before', 'now', 'ratio', ''], rows)}`
}

function compareGroup(group: Group, earlier: SuiteResult): string[][] {
  const other = earlier.groups.find(({ name }) => name === group.name)
  const rows: string[][] = []
  for (const row of group.rows) {
    const cells = other?.rows.find(({ name }) => name === row.name)?.cells
    for (const column of group.columns) {
      const [before, now] = [cells?.[column.key], row.cells[column.key]]
      if (column.better === 'neither' || !isFigure(before) || !isFigure(now)) continue
      const ratio = now.value / before.value
      const title = `${group.name}: ${row.name}`
      const unit = `${column.title} ${column.unit}`.trim()
      const verdict = overlaps(before, now)
        ? ''
        : ratio > 1 === (column.better === 'higher')
          ? 'better'
          : 'WORSE'
      rows.push([title, unit, figure(before.value), figure(now.value), `${ratio.toFixed(2)} ×`, verdict])
    }
  }
  return rows
}

/** Ranges that touch are noise. Without ranges ten per cent are. */
function overlaps(a: Figure, b: Figure): boolean {
  const range = ({ value, low = value * 0.9, high = value * 1.1 }: Figure): readonly [number, number] => [
    low,
    high,
  ]
  const [aLow, aHigh] = range(a)
  const [bLow, bHigh] = range(b)
  return aLow <= bHigh && bLow <= aHigh
}

export function isFigure(cell: Figure | string | undefined): cell is Figure {
  return typeof cell === 'object'
}
