// What the benchmarks conclude from their figures.

import { expect, test } from 'bun:test'
import { judge, type Measured } from '../../benchmarks/ahead/verdict.ts'
import { compare } from '../../benchmarks/measure/compare.ts'
import { growthPerHour } from '../../benchmarks/measure/memory-samples.ts'
import type { Figure, SuiteResult } from '../../benchmarks/measure/result.ts'
import { figure, median, percentile } from '../../benchmarks/measure/samples.ts'

const of = (peer: string, round: number, rps: number): Measured => ({
  peer,
  row: 't50',
  round,
  figures: { rps },
})
const TARGET = {
  row: 't50',
  figure: 'rps',
  title: 'requests',
  better: 'higher',
  against: 'all',
  factor: 1.1,
} as const

test('the mark is the best peer, never ourselves and never the direct way', () => {
  const all = [
    of('ours-streams', 0, 50),
    of('direct', 0, 900),
    of('ours-json', 0, 90),
    of('bore', 0, 40),
    of('frp', 0, 30),
  ]
  expect(judge(all, 'ours-streams', TARGET)?.mark?.peer).toBe('bore')
})

test('a ratio is taken within each round, so that a machine that halves its speed does not decide', () => {
  const all = [of('ours-streams', 0, 100), of('bore', 0, 80), of('ours-streams', 1, 50), of('bore', 1, 40)]
  const verdict = judge([...all, of('ours-streams', 2, 25), of('bore', 2, 20)], 'ours-streams', TARGET)
  expect(verdict?.ratio).toMatchObject({ median: 1.25, min: 1.25, max: 1.25 })
  expect(verdict?.reached).toBe(true)
})

test('where less is better the smallest peer is the mark and a small ratio reaches it', () => {
  const target = { ...TARGET, better: 'lower', factor: 0.8 } as const
  const all = [of('ours-streams', 0, 7), of('bore', 0, 10), of('frp', 0, 20)]
  expect(judge(all, 'ours-streams', target)).toMatchObject({ mark: { peer: 'bore' }, reached: true })
  expect(judge([of('ours-streams', 0, 9), of('bore', 0, 10)], 'ours-streams', target)?.reached).toBe(false)
})

test('a plain limit needs no peer', () => {
  const target = { ...TARGET, better: 'lower', limit: 34 } as const
  expect(judge([of('ours-streams', 0, 15)], 'ours-streams', target)).toMatchObject({
    mark: null,
    reached: true,
  })
})

test('a failed measurement is no figure', () => {
  const failed = { peer: 'bore', row: 't50', round: 0, figures: null, failure: 'gone' }
  expect(judge([of('ours-streams', 0, 15), failed], 'ours-streams', TARGET)).toMatchObject({
    mark: null,
    reached: null,
  })
})

const suite = (cell: Figure): SuiteResult => ({
  suite: 's',
  title: 'S',
  quick: false,
  environment: { date: '', cpu: '', cores: 1, memoryGb: 1, system: '', bun: '', commit: 'abc', tools: {} },
  groups: [
    {
      name: 'g',
      columns: [{ key: 'avg', title: 'avg', unit: 'ns', better: 'lower' }],
      rows: [{ name: 'r', cells: { avg: cell } }],
    },
  ],
})

test('a comparison marks only what moved out of both ranges', () => {
  const before = { suites: [suite({ value: 10, low: 9, high: 12 })] }
  expect(compare(suite({ value: 11, low: 10, high: 13 }), before)).toMatch(/1\.10 × +\| +\|$/m)
  expect(compare(suite({ value: 20, low: 19, high: 21 }), before)).toContain('WORSE')
  expect(compare(suite({ value: 5, low: 4, high: 6 }), before)).toContain('better')
})

test('growth per hour is the slope of the second half', () => {
  const points = [...Array(10).keys()].map(i => [i * 60, i < 5 ? 100 + i * 50 : 300 + (i - 5) * 2] as const)
  expect(growthPerHour(points)).toBeCloseTo(120)
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
