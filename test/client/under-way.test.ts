// What a server reports as begun and never as ended is kept within bounds.

import { expect, test } from 'bun:test'
import { UnderWay } from '../../src/client/tunnels/visit-reports.ts'

interface Report {
  readonly id: number
  readonly path: string
}

const report = (id: number, path = '/'): Report => ({ id, path })

test('what ends is handed back once', () => {
  const underWay = new UnderWay<Report>()
  underWay.begin(report(1, '/a'), 2)
  expect(underWay.find(1)).toEqual(report(1, '/a'))
  expect(underWay.end(1)).toEqual(report(1, '/a'))
  expect(underWay.end(1)).toBeUndefined()
  expect(underWay.all()).toEqual([])
})

test('ten thousand are kept, and no more of long texts than four million characters', () => {
  const underWay = new UnderWay<Report>()
  for (let id = 0; id < 10_000; id++) underWay.begin(report(id), 1)
  expect(underWay.all().length).toBe(10_000)
  underWay.begin(report(10_000), 1)
  expect(underWay.all().map(({ id }) => id)).toEqual([10_000])
  for (let id = 0; id < 66; id++) underWay.begin(report(id), 60_000)
  expect(underWay.all().length).toBe(67)
  underWay.begin(report(66), 60_000)
  expect(underWay.all().map(({ id }) => id)).toEqual([66])
})

test('an id that comes again and again counts once', () => {
  const underWay = new UnderWay<Report>()
  for (let round = 0; round < 1_000; round++) underWay.begin(report(7), 60_000)
  underWay.begin(report(8), 60_000)
  expect(underWay.all().map(({ id }) => id)).toEqual([7, 8])
})
