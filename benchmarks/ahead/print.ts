// The tables that `ahead.ts` prints, and `report.ts` copies.

import { figure, type Summary, spread, summarize } from '../measure/samples.ts'
import { table } from '../measure/table.ts'
import { existing } from '../peers/existing.ts'
import { TARGETS, type Target } from './targets.ts'
import { figuresOf, judge, type Measured } from './verdict.ts'

const EXISTING: string = existing.name

/** Ours on the streams wire against the mark of each line. */
export function verdictTable(all: readonly Measured[]): string {
  const rows: string[][] = []
  for (const target of TARGETS) {
    const verdict = judge(all, 'ours-streams', target)
    if (!verdict) continue
    const { ratio, mark, reached } = verdict
    rows.push([
      target.title,
      spread(verdict.ours),
      mark ? `${mark.peer} ${spread(mark.summary)}` : '–',
      ratio ? ratioWithSpread(ratio) : '–',
      wanted(target),
      reached === null ? '–' : reached ? 'yes' : 'NO',
    ])
  }
  return rows.length > 0 ? table(['work', 'ours-streams', 'the mark', 'ratio', 'reach', 'reached'], rows) : ''
}

/** Ours on the JSON wire against what spoke that wire before, side by side where it is installed. */
export function jsonTable(all: readonly Measured[]): string {
  return all.some(({ peer }) => peer === EXISTING) ? jsonTableBeside(all) : jsonTableOfAnotherDay(all)
}

function jsonTableBeside(all: readonly Measured[]): string {
  const rows: string[][] = []
  for (const target of TARGETS) {
    if (rows.some(([title]) => title === plainTitle(target))) continue
    const verdict = judge(all, 'ours-json', { ...target, against: [EXISTING], factor: 1, limit: undefined })
    if (!verdict?.mark || !verdict.ratio) continue
    const { ratio, reached } = verdict
    rows.push([
      plainTitle(target),
      spread(verdict.ours),
      spread(verdict.mark.summary),
      ratioWithSpread(ratio),
      reached ? 'yes' : 'NO',
    ])
  }
  return rows.length > 0 ? table(['work', 'ours-json', EXISTING, 'ratio', 'ahead'], rows) : ''
}

function jsonTableOfAnotherDay(all: readonly Measured[]): string {
  const rows: string[][] = []
  for (const target of TARGETS) {
    const values = [...figuresOf(all, 'ours-json', target).values()]
    const isAgain = rows.some(([title]) => title === plainTitle(target))
    if (target.existing === undefined || values.length === 0 || isAgain) continue
    const summary = summarize(values)
    const ratio = summary.median / target.existing
    const isAhead = target.better === 'higher' ? ratio > 1 : ratio < 1
    const existing = figure(target.existing)
    rows.push([plainTitle(target), spread(summary), existing, ratio.toFixed(2), isAhead ? 'yes' : 'NO'])
  }
  const head = ['work', 'ours-json', 'existing localtunnels, another day', 'ratio', 'ahead']
  return rows.length > 0 ? table(head, rows) : ''
}

/** A ratio has two digits behind the point, whatever its size. */
function ratioWithSpread({ median, min, max }: Summary): string {
  return `${median.toFixed(2)} (${min.toFixed(2)}..${max.toFixed(2)})`
}

function plainTitle({ title }: Target): string {
  return title.replace(/, against .*/, '')
}

function wanted(target: Target): string {
  if (target.limit !== undefined) return `≤ ${target.limit}`
  return `${target.better === 'higher' ? '≥' : '≤'} ${target.factor} ×`
}

/** Every tunnel's median of every line. */
export function peerTable(all: readonly Measured[]): string {
  const names = [...new Set(all.map(({ peer }) => peer))]
  const rows: string[][] = []
  const seen = new Set<string>()
  for (const target of TARGETS) {
    const key = `${target.row} ${target.figure}`
    if (seen.has(key)) continue
    seen.add(key)
    const cells = names.map(name => {
      const values = [...figuresOf(all, name, target).values()]
      return values.length > 0 ? figure(summarize(values).median) : '–'
    })
    if (cells.some(cell => cell !== '–')) rows.push([plainTitle(target), ...cells])
  }
  return table(['medians', ...names], rows)
}

/** Cores taken by strangers from which on a measurement is doubtful. */
const BUSY_CORES = 0.3

/** What a reader must know before believing the figures: failures, busy neighbours, a generator near its ceiling. */
export function warnings(all: readonly Measured[]): readonly string[] {
  const said: string[] = []
  const foreign = all.map(({ figures }) => figures?.foreignCores ?? 0)
  const busy = foreign.filter(cores => cores > BUSY_CORES).length
  if (busy > 0) {
    const share = `${busy} of ${all.length} measurements shared the machine`
    said.push(`${share}: ${figure(summarize(foreign).median)} cores (median) were busy with something else`)
  }
  for (const { peer, row, round, figures, failure } of all) {
    const where = `${row} on ${peer}, round ${round + 1}`
    if (failure) said.push(`${where}: ${failure}`)
    if (figures?.errors)
      said.push(
        `${where}: ${figure(figures.errors)} of ${figure((figures.requests ?? 0) + figures.errors)} requests failed`,
      )
    if (figures?.held !== undefined && figures.held < 1_000)
      said.push(`${where}: only ${figures.held} of 1,000 connections were answered`)
  }
  for (const { peer, row, ceiling } of nearCeiling(all)) {
    said.push(
      `${row} on ${peer}: ${(ceiling * 100).toFixed(0)} % of what the generator reaches without a tunnel`,
    )
  }
  return said
}

function nearCeiling(all: readonly Measured[]): { peer: string; row: string; ceiling: number }[] {
  const found: { peer: string; row: string; ceiling: number }[] = []
  for (const target of TARGETS.filter(({ better }) => better === 'higher')) {
    const direct = medianOf(all, 'direct', target)
    for (const peer of new Set(all.map(one => one.peer))) {
      const ceiling = medianOf(all, peer, target) / direct
      const known = found.some(one => one.peer === peer && one.row === target.row)
      if (peer !== 'direct' && ceiling > 0.8 && !known) found.push({ peer, row: target.row, ceiling })
    }
  }
  return found
}

function medianOf(all: readonly Measured[], peer: string, target: Target): number {
  return summarize([...figuresOf(all, peer, target).values()]).median
}
