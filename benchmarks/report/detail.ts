// The page of a suite: what a person compares. Every row of every tunnel is in a CSV file beside it.

import { environmentLine } from '../measure/environment.ts'
import type { Column, ResultRow, SuiteResult, Table } from '../measure/result.ts'
import { figure, median, spread, summarize } from '../measure/samples.ts'
import { ratioText, summary } from '../measure/summary.ts'
import { table } from '../measure/table.ts'
import { figuresOf, judge } from '../measure/verdict.ts'
import { ALL } from '../peers/list.ts'

/** Ours, as the page compares them: the library, and the command line as users run it. */
const OURS = ['ours', 'ours-cli']

/** What authors say of their own work on their machines, so an order of magnitude: by table, in nanoseconds by group and row. */
const PUBLISHED = (await Bun.file(`${import.meta.dir}/published.json`).json()) as Readonly<
  Record<string, Readonly<Record<string, number>>>
>

/** Cores taken by other work, and percent by the hypervisor, from which on absolute figures are doubtful. */
const BUSY_CORES = 0.3
const BUSY_STEAL = 5

/** What else the machine did. Empty: it was not looked at. */
export function meanwhile(suites: readonly SuiteResult[]): readonly string[] {
  const all = (key: string): readonly number[] =>
    suites.flatMap(({ tables }) => tables.flatMap(({ rows }) => rows.flatMap(row => figuresOf(row, key))))
  const [busy, steal] = [all('foreign'), all('steal')]
  if (busy.length === 0 || steal.length === 0) return []
  const isShared = median(busy) > BUSY_CORES || median(steal) > BUSY_STEAL
  return [
    `During the runs, other processes used ${figure(median(busy))} cores (median), and the hypervisor took ${figure(median(steal))} % of the time.`,
    ...(isShared ? ['**The machine was shared with other work: these figures are provisional.**'] : []),
  ]
}

export function pageOf(one: SuiteResult): string {
  const { suite, title, environment, rounds, tables } = one
  const ranked = tables.filter(({ id, columns }) => id !== 'fidelity' && columns[0]?.unit !== 'ns')
  const parts = [
    `# ${title}`,
    `\`bun benchmarks/${suite}.ts\`${ranked.length > 0 ? `, ${rounds} round${rounds === 1 ? '' : 's'}` : ''}. ${environmentLine(environment)}. Back to [the page](../benchmarks.md).`,
    ...meanwhile([one]),
    `Every row of every tunnel, with spreads and CPU time: [${suite}.csv](${suite}.csv).`,
    ...against(ranked),
    ...reached(ranked.filter(({ goals }) => goals?.some(({ of }) => !of))),
    ...grid('Every tunnel', ranked, ({ columns }) => columns[0]),
    ...grid('Processor seconds of both ends for a million requests, or for a GB', ranked, ({ columns }) =>
      columns.find(({ key }) => key === 'cpu' || key === 'cpuGb'),
    ),
    ...tables.flatMap(table => {
      const body = table.id === 'fidelity' ? scorecard(table) : timed(table)
      return body === '' ? [] : [`## ${table.title}`, body, ...(table.note ? [table.note] : [])]
    }),
  ]
  return `${parts.join('\n\n')}\n`
}

/** Ours beside the best peer of each row: figures are medians with the smallest and the largest round. */
function against(tables: readonly Table[]): readonly string[] {
  const rows = tables.flatMap(one =>
    OURS.flatMap(name => {
      const verdict = judge(one, name, one.columns[0]!.key)
      if (!verdict) return []
      const { column, ours, mark, ratio, standing } = verdict
      const published = Object.entries(PUBLISHED[one.id] ?? {}).map(
        ([who, value]) => `${who} ${figure(value)}`,
      )
      return [
        [
          name === OURS[0] ? workOf(one, column) : '',
          name,
          spread(ours),
          mark ? `${mark.name} ${figure(mark.summary.median)}` : '–',
          ratio ? ratioText(ratio) : '–',
          standing === 'alone' ? '' : standing,
          name === OURS[0] ? published.join('; ') : '',
        ],
      ]
    }),
  )
  if (rows.length === 0) return []
  return [
    table(['work', 'ours', 'figure', 'best peer', 'ours ÷ peer', '', 'published'], rows),
    ...(rows.some(row => row.at(-1) !== '') ? [ELSEWHERE] : []),
  ]
}

/** What we set ourselves, with the command line beside the library, and the accelerator on beside off where both ran. */
function reached(tables: readonly Table[]): readonly string[] {
  return tables.length > 0 ? ['## What is to be reached', summary(tables, OURS)] : []
}

