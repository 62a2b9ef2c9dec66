// The documents of a saved run, by their names below docs/: one page, six charts, a CSV file for each suite.

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { environmentLine } from '../measure/environment.ts'
import type { ResultRow, SavedRun, SuiteResult, Table } from '../measure/result.ts'
import { figure, median, spread, summarize } from '../measure/samples.ts'
import { meanwhileLine } from '../measure/suite.ts'
import { ratioText } from '../measure/summary.ts'
import { csv, table } from '../measure/table.ts'
import { figuresOf } from '../measure/verdict.ts'
import { ALL } from '../peers/list.ts'
import { CAUSES } from './causes.ts'
import { publishedCsv } from './published.ts'
import { countsOf, KINDS, OF_GENERATORS, pick, type Standing, standingsOf } from './standings.ts'
import { type Bar, bars, type Curve, curves, type Mark } from './svg.ts'

/** Lines of the page. A reader who wants more follows its links. */
const MAX_LINES = 150
const PICKED = 6
/** Tunnels of a row that a remark names. */
const NAMED = 2
const FEW_ROUNDS = 5
/** Cores taken by other work, and percent by the hypervisor, from which on absolute figures are doubtful. */
const BUSY_CORES = 0.3
const BUSY_STEAL = 5
/** Shown in charts of curves: the few that a reader can tell apart. */
const DRAWN =
  /^(?:direct|ours|ours-cli|rathole|bore|frp-nomux|frp-mux|wstunnel|nginx-hop|nginx-tls(?:\+\w+)?)$/

export async function documentsOf({ suites }: SavedRun): Promise<ReadonlyMap<string, string>> {
  const documents = new Map<string, string>()
  const tables = suites.flatMap(one => one.tables)
  const of = (id: string): Table | undefined => tables.find(one => one.id === id)
  const charts = chartsOf(of)
  for (const { name, svg } of charts) documents.set(`charts/${name}.svg`, svg)
  for (const suite of suites) documents.set(`benchmarks/${suite.suite}.csv`, csvOf(suite))
  documents.set('benchmarks/published.csv', publishedCsv(suites))
  const page = await Bun.file(`${import.meta.dir}/page.md`).text()
  const fields: Readonly<Record<string, string>> = {
    machine: machineOf(suites),
    remarks: remarksOf(suites),
    counts: countTable(tables),
    charts: charts.map(({ title, name }) => `![${title}](charts/${name}.svg)`).join('\n'),
    wins: picked(tables, 'ahead'),
    losses: picked(tables, 'behind'),
    generators: generatorTable(tables),
    failures: failuresOf(tables),
    files: suites.map(({ suite, title }) => `[${title}](benchmarks/${suite}.csv)`).join(', '),
    tunnels: tunnelTable(suites),
    roads:
      suites.find(({ suite }) => suite === 'wan')?.environment.tools.congestion ??
      'the default of the machine',
  }
  const written = page.replaceAll(/\{\{(\w+)\}\}/g, (_, name: string) => fields[name] ?? '')
  const lines = written.split('\n').length
  if (lines > MAX_LINES) throw new Error(`docs/benchmarks.md has ${lines} lines, more than ${MAX_LINES}`)
  return documents.set('benchmarks.md', written)
}

/** In place of those of an earlier run. */
export async function writeDocuments(documents: ReadonlyMap<string, string>, into: string): Promise<void> {
  for (const part of ['charts', 'benchmarks']) rmSync(join(into, part), { recursive: true, force: true })
  for (const [name, text] of documents) await Bun.write(join(into, name), text)
}

function machineOf(suites: readonly SuiteResult[]): string {
  const [{ environment }] = suites as readonly [SuiteResult]
  const all = suites.flatMap(({ rounds, tables }) => tables.map(one => one.rounds ?? rounds))
  const { min, max } = summarize(all)
  const rounds = min === max ? `${min}` : `${min} to ${max}`
  return `${environmentLine(environment)}. Medians of ${rounds} interleaved round${max === 1 ? '' : 's'}; the CSV files say how many each row has.`
}

