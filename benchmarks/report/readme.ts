// The figures of README.md: those of the command line, picked by the rule of the first page.

import type { SavedRun } from '../measure/result.ts'
import { figure } from '../measure/samples.ts'
import { table } from '../measure/table.ts'
import { pick, type Standing, standingsOf } from './standings.ts'

const ROWS = 4

export function readmeFigures({ suites }: SavedRun): string {
  const standings = standingsOf(
    suites.flatMap(({ tables }) => tables),
    'ours-cli',
  )
  const rows = [...pick(standings, 'ahead', ROWS), ...pick(standings, 'behind', ROWS)]
  return table(['Measured', 'localtunnels', 'best other tunnel', 'result'], rows.map(rowOf))
}

function rowOf({ table: { title }, column, ours, mark, standing }: Standing): readonly string[] {
  const unit = (value: number): string => `${figure(value)} ${column.unit}`
  const name = mark!.name.replace(/^(\w+)-tls\+(.+)$/, '$2 behind $1').replace(/-(?:no)?mux/, '')
  return [`${title}: ${column.title}`, unit(ours.median), `${name} ${unit(mark!.summary.median)}`, standing]
}

const [BEGIN, END] = ['<!-- figures: begin -->\n', '<!-- figures: end -->']

/** The document with its figures as the file has them. */
export function withFigures(text: string, run: SavedRun): string {
  const [before = '', rest = ''] = text.split(BEGIN)
  const [, after = ''] = rest.split(END)
  return rest === '' ? text : `${before}${BEGIN}${readmeFigures(run)}\n${END}${after}`
}