const ELSEWHERE =
  '`published` is what authors say of themselves on other machines: ferrotunnel 1.0.0 with rathole 0.5.0 and frp 0.66.0; rathole of 2021 with frp 0.38.0; tinyhttp with frameworks of 2020 on Node 15.4, without a tunnel; an HTTP proxy on Node 20 with wrk.'

function workOf({ title }: Table, { key, title: what, unit }: Column): string {
  if (key === 'cpu') return title
  return key === 'cpuGb' ? `${title}, a GB` : `${title}: ${what}${unit && `, ${unit}`}`
}

/** A line for each work, a column for each tunnel, medians. */
function grid(
  heading: string,
  tables: readonly Table[],
  choose: (one: Table) => Column | undefined,
): readonly string[] {
  const names = [...new Set(tables.flatMap(({ rows }) => rows.map(({ name }) => name)))]
  const lines = tables.flatMap(one => {
    const column = choose(one)
    if (!column) return []
    const rows = names.map(name => one.rows.find(row => row.name === name))
    return [[workOf(one, column), ...rows.map(row => (row ? cell(one, row, column) : ''))]]
  })
  return lines.length > 0 ? [`## ${heading}`, table(['', ...names], lines)] : []
}

/** With a fault, also what was lost in it. */
function cell({ columns }: Table, row: ResultRow, { key }: Column): string {
  const values = figuresOf(row, key)
  if (values.length === 0) return String(row.cells[key]).startsWith('failed') ? 'failed' : ''
  const lost = columns.filter(one => key === 'seconds' && (one.key === 'lost' || one.key === 'wrong'))
  const counts = lost.map(one => [median(figuresOf(row, one.key)), one.title] as const)
  const said = counts.filter(([count]) => count > 0).map(([count, title]) => `, ${figure(count)} ${title}`)
  return `${figure(median(values))}${said.join('')}`
}

/** One line for each figure of each row. */
export function csvOf({ tables }: SuiteResult): string {
  const quoted = (text: string) => (/[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)
  const lines = tables.flatMap(({ title, columns, rows }) =>
    rows.flatMap(({ name, cells }) =>
      columns.flatMap(({ key, title: column, unit }) => {
        const cell = cells[key]
        if (cell === undefined) return []
        const { median: middle, min, max } = summarize(typeof cell === 'string' ? [] : cell)
        const figures = typeof cell === 'string' ? [cell, '', ''] : [middle, min, max].map(String)
        return [[title, name, column, unit, ...figures].map(quoted).join(',')]
      }),
    ),
  )
  return `${['work,tunnel,figure,unit,median,smallest,largest', ...lines].join('\n')}\n`
}

/** Which tunnels fail which check: a tunnel that is not named passes it. */
function scorecard({ columns, rows }: Table): string {
  const [passed, asked, ...checks] = columns
  const middle = (row: ResultRow, key: string) => median(figuresOf(row, key))
  const totals = rows.map(
    row =>
      `- ${row.name}: ${middle(row, passed!.key).toFixed(1)} % of ${middle(row, asked!.key)}${carriesOf(row.name) === 'http' ? '' : ', moves bytes'}`,
  )
  const failures = checks.map(({ key, title }) => {
    const failed = rows.filter(({ cells }) => typeof cells[key] === 'object' && cells[key][0] !== 1)
    return { title: `${key.slice(0, key.indexOf('.'))}: ${title}`, failed: failed.map(({ name }) => name) }
  })
  return [
    'Each check runs three times and passes when all three did. Tunnels of ports only move bytes, and are asked fewer checks. What its source calls optional is no failure, and does not count.',
    totals.join('\n'),
    '### Checks that a tunnel fails',
    failures
      .filter(({ failed }) => failed.length > 0)
      .map(({ title, failed }) => `- ${title}: **${failed.join(', ')}**`)
      .join('\n'),
    `All tunnels pass the other ${failures.filter(({ failed }) => failed.length === 0).length}.`,
  ].join('\n\n')
}

export function carriesOf(name: string): string | undefined {
  return ALL.find(peer => peer.name === name)?.carries
}

/** Functions and single requests of one process, in readable times; empty for other tables. */
function timed({ title, columns, rows }: Table): string {
  if (columns[0]!.unit !== 'ns') return ''
  const published = PUBLISHED[title]
  const lines = rows.map(row => [
    row.name,
    ...['avg', 'p50', 'p99'].map(key => duration(figuresOf(row, key))),
    ...(published ? [duration([published[row.name] ?? Number.NaN])] : []),
  ])
  return table(['', 'avg', 'p50', 'p99', ...(published ? ['published'] : [])], lines)
}

function duration(values: readonly number[]): string {
  const ns = median(values)
  if (Number.isNaN(ns)) return ''
  if (ns >= 1e6) return `${figure(ns / 1e6)} ms`
  return ns >= 1e3 ? `${figure(ns / 1e3)} µs` : `${figure(ns)} ns`
}
