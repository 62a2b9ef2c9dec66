// What a run says of ours as a whole: every column judged and counted, and the rows of the first page picked by rule.

import { type Column, isTimed, type Table } from '../measure/result.ts'
import { median } from '../measure/samples.ts'
import { figuresOf, judge, rangeOf, type Verdict } from '../measure/verdict.ts'

export const KINDS = ['rate or latency', 'p99', 'processor time', 'memory'] as const
export type Kind = (typeof KINDS)[number]

/** What is judged of a table; `undefined`: nothing, since it is shown for reference. */
export function kindOf({ columns }: Table, { key, unit, better }: Column): Kind | undefined {
  if (better === 'neither') return undefined
  if (/^p99(?!9)/.test(key)) return 'p99'
  if (key.startsWith('cpu')) return 'processor time'
  if (unit === 'MB' || unit === 'KB') return 'memory'
  return columns[0]?.key === key ? 'rate or latency' : undefined
}

export interface Standing extends Verdict {
  readonly table: Table
  readonly kind: Kind
  readonly tunnel: string
}

/** Rows of other load generators: work that other tables have, too. */
export const OF_GENERATORS: RegExp = /^(?:wrk|wrkpost|vegeta)$/

/** A row of one round is never level, and a coin says "behind" in each of three rounds for one row in eight. */
const JUDGED_ROUNDS = 3

/** Of every table in which `tunnel` and another program have figures in enough rounds the first column of each kind. */
export function standingsOf(tables: readonly Table[], tunnel: string): readonly Standing[] {
  const judged = tables.filter(
    table =>
      !isTimed(table) &&
      table.rounds !== undefined &&
      table.rounds >= JUDGED_ROUNDS &&
      !OF_GENERATORS.test(table.id),
  )
  return judged.flatMap(table =>
    KINDS.flatMap((kind): Standing[] => {
      const column = table.columns.find(one => kindOf(table, one) === kind)
      const verdict = column && judge(table, tunnel, column.key)
      return verdict?.mark ? [{ ...verdict, table, kind, tunnel }] : []
    }),
  )
}

export type Counts = Readonly<Record<'ahead' | 'tie' | 'behind', number>>

export function countsOf(standings: readonly Standing[], kind: Kind): Counts {
  const count = (wanted: Verdict['standing']): number =>
    standings.filter(one => one.kind === kind && one.standing === wanted).length
  return { ahead: count('ahead'), tie: count('tie'), behind: count('behind') }
}

/** How far the ratio is from 1 in the round that is nearest to it. */
export function beyondSpread({ ratio }: Standing): number {
  if (!ratio) return 0
  return Math.min(...rangeOf(ratio).map(end => Math.abs(Math.log(end))))
}

/** Within twice of no tunnel at all, the generator, the app or the wake-ups of the machine are what is measured. */
export function isNearDirect({ table, column, ours }: Standing): boolean {
  const row = table.rows.find(({ name }) => name === 'direct')
  const direct = median(figuresOf(row, column.key))
  const factor = column.better === 'higher' ? direct / ours.median : ours.median / direct
  return factor < 2
}

/** Of each of these ways at least so many. */
const OF_EACH_PATH = 2

/**
 * The rows that are furthest ahead or behind beyond their spread, one column of each table: at least two of the ordinary path
 * and two over TLS where there are; of the others no more than half of one kind of figure. Ahead only what is not near `direct`. `sameCause`: rows with the same text count once.
 */
export function pick(
  standings: readonly Standing[],
  wanted: 'ahead' | 'behind',
  count: number,
  sameCause: (one: Standing) => string | undefined = () => undefined,
): readonly Standing[] {
  const sorted = standings
    .filter(one => one.standing === wanted && (wanted === 'behind' || !isNearDirect(one)))
    .toSorted((a, b) => beyondSpread(b) - beyondSpread(a))
  const isFirst =
    (key: (one: Standing) => string | undefined) => (one: Standing, at: number, all: Standing[]) =>
      key(one) === undefined || at === all.findIndex(other => key(other) === key(one))
  const distinct = sorted.filter(isFirst(({ table }) => table.id)).filter(isFirst(sameCause))
  const found: Standing[] = []
  for (const path of ['ordinary', 'tls'] as const)
    found.push(...distinct.filter(({ table }) => table.path === path).slice(0, OF_EACH_PATH))
  const others: Standing[] = []
  for (const one of distinct.filter(each => !found.includes(each))) {
    const ofKind = others.filter(({ kind }) => kind === one.kind).length
    if (found.length + others.length < count && ofKind < count / 2) others.push(one)
  }
  return [...found, ...others].toSorted((a, b) => beyondSpread(b) - beyondSpread(a))
}
