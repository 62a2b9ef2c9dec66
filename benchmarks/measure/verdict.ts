// From the figures of a table to verdicts: the mark, the ratio of ours to it, and how sure that is.

import type { Column, ResultRow, Table } from './result.ts'
import { median, type Summary, summarize } from './samples.ts'

export interface Verdict {
  readonly column: Column
  readonly ours: Summary
  /** The best peer of this run. */
  readonly mark: { readonly name: string; readonly summary: Summary } | null
  /** Ours ÷ mark: the median of the ratios within each round, which drift of the machine does not move. */
  readonly ratio: Summary | null
  /** A spread of ratios that crosses 1 is a tie, whatever its median. */
  readonly standing: 'ahead' | 'behind' | 'tie' | 'alone'
}

export function figuresOf(row: ResultRow | undefined, key: string): readonly number[] {
  const cell = row?.cells[key]
  return typeof cell === 'object' ? cell : []
}

/** `against`: a row in place of the best peer. */
export function judge(table: Table, ours: string, key: string, against?: string): Verdict | null {
  const column = table.columns.find(one => one.key === key)
  const own = figuresOf(
    table.rows.find(({ name }) => name === ours),
    key,
  )
  if (!column || own.length === 0) return null
  const mark = against ? table.rows.find(({ name }) => name === against) : best(table, column)
  const theirs = figuresOf(mark, key)
  const within = own.flatMap((value, round) => {
    const other = theirs[round]
    return other !== undefined && other > 0 && Number.isFinite(value) ? [value / other] : []
  })
  const ratio = within.length > 0 ? summarize(within) : null
  const summary = summarize(own)
  return {
    column,
    ours: summary,
    mark: mark && theirs.length > 0 ? { name: mark.name, summary: summarize(theirs) } : null,
    ratio,
    standing: ratio ? standing(ratio, column) : 'alone',
  }
}

function standing(ratio: Summary, { better }: Column): Verdict['standing'] {
  const [least, most] = rangeOf(ratio)
  if ((least <= 1 && most >= 1) || better === 'neither') return 'tie'
  return ratio.median > 1 === (better === 'higher') ? 'ahead' : 'behind'
}

/** Of a single figure ten per cent are noise. */
export function rangeOf({ median, min, max, count }: Summary): readonly [number, number] {
  return count > 1 ? [min, max] : [median * 0.9, median * 1.1]
}

function best(table: Table, { key, better }: Column): ResultRow | undefined {
  const sign = better === 'higher' ? -1 : 1
  return table.rows
    .filter(row => row.role === 'peer' && figuresOf(row, key).length > 0)
    .toSorted((a, b) => sign * (median(figuresOf(a, key)) - median(figuresOf(b, key))))[0]
}
