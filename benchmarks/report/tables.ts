// Groups of a saved run as Markdown: functions and requests in readable times, everything else as measured.

import { isFigure } from '../measure/compare.ts'
import type { Column, Figure, Group, ResultRow } from '../measure/result.ts'
import { figure } from '../measure/samples.ts'
import { table } from '../measure/table.ts'
import { PUBLISHED } from './published.ts'

/** With one title for all columns when a group failed as a whole, and the published column where there is one. */
export function groupTable(group: Group): string {
  const isTimed = group.columns[0]?.unit === 'ns'
  return isTimed ? timed(group) : plain(group)
}

function timed({ name, rows }: Group): string {
  const published = PUBLISHED[name]
  const best = Math.min(...rows.map(row => figureOf(row, 'avg')))
  const lines = rows.map(row => [
    row.name,
    time(row.cells.avg),
    time(row.cells.p50),
    time(row.cells.p99),
    isFigure(row.cells.avg) ? `${(row.cells.avg.value / best).toFixed(2)} ×` : '–',
    ...(published ? [row.name in published ? duration(published[row.name]!) : ''] : []),
  ])
  return table(['', 'avg', 'p50', 'p99', 'vs fastest', ...(published ? ['published'] : [])], lines)
}

function plain({ columns, rows }: Group): string {
  const lines = rows.map(row => {
    const texts = new Set(columns.map(({ key }) => row.cells[key]).filter(cell => typeof cell === 'string'))
    // What failed as a whole says so once.
    const failed =
      columns.length > 1 && texts.size === 1 && columns.every(({ key }) => !isFigure(row.cells[key]))
    const cells = columns.map((column, i) => (failed ? (i === 0 ? [...texts][0]! : '') : shown(row, column)))
    return [row.name, ...cells]
  })
  return table(['', ...columns.map(({ title, unit }) => (unit ? `${title}, ${unit}` : title))], lines)
}

function shown(row: ResultRow, { key }: Column): string {
  const cell = row.cells[key]
  if (!isFigure(cell)) return cell ?? '–'
  const { value, low, high } = cell
  const isSpread = low !== undefined && high !== undefined && figure(low) !== figure(high)
  return isSpread ? `${figure(value)} (${figure(low)}..${figure(high)})` : figure(value)
}

function time(cell: Figure | string | undefined): string {
  return isFigure(cell) ? duration(cell.value) : (cell ?? '–')
}

function duration(ns: number): string {
  if (ns >= 1e6) return `${figure(ns / 1e6)} ms`
  if (ns >= 1e3) return `${figure(ns / 1e3)} µs`
  return `${figure(ns)} ns`
}

function figureOf(row: ResultRow, key: string): number {
  const cell = row.cells[key]
  return isFigure(cell) ? cell.value : Number.POSITIVE_INFINITY
}
