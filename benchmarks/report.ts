// Saved runs to docs/benchmarks.md with tables and charts: `bun benchmarks/report.ts [FILE …]`.
//
//   bun benchmarks/index.ts --json benchmarks/results/run.json     first
//   bun benchmarks/ahead.ts --json benchmarks/results/ahead.json
//
// Without files it takes all of benchmarks/results. Of a suite that is in several files the newest run counts.

import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { jsonTable, peerTable, verdictTable, warnings } from './ahead/print.ts'
import type { Measured } from './ahead/verdict.ts'
import { isFigure } from './measure/compare.ts'
import { type Environment, environmentLine } from './measure/environment.ts'
import type { Group, SavedRun, SuiteResult } from './measure/result.ts'
import { losses } from './report/losses.ts'
import { bars, curves } from './report/svg.ts'
import { groupTable } from './report/tables.ts'

interface AheadRun {
  readonly suite: 'ahead'
  readonly environment: Environment
  readonly seconds: number
  readonly measured: readonly Measured[]
}

const RESULTS = join(import.meta.dir, 'results')
const DOCS = join(import.meta.dir, '../docs')
const CHARTS = join(DOCS, 'charts')
const ORDER =
  'utils connection throughput latency scalability comparison load transfer memory streaming features scaling frameworks'.split(
    ' ',
  )

const STREAMS_TITLE = 'Ours against the best of the peers'
const JSON_TITLE = 'Ours on the JSON wire against the existing localtunnels'

const files = process.argv.slice(2)
if (files.length === 0) {
  for (const name of readdirSync(RESULTS)) if (name.endsWith('.json')) files.push(join(RESULTS, name))
}
const suites = new Map<string, SuiteResult>()
/** By what they compare: the newest of each. */
const ahead = new Map<string, AheadRun>()
for (const file of files) {
  // Files that our own suites wrote.
  const content = (await Bun.file(file).json()) as SavedRun | SuiteResult | AheadRun
  if ('measured' in content) {
    const title = titleOf(content)
    const known = ahead.get(title)
    if (!known || known.environment.date < content.environment.date) ahead.set(title, content)
    continue
  }
  for (const suite of 'suites' in content ? content.suites : [content]) {
    const known = suites.get(suite.suite)
    if (!known || known.environment.date < suite.environment.date) suites.set(suite.suite, suite)
  }
}
const ordered = ORDER.map(name => suites.get(name)).filter(suite => suite !== undefined)
if (ordered.length === 0 && ahead.size === 0) {
  console.error('no results: run bun benchmarks/index.ts --json benchmarks/results/run.json first')
  process.exit(1)
}

mkdirSync(CHARTS, { recursive: true })
const sections = [await Bun.file(join(import.meta.dir, 'report/method.md')).text()]
const quick = ordered.filter(suite => suite.quick)
if (quick.length > 0) {
  sections.push(`**Smoke runs, whose figures mean nothing:** ${quick.map(({ title }) => title).join(', ')}.`)
}
for (const [title, run] of ahead) sections.push(aheadSection(title, run))
for (const suite of ordered) sections.push(await suiteSection(suite))
sections.push(`## Where ours is not first\n\n${losses(ordered)}`)
await Bun.write(join(DOCS, 'benchmarks.md'), `${sections.map(section => section.trim()).join('\n\n')}\n`)
console.log(
  `docs/benchmarks.md: ${ordered.length} suites${ahead.size > 0 ? ' and the tables of ahead.ts' : ''}`,
)

function titleOf({ measured }: AheadRun): string {
  const hasStreams = measured.some(({ peer }) => peer === 'ours-streams')
  return hasStreams ? STREAMS_TITLE : JSON_TITLE
}

function aheadSection(title: string, { environment, measured, seconds }: AheadRun): string {
  const rounds = new Set(measured.map(({ round }) => round)).size
  const parts = [`## ${title}`, `_${environmentLine(environment)}_`]
  parts.push(
    `\`bun benchmarks/ahead.ts\`: ${rounds} interleaved rounds of ${seconds} s a measurement; median (min..max).`,
  )
  // Where the existing localtunnels ran beside ours it has a section of its own.
  const json = title === STREAMS_TITLE && ahead.has(JSON_TITLE) ? '' : jsonTable(measured)
  parts.push(...[verdictTable(measured), json].filter(Boolean))
  parts.push('All tunnels:', peerTable(measured), ...warnings(measured).map(warning => `- ${warning}`))
  return parts.join('\n\n')
}

async function suiteSection({ suite, title, environment, groups }: SuiteResult): Promise<string> {
  const parts = [`## ${title}`, `\`bun benchmarks/${suite}.ts\` · _${environmentLine(environment)}_`]
  const tools = Object.entries(environment.tools).filter(([, version]) => version !== '-')
  if (tools.length > 0) parts.push(`With ${tools.map(([name, version]) => `${name} ${version}`).join(', ')}.`)
  for (const group of groups) {
    parts.push(`### ${group.name}`)
    const chart = await chartOf(suite, group)
    if (chart) parts.push(chart)
    parts.push(groupTable(group))
    if (group.note) parts.push(group.note)
  }
  const loop = await openLoopChart(suite, groups)
  if (loop) parts.push(loop)
  return parts.join('\n\n')
}

/** A chart where a group brings curves or compares peers. */
async function chartOf(suite: string, group: Group): Promise<string | null> {
  if (group.chart && group.chart.series.length > 0)
    return save(suite, group.name, curves(group.name, group.chart))
  const [first] = group.columns
  if (!first || first.unit === 'ns' || !group.rows.some(({ name }) => name.startsWith('ours'))) return null
  const all = group.rows.flatMap(({ name, cells }) => {
    const cell = cells[first.key]
    return isFigure(cell) ? [{ name, value: cell.value }] : []
  })
  if (all.length < 3) return null
  const best = (a: number, b: number): number => (first.better === 'higher' ? b - a : a - b)
  const sorted = all.filter(({ name }) => name !== 'direct').sort((a, b) => best(a.value, b.value))
  return save(suite, group.name, bars(`${group.name}: ${first.title}`, first.unit, sorted))
}

/** p99 over the rate, all tunnels in one picture. */
async function openLoopChart(suite: string, groups: readonly Group[]): Promise<string | null> {
  const series = groups
    .filter(({ name }) => name.startsWith('Open loop: '))
    .map(({ name, rows }) => ({
      name: name.replace('Open loop: ', ''),
      points: rows.flatMap(row => {
        const cell = row.cells.p99
        const rate = Number(row.name.replaceAll(',', '').split(' ')[0])
        return isFigure(cell) && rate > 1 ? [[rate, cell.value] as const] : []
      }),
    }))
    .filter(({ points }) => points.length > 1)
  if (series.length === 0) return null
  return save(
    suite,
    'p99 by rate',
    curves('p99 by rate', { x: 'requests per second', y: 'ms', series }, true),
  )
}

async function save(suite: string, name: string, svg: string): Promise<string> {
  const file = `${suite}-${name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')}.svg`
  await Bun.write(join(CHARTS, file), svg)
  return `![${name}](charts/${file})`
}
