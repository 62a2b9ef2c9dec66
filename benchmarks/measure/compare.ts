// This run against a saved one: which figures differ by more than noise, and whether ours got slower.
//
// Where both runs have a row without a tunnel, its figures are the unit: another machine, and other work on this one, then
// decide little. One reverse proxy is the better unit, since it too waits for wake-ups.

import type { ResultRow, SavedRun, SuiteResult, Table } from './result.ts'
import { figure, median, type Summary, summarize } from './samples.ts'
import { table } from './table.ts'
import { figuresOf, rangeOf } from './verdict.ts'

const UNITS = ['nginx-hop', 'nginx-tls', 'direct', 'Direct']
/** Beyond the worst saved round by this factor, ours is slower: CI shares its machine, and one bad second is no regression. */
const SLACK_OF_RATE = 2
const SLACK_OF_CPU = 1.6
/** Beside other work for more than this many cores, only what cannot be its fault counts. */
const BUSY_CORES = 0.5
const SLACK_WHEN_BUSY = 5
/** Where no row is a unit, and the machine is the same. */
const SLACK_WITHOUT_UNIT = 2

export interface Comparison {
  readonly text: string
  /** What is slower, or takes more processor time, than the saved spread. */
  readonly slower: readonly string[]
}

export function compare(now: SuiteResult, before: SavedRun): Comparison {
  const earlier = before.suites.find(({ suite }) => suite === now.suite)
  if (!earlier) return { text: `${now.suite}: the saved run has no such suite`, slower: [] }
  const slower: string[] = []
  const { cpu, cores, bun } = now.environment
  const then = earlier.environment
  const isSameMachine = then.cpu === cpu && then.cores === cores
  const rows = now.tables.flatMap(one => compareTable(one, earlier, isSameMachine, slower))
  const head = `${now.title} against ${earlier.environment.commit} of ${earlier.environment.date}`
  if (rows.length === 0) return { text: `${head}: nothing in common`, slower }
  const doubts = [
    ...(isSameMachine ? [] : [`on another machine (${then.cpu}, ${then.cores} cores)`]),
    ...(then.bun === bun ? [] : [`on Bun ${then.bun}, not ${bun}`]),
    ...(now.quick || earlier.quick ? ['a smoke run, whose figures mean nothing'] : []),
  ].join('; ')
  const lines = table(['row', 'figure', 'before', 'now', 'ratio', ''], rows)
  return { text: `${head}${doubts && `: ${doubts}`}\n${lines}`, slower }
}

function compareTable(
  one: Table,
  earlier: SuiteResult,
  isSameMachine: boolean,
  slower: string[],
): string[][] {
  const other = earlier.tables.find(({ id }) => id === one.id)
  const unit = UNITS.find(name => [one, other].every(side => rowOf(side, name) !== undefined))
  const lines: string[][] = []
  for (const row of one.rows) {
    const old = rowOf(other, row.name)
    for (const [index, { key, title: what, unit: measure, better }] of one.columns.entries()) {
      if (better === 'neither' || row.name === unit) continue
      const [was, is] = [inUnits(old, key, rowOf(other, unit)), inUnits(row, key, rowOf(one, unit))]
      if (was.length === 0 || is.length === 0) continue
      const [before, now] = [summarize(was), summarize(is)]
      const ratio = now.median / before.median
      const isWorse = ratio > 1 !== (better === 'higher')
      const verdict = overlap(before, now) ? '' : isWorse ? 'WORSE' : 'better'
      const figureName = unit === undefined ? `${what} ${measure}`.trim() : `${what} ÷ ${unit}`
      const texts = [before.median, now.median].map(figure)
      lines.push([`${one.title}: ${row.name}`, figureName, ...texts, `${ratio.toFixed(2)} ×`, verdict])
      const isCpu = key.startsWith('cpu')
      if (row.role !== 'ours' || (unit === undefined && !isSameMachine) || (index > 0 && !isCpu)) continue
      const [low, high] = rangeOf(before)
      const others = figuresOf(row, 'foreign')
      const isBusy = others.length > 0 && median(others) > BUSY_CORES
      const slack =
        (isCpu ? SLACK_OF_CPU : SLACK_OF_RATE) *
        (isBusy ? SLACK_WHEN_BUSY : 1) *
        (unit === undefined ? SLACK_WITHOUT_UNIT : 1)
      if (better === 'higher' ? now.median < low / slack : now.median > high * slack)
        slower.push(`slower: ${one.title}: ${row.name}, ${figureName} ${texts.join(' before, now ')}`)
    }
  }
  return lines
}

function rowOf(table: Table | undefined, name: string | undefined): ResultRow | undefined {
  return table?.rows.find(row => row.name === name)
}

/** Figures as multiples of those of the unit in the same round. */
function inUnits(row: ResultRow | undefined, key: string, unit: ResultRow | undefined): readonly number[] {
  const own = figuresOf(row, key)
  if (unit === undefined) return own
  const units = figuresOf(unit, key)
  // No processor time of a tunnel where there is none.
  if (units.length === 0) return []
  return own.flatMap((value, round) => (units[round] ? [value / units[round]] : []))
}

/** Ranges that touch are noise. */
function overlap(a: Summary, b: Summary): boolean {
  const [aLow, aHigh] = rangeOf(a)
  const [bLow, bHigh] = rangeOf(b)
  return aLow <= bHigh && bLow <= aHigh
}
