// What the report refuses, counts and picks, and that the documents are those of the saved run.

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { Glob } from 'bun'
import type { Environment } from '../../benchmarks/measure/environment.ts'
import {
  type Cell,
  type Path,
  type ResultRow,
  readRun,
  type SavedRun,
  type SuiteResult,
  type Table,
} from '../../benchmarks/measure/result.ts'
import { documentsOf, writeDocuments } from '../../benchmarks/report/pages.ts'
import { PUBLISHED } from '../../benchmarks/report/published.ts'
import { faultsOf } from '../../benchmarks/report/refusals.ts'
import { countsOf, pick, standingsOf } from '../../benchmarks/report/standings.ts'

const CODE = 'the code of now'
const HERE: Environment = {
  date: '2026-11-28T10:00:00',
  cpu: 'A processor',
  cores: 2,
  memoryGb: 8,
  system: 'linux 6',
  bun: Bun.version,
  commit: 'abc1234',
  code: CODE,
  tools: {},
}
const row = (name: string, role: ResultRow['role'], cells: Readonly<Record<string, Cell>>): ResultRow => ({
  name,
  role,
  cells,
})
/** Ours, the best peer and no tunnel at all, in three rounds. */
function table(id: string, ours: number, peer: number, direct: number, path?: Path): Table {
  const rounds = (rps: number): Cell => [rps, rps * 1.01, rps * 0.99]
  return {
    id,
    title: id,
    columns: [
      { key: 'rps', title: 'requests', unit: '/s', better: 'higher' },
      { key: 'p99', title: 'p99', unit: 'ms', better: 'lower' },
      { key: 'cpu', title: 'CPU', unit: 'µs', better: 'lower' },
      { key: 'idle', title: 'idle', unit: 'MB', better: 'lower' },
    ],
    rows: [
      row('direct', 'floor', { rps: rounds(direct) }),
      row('ours-cli', 'ours', { rps: rounds(ours), p99: [9, 9, 9], cpu: [5, 5, 5], idle: [80, 81, 82] }),
      row('bore', 'peer', { rps: rounds(peer), p99: [2, 2, 2], cpu: [9, 9, 9], idle: [8, 8, 8] }),
    ],
    rounds: 3,
    ...(path && { path }),
  }
}
const suite = (
  tables: readonly Table[],
  environment: Partial<Environment> = {},
  rounds = 3,
): SuiteResult => ({
  suite: 'speed',
  title: 'Speed',
  environment: { ...HERE, ...environment },
  quick: false,
  rounds,
  tables,
})
const run = (...suites: readonly SuiteResult[]): SavedRun => ({ schema: 2, suites })

test('a file of several commits, of other code, or with fewer rounds than it says is refused', () => {
  const good = table('t50', 100, 50, 900)
  expect(faultsOf(run(suite([good])), CODE)).toEqual([])
  expect(faultsOf(run(suite([good]), suite([good], { commit: 'def' })), CODE)).toEqual([
    'it is of several commits: abc1234, def',
  ])
  expect(faultsOf(run(suite([good]), suite([good], { cores: 4 })), CODE)[0]).toStartWith(
    'it is of several machines',
  )
  expect(faultsOf(run(suite([good])), 'other code')[0]).toContain('was measured with other code')
  expect(faultsOf(run(suite([{ ...good, rounds: 5 }], {}, 5)), CODE)[0]).toContain(
    'fewer than 5 rounds of direct',
  )
  expect(faultsOf(run(suite([{ ...good, rounds: 5 }])), CODE)[0]).toContain('says 5 rounds, its suite 3')
  expect(faultsOf(run({ ...suite([good]), quick: true }), CODE)).toEqual(['speed is a smoke run'])
})

test('every column is judged: a row can be ahead by its rate and behind by p99 and memory', () => {
  const standings = standingsOf([table('t50', 100, 50, 900), table('t100', 50, 50, 900)], 'ours-cli')
  expect(countsOf(standings, 'rate or latency')).toEqual({ ahead: 1, tie: 1, behind: 0 })
  expect(countsOf(standings, 'p99')).toEqual({ ahead: 0, tie: 0, behind: 2 })
  expect(countsOf(standings, 'processor time')).toEqual({ ahead: 2, tie: 0, behind: 0 })
  expect(countsOf(standings, 'memory')).toEqual({ ahead: 0, tie: 0, behind: 2 })
})

test('wins have rows of the ordinary path and over TLS, the furthest first, and none that is near no tunnel', () => {
  const rates = (all: readonly Table[]) =>
    standingsOf(
      all.map(one => ({ ...one, columns: one.columns.slice(0, 1) })),
      'ours-cli',
    )
  const all = rates([
    table('lanes1', 500, 50, 5_000),
    table('lanes2', 400, 50, 5_000),
    table('lanes3', 300, 50, 5_000),
    table('wakeups', 900, 50, 1_000),
    table('post', 60, 50, 900, 'ordinary'),
    table('chunked', 61, 50, 900, 'ordinary'),
    table('tls50', 70, 50, 900, 'tls'),
    table('slow', 25, 50, 900),
  ])
  expect(pick(all, 'ahead', 4).map(({ table: { id } }) => id)).toEqual(['lanes1', 'tls50', 'chunked', 'post'])
  expect(pick(all, 'behind', 4).map(({ table: { id } }) => id)).toEqual(['slow'])
})

test('every published row has a table here: in this run, or in a suite that this run had no time for', async () => {
  const root = join(import.meta.dir, '../..')
  const { version } = (await Bun.file(join(root, 'package.json')).json()) as { version: string }
  const { suites } = await readRun(join(root, `benchmarks/results/${version}.json`))
  const measured = new Set(suites.flatMap(({ tables }) => tables.map(({ id }) => id)))
  const sources = await Promise.all(
    ['benchmarks/suites.ts', ...new Glob('benchmarks/suites/*.ts').scanSync(root)].map(file =>
      Bun.file(join(root, file)).text(),
    ),
  )
  // Ids of rows stand in the sources as they are, in the list of a timed run, or as the letters in front of a number.
  const isInSource = (id: string): boolean => {
    const [, letters = '', rest = ''] = /^([a-z]+)(\d.*)?$/i.exec(id) ?? []
    const isIn = (text: string): boolean =>
      text.includes(`'${id}'`) ||
      text.includes(`,${id},`) ||
      (rest !== '' && text.includes(`\`${letters}\${`))
    return sources.some(isIn)
  }
  expect(PUBLISHED.length).toBeGreaterThan(100)
  const unknown = PUBLISHED.filter(({ at }) => !measured.has(at) && !isInSource(at))
  expect(unknown.map(({ at }) => at)).toEqual([])
})

test('the documents are those of the saved run. LT_WRITE_DOCS=1 writes them', async () => {
  const root = join(import.meta.dir, '../..')
  const { version } = (await Bun.file(join(root, 'package.json')).json()) as { version: string }
  const documents = await documentsOf(await readRun(join(root, `benchmarks/results/${version}.json`)))
  expect(documents.size).toBeGreaterThan(10)
  if (process.env.LT_WRITE_DOCS !== undefined) await writeDocuments(documents, join(root, 'docs'))
  for (const [name, text] of documents)
    expect(`${name} ${await Bun.file(join(root, 'docs', name)).text()}`).toBe(`${name} ${text}`)
})
