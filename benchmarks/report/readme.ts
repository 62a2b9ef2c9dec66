// The figures within README.md and docs/performance.md: those of the command line, between two marks.

import type { SavedRun } from '../measure/result.ts'
import { figure } from '../measure/samples.ts'
import { ratioText } from '../measure/summary.ts'
import { table } from '../measure/table.ts'
import { beyondSpread, pick, type Standing, standingsOf } from './standings.ts'

const ROWS = 4

const of = ({ suites }: SavedRun, tunnel: string): readonly Standing[] =>
  standingsOf(
    suites.flatMap(({ tables }) => tables),
    tunnel,
  )

/** Picked by the rule of the first page. */
export function readmeFigures(run: SavedRun): string {
  const standings = of(run, 'ours-cli')
  const rows = [...pick(standings, 'ahead', ROWS), ...pick(standings, 'behind', ROWS)]
  return table(['Measured', 'localtunnels', 'best other tunnel', 'result'], rows.map(rowOf))
}

function rowOf({ table: { title }, column, ours, mark, standing }: Standing): readonly string[] {
  const unit = (value: number): string => `${figure(value)} ${column.unit}`
  const name = mark!.name.replace(/^(\w+)-tls\+(.+)$/, '$2 behind $1').replace(/-(?:no)?mux/, '')
  return [`${title}: ${column.title}`, unit(ours.median), `${name} ${unit(mark!.summary.median)}`, standing]
}

const [BEGIN, END] = ['<!-- figures: begin -->\n', '<!-- figures: end -->']

const MOST_LOST = 20

/** The rows that are furthest behind, with the library beside the command line. */
export function lostFigures(run: SavedRun): string {
  const library = of(run, 'ours')
  const behind = of(run, 'ours-cli').filter(({ standing }) => standing === 'behind')
  const rows = behind
    .toSorted((a, b) => beyondSpread(b) - beyondSpread(a))
    .slice(0, MOST_LOST)
    .map(({ table: { id, title }, kind, column, ratio, mark }) => {
      const same = library.find(one => one.table.id === id && one.kind === kind)?.ratio
      return [`${title}: ${column.title}`, ratioText(ratio!), same ? ratioText(same) : '', mark!.name]
    })
  return table(['work', 'command line ÷ best other', 'library', 'best other'], rows)
}

/** The documents that have figures, and which. */
export const WITH_FIGURES: Readonly<Record<string, (run: SavedRun) => string>> = {
  'README.md': readmeFigures,
  'docs/performance.md': lostFigures,
}

/** The document with its figures as the file has them. */
export function withFigures(
  text: string,
  run: SavedRun,
  figures: (run: SavedRun) => string = readmeFigures,
): string {
  const [before = '', rest = ''] = text.split(BEGIN)
  const [, after = ''] = rest.split(END)
  return rest === '' ? text : `${before}${BEGIN}${figures(run)}\n${END}${after}`
}
