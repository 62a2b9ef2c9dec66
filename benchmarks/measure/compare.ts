// This run against a saved one: ratios, and which of them are more than noise.

import type { SavedRun, SuiteResult, Table } from './result.ts'
import { figure, type Summary, summarize } from './samples.ts'
import { table } from './table.ts'
import { figuresOf, rangeOf } from './verdict.ts'

export function compare(now: SuiteResult, before: SavedRun): string {
  const earlier = before.suites.find(({ suite }) => suite === now.suite)
  if (!earlier) return `${now.suite}: the saved run has no such suite`
  const rows = now.tables.flatMap(one => compareTable(one, earlier))
  const head = `${now.title} against ${earlier.environment.commit} of ${earlier.environment.date}`
  if (rows.length === 0) return `${head}: nothing in common`
  const { cpu, cores, bun } = now.environment
  const then = earlier.environment
  const doubts = [
    ...(then.cpu === cpu && then.cores === cores
      ? []
      : [`on another machine (${then.cpu}, ${then.cores} cores)`]),
    ...(then.bun === bun ? [] : [`on Bun ${then.bun}, not ${bun}`]),
    ...(now.quick || earlier.quick ? ['a smoke run, whose figures mean nothing'] : []),
  ].join('; ')
  return `${head}${doubts && `: ${doubts}`}\n${table(['row', 'figure', 'before', 'now', 'ratio', ''], rows)}`
}

function compareTable({ id, title, rows, columns }: Table, earlier: SuiteResult): string[][] {
  const other = earlier.tables.find(one => one.id === id)
  const lines: string[][] = []
  for (const row of rows) {
    const old = other?.rows.find(({ name }) => name === row.name)
    for (const { key, title: what, unit, better } of columns) {
      const [was, is] = [figuresOf(old, key), figuresOf(row, key)]
      if (better === 'neither' || was.length === 0 || is.length === 0) continue
      const [before, now] = [summarize(was), summarize(is)]
      const ratio = now.median / before.median
      const verdict = overlap(before, now) ? '' : ratio > 1 === (better === 'higher') ? 'better' : 'WORSE'
      const name = `${title}: ${row.name}`
      lines.push([
        name,
        `${what} ${unit}`.trim(),
        figure(before.median),
        figure(now.median),
        `${ratio.toFixed(2)} ×`,
        verdict,
      ])
    }
  }
  return lines
}

/** Ranges that touch are noise. */
function overlap(a: Summary, b: Summary): boolean {
  const [aLow, aHigh] = rangeOf(a)
  const [bLow, bHigh] = rangeOf(b)
  return aLow <= bHigh && bLow <= aHigh
}