/** What a reader must know before the figures. */
function remarksOf(suites: readonly SuiteResult[]): string {
  const tables = suites.flatMap(one => one.tables)
  const figures = (key: string): readonly number[] =>
    tables.flatMap(({ rows }) => rows.flatMap(row => figuresOf(row, key)))
  const meanwhile = suites.flatMap(one => one.meanwhile ?? [])
  const foreign = median([...figures('foreign'), ...meanwhile.map(one => one.foreign)])
  const steal = median([...figures('steal'), ...meanwhile.map(one => one.steal)])
  const judged = [...new Set(standingsOf(tables, 'ours-cli').map(({ table: one }) => one))]
  const few = judged.filter(({ rounds = FEW_ROUNDS }) => rounds < FEW_ROUNDS)
  const near = tables.flatMap(({ title, note }) => {
    const [, names] = /ceiling \(direct\): (.*?)\.(?: |$)/.exec(note ?? '') ?? []
    return names === undefined ? [] : [`${title} (${names.split(', ').slice(0, NAMED).join(', ')})`]
  })
  const commits = new Set(suites.map(({ environment }) => environment.commit))
  const isShared = foreign > BUSY_CORES || steal > BUSY_STEAL
  return [
    commits.size === 1
      ? '- All figures are of one run, one machine and one commit.'
      : `- **Suites are of ${commits.size} commits: these figures are provisional.**`,
    ...(Number.isNaN(foreign) ? [] : [`- ${meanwhileLine({ foreign, steal })}`]),
    ...(isShared ? ['- **The machine was shared with other work: these figures are provisional.**'] : []),
    ...(few.length > 0
      ? [`- ${few.length} of ${judged.length} judged rows have fewer than ${FEW_ROUNDS} rounds.`]
      : []),
    ...(near.length > 0
      ? [
          `- ${near.length} rows are near the ceiling of the generator and the app, such as ${near.slice(0, 3).join('; ')}: see the remarks in the CSV files.`,
        ]
      : []),
  ].join('\n')
}

function countTable(tables: readonly Table[]): string {
  const lines = ['ours-cli', 'ours'].flatMap(name => {
    const standings = standingsOf(tables, name)
    return KINDS.map(kind => {
      const { ahead, tie, behind } = countsOf(standings, kind)
      return [name, kind, String(ahead), String(tie), String(behind)]
    })
  })
  return table(['tunnel', 'of the best other tunnel', 'ahead', 'level', 'behind'], lines)
}

function causeOf({ table: { id, path }, kind }: Standing): string | undefined {
  const [word = ''] = id.split(' ', 1)
  const names = [id, word, word.replace(/\d.*$/, ''), path ?? '']
  return names.map(name => CAUSES[`${name} ${kind}`] ?? CAUSES[name]).find(cause => cause !== undefined)
}

/** By the command line, and by the library where it alone was measured. */
function picked(tables: readonly Table[], wanted: 'ahead' | 'behind'): string {
  const ofCli = standingsOf(tables, 'ours-cli')
  const other = standingsOf(tables, 'ours').filter(({ table }) => !ofCli.some(one => one.table === table))
  const rows = pick([...ofCli, ...other], wanted, PICKED, wanted === 'behind' ? causeOf : undefined).map(
    one => [
      `${one.table.title}: ${one.column.title}`,
      one.table.path ?? (one.table.columns.some(({ key }) => key === 'rps') ? 'easy requests' : '–'),
      `${spread(one.ours)} ${one.column.unit}`,
      `${one.mark!.name} ${figure(one.mark!.summary.median)}`,
      ratioText(one.ratio!),
      ...(wanted === 'behind' ? [causeOf(one) ?? 'Not investigated yet.'] : []),
    ],
  )
  if (rows.length === 0) return 'None in this run.'
  const head = [
    'work',
    'path',
    'ours',
    'best other',
    'ours ÷ other',
    ...(wanted === 'behind' ? ['cause'] : []),
  ]
  return table(head, rows)
}

