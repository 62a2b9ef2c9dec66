// What a run says in one table: each row's figures of ours, the mark, and the ratios.

import type { Table } from './result.ts'
import { figure, median, type Summary, spread } from './samples.ts'
import { table } from './table.ts'
import { figuresOf, judge } from './verdict.ts'

const HEAD = [
  'work',
  'tunnel',
  'figure',
  'ours',
  'mark',
  'ours ÷ mark',
  '',
  'CPU µs',
  '÷ mark',
  'CLI ÷ library',
  'of CPU',
  'on ÷ off',
  'of CPU',
]

/** For each tunnel of ours one line: what ranks, and its processor time. The mark is the best peer; where there is none, the first row. */
export function summary(tables: readonly Table[]): string {
  const lines = tables.flatMap(one =>
    one.rows.flatMap(({ name, role }) => (role === 'ours' ? line(one, name) : [])),
  )
  return lines.length > 0 ? table(HEAD, lines) : 'Nothing was measured.'
}

function line(one: Table, name: string): string[][] {
  const { key } = one.columns[0]!
  const against = one.rows.some(({ role }) => role === 'peer') ? undefined : one.rows[0]!.name
  const verdict = judge(one, name, key, against)
  if (!verdict || against === name) return []
  const { column, ours, mark, ratio, standing } = verdict
  const cpu = judge(one, name, 'cpu', against)
  const isCli = name.includes('-cli')
  const isOff = name.endsWith('-off')
  return [
    [
      one.title,
      name,
      column.unit ? `${column.title}, ${column.unit}` : column.title,
      spread(ours),
      mark ? `${mark.name} ${figure(mark.summary.median)}` : '–',
      ratio ? ratioText(ratio) : '–',
      standing === 'alone' ? '' : standing,
      cpu ? figure(cpu.ours.median) : '',
      cpu?.ratio ? `${cpu.mark!.name} ${cpu.ratio.median.toFixed(2)}` : '',
      ...[key, 'cpu'].map(figureKey =>
        isCli ? quotient(one, name, name.replace('-cli', ''), figureKey) : '',
      ),
      ...[key, 'cpu'].map(figureKey => (isOff ? '' : quotient(one, name, `${name}-off`, figureKey))),
    ],
  ]
}

/** A ratio has two digits behind the point, whatever its size. */
export function ratioText({ median, min, max, count }: Summary): string {
  return count > 1 ? `${median.toFixed(2)} (${min.toFixed(2)}..${max.toFixed(2)})` : median.toFixed(2)
}

function quotient({ rows }: Table, above: string, below: string, key: string): string {
  const [a, b] = [above, below].map(name =>
    figuresOf(
      rows.find(row => row.name === name),
      key,
    ),
  )
  const within = a!.flatMap((value, round) => (b![round] ? [value / b![round]] : []))
  return within.length > 0 ? median(within).toFixed(2) : ''
}
