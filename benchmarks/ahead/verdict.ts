// From figures of interleaved rounds to verdicts: the mark, our ratio to it, and how sure that is.

import { median, type Summary, summarize } from '../measure/samples.ts'
import type { Figures } from './rows.ts'
import type { Target } from './targets.ts'

/** One measurement; `figures` is null where it failed. */
export interface Measured {
  readonly peer: string
  readonly row: string
  readonly round: number
  readonly figures: Figures | null
  readonly failure?: string
}

export interface Verdict {
  readonly target: Target
  readonly ours: Summary
  readonly mark: { readonly peer: string; readonly summary: Summary } | null
  /** Ours ÷ mark: the median of the ratios within each round, which drift of the machine does not move. */
  readonly ratio: Summary | null
  readonly reached: boolean | null
}

export function figuresOf(
  all: readonly Measured[],
  peer: string,
  target: Target,
): ReadonlyMap<number, number> {
  const values = new Map<number, number>()
  for (const one of all) {
    const value = one.peer === peer && one.row === target.row ? one.figures?.[target.figure] : undefined
    if (value !== undefined && Number.isFinite(value)) values.set(one.round, value)
  }
  return values
}

export function judge(all: readonly Measured[], ours: string, target: Target): Verdict | null {
  const own = figuresOf(all, ours, target)
  if (own.size === 0) return null
  const mark = best(all, target)
  const limit = target.limit
  const summary = summarize([...own.values()])
  const ratio = mark ? ratios(own, mark.values) : null
  const reached = limit !== undefined ? summary.median <= limit : ratio && holds(ratio.median, target)
  return {
    target,
    ours: summary,
    mark: mark && { peer: mark.peer, summary: summarize([...mark.values.values()]) },
    ratio,
    reached,
  }
}

function holds(ratio: number, target: Target): boolean {
  return target.better === 'higher' ? ratio >= target.factor : ratio <= target.factor
}

function ratios(ours: ReadonlyMap<number, number>, mark: ReadonlyMap<number, number>): Summary | null {
  const within: number[] = []
  for (const [round, value] of ours) {
    const other = mark.get(round)
    if (other) within.push(value / other)
  }
  return within.length > 0 ? summarize(within) : null
}

function best(
  all: readonly Measured[],
  target: Target,
): { readonly peer: string; readonly values: ReadonlyMap<number, number> } | null {
  const names = new Set(all.map(({ peer }) => peer))
  const rivals = [...names].filter(name => name !== 'direct' && !name.startsWith('ours'))
  const against = target.against === 'all' ? rivals : rivals.filter(name => target.against.includes(name))
  const sign = target.better === 'higher' ? -1 : 1
  return (
    against
      .map(peer => ({ peer, values: figuresOf(all, peer, target) }))
      .filter(({ values }) => values.size > 0)
      .sort((a, b) => sign * (median([...a.values.values()]) - median([...b.values.values()])))[0] ?? null
  )
}