/** The same three rows by other programs. */
function generatorTable(tables: readonly Table[]): string {
  const lines = tables.flatMap(({ id, title, columns, rows }) => {
    if (!OF_GENERATORS.test(id)) return []
    return rows
      .filter(({ name }) => /^(?:direct|ours-cli|rathole)$/.test(name))
      .map(row => {
        const cells = columns
          .filter(({ key }) => !/^(?:foreign|steal)$/.test(key))
          .map(({ key }) => figure(median(figuresOf(row, key))))
        return [
          title,
          id.replace('post', ''),
          row.name,
          `${cells[0]} / ${cells[1]}`,
          `${cells[2]} / ${cells[3]}`,
        ]
      })
  })
  if (lines.length === 0) return 'wrk and vegeta were not run.'
  return table(
    ['work', 'other', 'tunnel', 'requests/s or p50 ms, generator.c / other', 'p99 ms, generator.c / other'],
    lines,
  )
}

/** Other tunnels that failed: each with its reasons, and how many rows each has. */
function failuresOf(tables: readonly Table[]): string {
  const found = new Map<string, Map<string, number>>()
  for (const { name, role, cells } of tables.flatMap(({ rows }) => rows)) {
    const why = Object.values(cells).find(cell => typeof cell === 'string' && cell.startsWith('failed'))
    if (role === 'ours' || typeof why !== 'string') continue
    const reasons = found.get(name) ?? new Map<string, number>()
    found.set(name, reasons)
    const words = why
      .replace('failed: ', '')
      .replace(/^\d+ of \d+ /, '')
      .slice(0, 80)
    reasons.set(words, (reasons.get(words) ?? 0) + 1)
  }
  if (found.size === 0) return 'No other tunnel failed in this run.'
  const lines = [...found].map(
    ([name, reasons]) =>
      `- ${name}: ${[...reasons].map(([words, count]) => `${words} (${count} ${count === 1 ? 'row' : 'rows'})`).join('; ')}`,
  )
  return lines.join('\n')
}

function tunnelTable(suites: readonly SuiteResult[]): string {
  const versions = Object.assign({}, ...suites.map(({ environment }) => environment.tools)) as Readonly<
    Record<string, string>
  >
  const rows = ALL.filter(({ name }) => versions[name] !== undefined)
  return table(
    ['tunnel', 'version', 'how it is run'],
    rows.map(({ name, how }) => [name, versions[name]!, how]),
  )
}

const ON_HOP = 'more is better; dashed: one reverse proxy, no tunnel'
/** Variants of ours that stand in the CSV files only. */
const NOT_DRAWN = /-(?:off|tty)$/

interface Chart {
  readonly title: string
  readonly name: string
  readonly svg: string
}

function chartsOf(of: (id: string) => Table | undefined): readonly Chart[] {
  const present = (ids: readonly string[]): readonly Table[] => ids.flatMap(id => of(id) ?? [])
  const named = (title: string, svg: string | null): readonly Chart[] => {
    const name = title
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, '-')
      .replaceAll(/^-|-$/g, '')
    return svg === null ? [] : [{ title, name, svg }]
  }
  const [plain, tls, bySize] = [
    'Requests a second by connections (GET 20 B)',
    'Requests a second over TLS (GET 20 B)',
    'Megabytes a second by size, ordinary path',
  ]
  const [latency, cpu, memory] = [
    'Latency at 4,000 requests a second, ms',
    'Processor time of a request, both ends, µs',
    'Memory of both ends, idle, MB',
  ]
  const counts = ['1', '10', '50', '100', '200', '500', '1000']
  const sizes = ['2k', '4k', '8k', '16k', '24k', '32k', '48k', '64k', '100k', '256k', '1m']
  const overTls = present(counts.map(count => `tls${count}`))
  return [
    ...named(plain, line(plain, ON_HOP, 'rps', present(counts.map(count => `t${count}`)))),
    ...named(
      tls,
      overTls.length > 1
        ? line(tls, ON_HOP, 'rps', overTls)
        : bar(overTls[0], 'rps', tls, 'more is better; 50 connections; dashed: no tunnel'),
    ),
    ...named(
      bySize,
      line(bySize, `10 connections; ${ON_HOP}`, 'mbps', present(sizes.map(size => `len${size}x10`))),
    ),
    ...named(latency, percentiles(latency, of('r4000'))),
    ...named(cpu, bar(of('t50'), 'cpu', cpu, 'less is better; GET 20 B, 50 connections')),
    ...named(
      memory,
      bar(of('held1000'), 'idle', memory, 'less is better; resident, with the text that programs share'),
    ),
  ]
}

