// The figures within README.md, docs/performance.md and docs/inspector.md, between two marks.

import type { SavedRun } from '../measure/result.ts'
import { figure } from '../measure/samples.ts'
import { ratioText } from '../measure/summary.ts'
import { table } from '../measure/table.ts'
import { judge } from '../measure/verdict.ts'
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

/** What the inspector leaves of a tunnel without it. */
export function inspectorFigures({ suites }: SavedRun): string {
  const tables = suites.flatMap(one => one.tables)
  const rows = [
    ['latency of 20 B, one connection', 'inspected1'],
    ['rate of 64 KB, ten connections', 'inspected64k'],
    ['rate of 100 MB', 'inspectedDown'],
  ] as const
  const lines = [
    ['default `rate`', 'ours-inspected'],
    ['every request (`rate = 0`)', 'ours-every'],
  ].map(([title = '', name = '']) => [
    title,
    ...rows.map(([, id]) => {
      const measured = tables.find(one => one.id === id)
      const ratio = measured && judge(measured, name, measured.columns[0]!.key, 'ours')?.ratio
      return ratio ? `${ratioText(ratio)} times` : 'not in this run'
    }),
  ])
  return table(['', ...rows.map(([title]) => title)], lines)
}

/** The documents that have figures, and which. */
export const WITH_FIGURES: Readonly<Record<string, (run: SavedRun) => string>> = {
  'README.md': readmeFigures,
  'docs/performance.md': lostFigures,
  'docs/inspector.md': inspectorFigures,
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
