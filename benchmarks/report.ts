// A saved run to docs/benchmarks.md, its charts and its detail pages: `bun benchmarks/report.ts benchmarks/results/VERSION.json`.
//
//   bun benchmarks/index.ts --json benchmarks/results/VERSION.json     first: one compact file for each release
//   bun benchmarks/report.ts FILE FOLDER                               into another folder than docs

import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { environmentLine } from './measure/environment.ts'
import type { ResultRow } from './measure/result.ts'
import { figure, median, spread, summarize } from './measure/samples.ts'
import { refuse, savedRun } from './measure/suite.ts'
import { ratioText } from './measure/summary.ts'
import { table } from './measure/table.ts'
import { figuresOf, judge, type Verdict } from './measure/verdict.ts'
import { ALL } from './peers/list.ts'
import { CAUSES } from './report/causes.ts'
import { csvOf, meanwhile, pageOf } from './report/detail.ts'
import { type Bar, bars, type Curve, curves } from './report/svg.ts'

const [file, folder = join(import.meta.dir, '../docs')] = process.argv.slice(2)

const CHARTS = join(folder, 'charts')
const PAGES = join(folder, 'benchmarks')
/** Lines of the page. A reader who wants more follows its links. */
const MAX_LINES = 150

/** Shown in charts of curves: the few that a reader can tell apart. */
const DRAWN = [
  'direct',
  'ours',
  'ours-cli',
  'rathole',
  'bore',
  'frp-nomux',
  'frp-mux',
  'chisel',
  'ferrotunnel',
]

if (file === undefined) refuse('which saved run? bun benchmarks/report.ts benchmarks/results/VERSION.json')
const { suites } = await savedRun(file)
const all = new Map(suites.flatMap(({ tables }) => tables.map(one => [one.id, one] as const)))
for (const one of [CHARTS, PAGES]) {
  rmSync(one, { recursive: true, force: true })
  mkdirSync(one, { recursive: true })
}

const charts = [
  await line('Requests a second by connections (GET 20 B)', 'more is better', 'rps', [
    't1',
    't10',
    't50',
    't100',
    't500',
    't1000',
  ]),
  await line(
    'Megabytes a second by size (10 connections)',
    'more is better; logarithmic',
    'mbps',
    ['1k10', '10k10', '64k10', '100k10', '1m10', '10m10'],
    true,
  ),
  await percentiles('r4000', 'Latency at 4,000 requests a second, ms', 'less is better; logarithmic'),
  await bar(
    't50',
    'cpu',
    'Processor time of a request, both ends, µs',
    'less is better; GET 20 B, 50 connections',
  ),
  await bar('held1000', 'idle', 'Memory of both ends, idle, MB', 'less is better'),
  await bar(
    'fidelity',
    'passed',
    'Conformance checks passed, %',
    'more is better; tunnels of ports are asked fewer',
  ),
].filter(chart => chart !== null)

const page = await Bun.file(join(import.meta.dir, 'report/page.md')).text()
const written = page
  .replace('{{machine}}', machine())
  .replace('{{charts}}', charts.join('\n\n'))
  .replace('{{wins}}', standings('ahead'))
  .replace('{{losses}}', standings('behind'))
  .replace('{{pages}}', suites.map(({ suite, title }) => `[${title}](benchmarks/${suite}.md)`).join(', '))
  .replace('{{tunnels}}', table(['tunnel', 'version', 'how it is run'], tunnels()))
if (written.split('\n').length > MAX_LINES)
  throw new Error(`docs/benchmarks.md is longer than ${MAX_LINES} lines`)
await Bun.write(join(folder, 'benchmarks.md'), written)
for (const suite of suites) {
  await Bun.write(join(PAGES, `${suite.suite}.md`), pageOf(suite))
  await Bun.write(join(PAGES, `${suite.suite}.csv`), csvOf(suite))
}
console.log(`docs/benchmarks.md, ${readdirSync(CHARTS).length} charts, ${suites.length} detail pages`)

function machine(): string {
  const { environment, rounds, quick } = suites[0]!
  const commits = new Set(suites.map(one => one.environment.commit))
  const parts = [
    `${environmentLine(environment)}. Medians of ${rounds} interleaved round${rounds === 1 ? '' : 's'}${rounds < 5 ? ', fewer than the usual five' : ''}, unless the row says otherwise.`,
    ...(commits.size > 1
      ? ['The suites come from several runs: each detail page has its machine, commit and date.']
      : []),
    ...meanwhile(suites),
  ]
  if (quick || suites.some(one => one.quick)) parts.push('**A smoke run: no figure means anything.**')
  return parts.join('\n')
}