function line(title: string, direction: string, key: string, tables: readonly Table[]): string | null {
  const names = [...new Set(tables.flatMap(({ rows }) => rows.map(({ name }) => name)))]
  const drawn = names.flatMap((name): Curve[] => {
    const rows = tables.map(({ rows }) => rows.find(row => row.name === name))
    const row = rows.find(one => one !== undefined)
    const points = rows.map(one => middle(one, key))
    // The generator alone would press the others to the ground.
    const isLine = points.filter(point => point !== null).length > 1
    if (!row || !DRAWN.test(name) || name === 'direct' || !isLine) return []
    return [{ ...marks(row), points, spreads: rows.map(one => rangeIn(one, key)) }]
  })
  const steps = tables.map(({ title: of }) => stepOf(of).replace(/ ([KM])B$/, '$1'))
  return drawn.length === 0 ? null : curves(title, direction, steps, drawn)
}

/** Connections, or the size where it is not 20 B. */
function stepOf(title: string): string {
  const connections = /([\d,]+) connection/.exec(title)?.[1]
  const size = /\b([\d,]+ [KM]?B)\b/.exec(title)?.[1]
  return (size === undefined || size === '20 B' ? connections : size) ?? title
}

function percentiles(title: string, of: Table | undefined): string | null {
  const keys = ['p50', 'p90', 'p95', 'p99', 'p999'].filter(key =>
    of?.rows.some(row => middle(row, key) !== null),
  )
  const drawn = (of?.rows ?? [])
    .filter(({ name }) => DRAWN.test(name))
    .map(row => ({
      ...marks(row),
      points: keys.map(key => middle(row, key)),
      spreads: keys.map(key => rangeIn(row, key)),
    }))
  if (drawn.every(({ points }) => points.every(point => point === null))) return null
  const steps = keys.map(key => key.replace('999', '99.9'))
  return curves(
    title,
    'less is better; logarithmic; dotted: no tunnel, dashed: one reverse proxy',
    steps,
    drawn,
    true,
  )
}

function bar(of: Table | undefined, key: string, title: string, direction: string): string | null {
  const better = of?.columns.find(column => column.key === key)?.better
  const rows = (of?.rows ?? []).flatMap((row): Bar[] => {
    const values = figuresOf(row, key)
    if (values.length === 0 || NOT_DRAWN.test(row.name)) return []
    const { median: value, min, max } = summarize(values)
    return [{ ...marks(row), value, low: min, high: max }]
  })
  if (rows.length === 0) return null
  const sign = better === 'higher' ? -1 : 1
  return bars(
    title,
    direction,
    rows.toSorted((a, b) => sign * (a.value - b.value)),
  )
}

function middle(row: ResultRow | undefined, key: string): number | null {
  const values = figuresOf(row, key)
  return values.length > 0 ? median(values) : null
}

function rangeIn(row: ResultRow | undefined, key: string): readonly [number, number] | null {
  const values = figuresOf(row, key)
  return values.length > 1 ? [Math.min(...values), Math.max(...values)] : null
}

function marks({ name, role }: ResultRow): Mark {
  return { name, isOurs: role === 'ours', isFloor: role === 'floor' }
}

/** One line for each figure of each row, with its rounds and the remark of its table. */
export function csvOf({ tables }: SuiteResult): string {
  const lines = tables.flatMap(({ title, columns, rows, rounds, note }) =>
    rows.flatMap(({ name, cells }) =>
      columns.flatMap(({ key, title: column, unit }) => {
        const cell = cells[key]
        if (cell === undefined) return []
        const { median: middle, min, max } = summarize(typeof cell === 'string' ? [] : cell)
        const figures = typeof cell === 'string' ? [cell, '', ''] : [middle, min, max].map(String)
        return [[title, name, column, unit, ...figures, String(rounds ?? ''), note ?? '']]
      }),
    ),
  )
  return csv(['work', 'tunnel', 'figure', 'unit', 'median', 'smallest', 'largest', 'rounds', 'remark'], lines)
}
