// What a run says in one table: each row's figures of ours, the best peer, the ratios, and what is to be reached.

import type { Goal, Table } from './result.ts'
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
  'reach',
  'reached',
  'CPU µs',
  '÷ mark',
  'CLI ÷ library',
  'of CPU',
  'on ÷ off',
  'of CPU',
]

/** Of all that are ours, or of those with these names. */
export function summary(tables: readonly Table[], names?: readonly string[]): string {
  const lines = tables.flatMap(one => linesOf(one, names))
  return lines.length > 0 ? table(HEAD, lines) : 'Nothing was measured.'
}

/** For each tunnel of ours one line for what ranks, with its processor time, and one for each further goal. */
function linesOf(one: Table, names?: readonly string[]): string[][] {
  const goals = one.goals ?? []
  const first = one.columns[0]!.key
  const keys = [...new Set([first, ...goals.map(({ key }) => key)])]
  const lines: string[][] = []
  for (const { name, role } of one.rows) {
    if (role !== 'ours' || names?.includes(name) === false) continue
    for (const key of keys) {
      const own = goals.filter(goal => goal.key === key && (goal.of?.includes(name) ?? true))
      for (const goal of own.length > 0 ? own : [undefined]) {
        if (goal?.against !== name) lines.push(...line(one, name, key, goal))
      }
    }
  }
  return lines
}

function line(one: Table, name: string, key: string, goal?: Goal): string[][] {
  const verdict = judge(one, name, key, goal)
  if (!verdict) return []
  const { column, ours, mark, ratio, standing, reached } = verdict
  const cpu = judge(one, name, 'cpu', goal?.against ? { ...goal, key: 'cpu' } : undefined)
  const sign = column.better === 'higher' ? '≥' : '≤'
  const bound = goal?.limit ?? (goal?.reach === undefined ? undefined : `${goal.reach} ×`)
  const isCli = name.includes('-cli')
  const library = name.replace('-cli', '')
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
      bound === undefined ? '' : `${sign} ${bound}`,
      reached ?? '',
      cpu ? figure(cpu.ours.median) : '',
      cpu?.ratio ? `${cpu.mark!.name} ${cpu.ratio.median.toFixed(2)}` : '',
      ...[key, 'cpu'].map(figureKey => (isCli ? quotient(one, name, library, figureKey) : '')),
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