async function line(
  title: string,
  direction: string,
  key: string,
  ids: readonly string[],
  logarithmic = false,
): Promise<string | null> {
  const tables = ids.flatMap(id => all.get(id) ?? [])
  const drawn = DRAWN.flatMap((name): Curve[] => {
    const rows = tables.map(({ rows }) => rows.find(row => row.name === name))
    const points = rows.map(row => middle(row, key))
    const spreads = rows.map(row => rangeOf(row, key))
    const [row] = rows.filter(one => one !== undefined)
    // The generator alone would press the others to the ground.
    return row && name !== 'direct' && points.some(point => point !== null)
      ? [{ ...marks(row), points, spreads }]
      : []
  })
  if (drawn.length === 0) return null
  return save(
    title,
    curves(
      title,
      direction,
      tables.map(({ title }) => stepOf(title)),
      drawn,
      logarithmic,
    ),
  )
}

function stepOf(title: string): string {
  const [, size, connections] = /^GET (.*?), ([\d,]+) connection/.exec(title) ?? []
  return (size === '20 B' ? connections : size) ?? title
}

async function percentiles(id: string, title: string, direction: string): Promise<string | null> {
  const rows = (all.get(id)?.rows ?? []).filter(({ name }) => DRAWN.includes(name))
  const keys = ['p50', 'p90', 'p99', 'p999']
  const drawn = rows.map(row => ({
    ...marks(row),
    points: keys.map(key => middle(row, key)),
    spreads: keys.map(key => rangeOf(row, key)),
  }))
  if (drawn.every(({ points }) => points.every(point => point === null))) return null
  return save(title, curves(title, direction, ['p50', 'p90', 'p99', 'p99.9'], drawn, true))
}

async function bar(id: string, key: string, title: string, direction: string): Promise<string | null> {
  const one = all.get(id)
  const better = one?.columns.find(column => column.key === key)?.better
  const rows = (one?.rows ?? []).flatMap((row): Bar[] => {
    const values = figuresOf(row, key)
    if (values.length === 0) return []
    const { median, min, max } = summarize(values)
    return [{ ...marks(row), value: median, low: min, high: max }]
  })
  if (rows.length === 0) return null
  return save(
    title,
    bars(
      title,
      direction,
      rows.toSorted((a, b) => (better === 'higher' ? b.value - a.value : a.value - b.value)),
    ),
  )
}

function middle(row: ResultRow | undefined, key: string): number | null {
  const values = figuresOf(row, key)
  return values.length > 0 ? median(values) : null
}

function rangeOf(row: ResultRow | undefined, key: string): readonly [number, number] | null {
  const values = figuresOf(row, key)
  return values.length > 1 ? [Math.min(...values), Math.max(...values)] : null
}

function marks({ name, role }: ResultRow): {
  readonly name: string
  readonly isOurs: boolean
  readonly isFloor: boolean
} {
  return { name, isOurs: role === 'ours', isFloor: role === 'floor' }
}

async function save(title: string, svg: string): Promise<string> {
  const name = title
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
  await Bun.write(join(CHARTS, `${name}.svg`), svg)
  return `![${title}](charts/${name}.svg)`
}

interface Standing extends Verdict {
  readonly id: string
  readonly title: string
  readonly name: string
}

/** Rows on several roads have one cause. */
function causeOf({ id }: Standing): string | undefined {
  return CAUSES[id] ?? CAUSES[id.split(' ', 1)[0]!]
}

/** The five rows that are furthest from the mark; each row once, by the library or the command line, and each cause once. */
function standings(wanted: 'ahead' | 'behind'): string {
  const found = [...all.values()].flatMap((one): Standing[] =>
    ['ours', 'ours-cli'].flatMap(name => {
      const verdict = judge(one, name, one.columns[0]!.key)
      return verdict?.standing === wanted && verdict.mark
        ? [{ ...verdict, id: one.id, title: one.title, name }]
        : []
    }),
  )
  const isFirstOfItsCause = (one: Standing, at: number, sorted: readonly Standing[]): boolean =>
    wanted === 'ahead' ||
    causeOf(one) === undefined ||
    at === sorted.findIndex(other => causeOf(other) === causeOf(one))
  const distance = ({ ratio }: Standing): number => Math.abs(Math.log(ratio?.median ?? 1))
  const rows = [...Map.groupBy(found, ({ id }) => id).values()]
    .map(same => same.toSorted((a, b) => distance(b) - distance(a))[0]!)
    .toSorted((a, b) => distance(b) - distance(a))
    .filter(isFirstOfItsCause)
    .slice(0, 5)
    .map(one => [
      one.title,
      one.name,
      `${spread(one.ours)} ${one.column.unit}`,
      `${one.mark!.name} ${figure(one.mark!.summary.median)}`,
      ratioText(one.ratio!),
      ...(wanted === 'behind' ? [causeOf(one) ?? 'Not investigated yet.'] : []),
    ])
  if (rows.length === 0) return 'None in this run.'
  return table(
    ['work', 'tunnel', 'ours', 'best peer', 'ours ÷ peer', ...(wanted === 'behind' ? ['cause'] : [])],
    rows,
  )
}

function tunnels(): readonly string[][] {
  const versions = Object.assign({}, ...suites.map(({ environment }) => environment.tools)) as Readonly<
    Record<string, string>
  >
  return ALL.filter(({ name }) => versions[name] !== undefined).map(({ name, how }) => [
    name,
    versions[name]!,
    how,
  ])
}
