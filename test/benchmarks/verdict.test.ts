// What the benchmarks conclude from their figures.

import { expect, test } from 'bun:test'
import { compare } from '../../benchmarks/measure/compare.ts'
import type { Cell, ResultRow, SuiteResult, Table } from '../../benchmarks/measure/result.ts'
import { cellsOf } from '../../benchmarks/measure/rounds.ts'
import { figure, median, percentile } from '../../benchmarks/measure/samples.ts'
import { judge } from '../../benchmarks/measure/verdict.ts'

const row = (name: string, role: ResultRow['role'], rps: Cell): ResultRow => ({ name, role, cells: { rps } })
const table = (better: 'higher' | 'lower', ...rows: readonly ResultRow[]): Table => ({
  id: 't50',
  title: 'T',
  columns: [{ key: 'rps', title: 'requests', unit: '/s', better }],
  rows,
})

test('the mark is the best peer of the run, never ourselves and never a floor', () => {
  const all = table(
    'higher',
    row('direct', 'floor', [900]),
    row('ours', 'ours', [50]),
    row('ours-cli', 'ours', [90]),
    row('frp', 'peer', [30]),
    row('bore', 'peer', [40]),
  )
  expect(judge(all, 'ours', 'rps')?.mark?.name).toBe('bore')
})

test('a ratio is taken within each round, so that a machine that halves its speed does not decide', () => {
  const all = table('higher', row('ours', 'ours', [100, 50, 25]), row('bore', 'peer', [80, 40, 20]))
  expect(judge(all, 'ours', 'rps')).toMatchObject({
    ratio: { median: 1.25, min: 1.25, max: 1.25 },
    standing: 'ahead',
  })
})

test('a spread that crosses the mark is a tie', () => {
  const all = table('higher', row('ours', 'ours', [120, 90, 130]), row('bore', 'peer', [100, 100, 100]))
  expect(judge(all, 'ours', 'rps')).toMatchObject({
    ratio: { median: 1.2 },
    standing: 'tie',
  })
})

test('where less is better the smallest peer is the mark', () => {
  const all = (ours: number): Table =>
    table('lower', row('ours', 'ours', [ours]), row('bore', 'peer', [10]), row('frp', 'peer', [20]))
  expect(judge(all(7), 'ours', 'rps')).toMatchObject({ mark: { name: 'bore' }, standing: 'ahead' })
  expect(judge(all(12), 'ours', 'rps')?.standing).toBe('behind')
})

test('another row may be the mark; without one there is no verdict', () => {
  const all = table('lower', row('ours', 'ours', [15]), row('nginx-tls', 'floor', [10]))
  expect(judge(all, 'ours', 'rps', 'nginx-tls')?.mark?.name).toBe('nginx-tls')
  expect(judge(all, 'ours', 'rps')).toMatchObject({ mark: null, standing: 'alone' })
})

test('a tunnel that failed once has no figure', () => {
  const columns = table('higher').columns
  expect(cellsOf([{ rps: 5 }, 'failed: gone', { rps: 7 }], columns)).toEqual({ rps: 'failed: gone' })
  const all = table('higher', row('ours', 'ours', [15]), row('bore', 'peer', 'failed: gone'))
  expect(judge(all, 'ours', 'rps')?.mark).toBeNull()
})

test('a percentile that one round lacks has no median: ratios are within each round', () => {
  const { columns } = table('higher')
  expect(cellsOf([{ rps: 5 }, {}, { rps: 7 }], columns)).toEqual({})
})

test('a single figure may be off by a tenth', () => {
  const all = table('higher', row('ours', 'ours', [105]), row('bore', 'peer', [100]))
  expect(judge(all, 'ours', 'rps')?.standing).toBe('tie')
})

const suite = (rps: Cell): SuiteResult => ({
  suite: 's',
  title: 'S',
  quick: false,
  rounds: 3,
  environment: {
    date: '',
    cpu: '',
    cores: 1,
    memoryGb: 1,
    system: '',
    bun: '',
    commit: 'abc',
    code: '',
    tools: {},
  },
  tables: [table('lower', row('ours', 'ours', rps))],
})

test('a comparison marks only what moved out of both ranges', () => {
  const before = { schema: 2, suites: [suite([9, 10, 12])] } as const
  expect(compare(suite([10, 11, 13]), before).text).toMatch(/1\.10 × +\| +\|$/m)
  expect(compare(suite([19, 20, 21]), before).text).toContain('WORSE')
  expect(compare(suite([4, 5, 6]), before).text).toContain('better')
  const elsewhere = {
    ...suite([10]),
    environment: { ...suite([10]).environment, cpu: 'another' },
    quick: true,
  }
  expect(compare(elsewhere, before).text).toContain('on another machine')
  expect(compare(elsewhere, before).text).toContain('a smoke run')
})

test('medians, percentiles and figures', () => {
  expect(median([3, 1, 2])).toBe(2)
  expect(median([4, 1, 2, 3])).toBe(2.5)
  expect(percentile([1, 2, 3, 4], 50)).toBe(2)
  expect(percentile([1, 2, 3, 4], 99)).toBe(4)
  expect([0, 0.1234, 1.234, 12.34, 123.4, 1234.5].map(figure)).toEqual([
    '0',
    '0.123',
    '1.23',
    '12.3',
    '123',
    '1,235',
  ])
})
