import { describe, expect, test } from 'bun:test'
import type { ExchangeRow } from '../../../src/exchange.ts'
import { FILTER_KEYS, isFilterFault, type Part, parseFilter } from '../../../src/exchange-filter.ts'
import { workedMs } from '../../support/within.ts'

const none = { totalBytes: 0, keptBytes: 0 }
const row: ExchangeRow = {
  id: '7',
  kind: 'http',
  state: 'done',
  startedAt: '2026-01-01T00:00:00.000Z',
  tunnel: 'shop',
  service: 'localhost:3000',
  method: 'POST',
  path: '/hooks/stripe?try=1',
  host: 'shop.example.dev',
  status: 503,
  reason: 'Busy',
  isRefused: false,
  isProbe: false,
  visitor: '203.0.113.7',
  requestBody: { totalBytes: 2_048, keptBytes: 2_048 },
  responseBody: none,
  type: 'application/json; charset=utf-8',
  times: { totalMs: 750 },
  frames: { ...none, total: 0, kept: 0 },
  bytesIn: 0,
  bytesOut: 0,
  replayOf: '3',
  isPinned: false,
  note: 'The first of May',
  isIncomplete: false,
}
const parts: Partial<Record<Part, string>> = {
  'request.body': '{"type":"Invoice.paid"}',
  'request.head': 'POST / HTTP/1.1\r\nX-Mode: live\r\n\r\n',
}

function matches(text: string, one = row): boolean {
  const filter = parseFilter(text)
  if (isFilterFault(filter)) throw new Error(`${filter.at}: ${filter.message}`)
  return filter.matches(one, part => parts[part] ?? '')
}

describe('a filter', () => {
  const yes = [
    '',
    '  ',
    'method:POST path:/hooks/* status:5xx body:"invoice.paid" slower:500ms is:replay',
    'POST /hooks',
    'POST /hooks/stripe',
    'path:/hooks/*?try=*',
    'path:/HOOKS/stripe',
    'path:"/hooks/stripe?try=1"',
    'method:get,post',
    'status:404,503',
    'status:>=500',
    'status:500-599',
    '-status:2xx',
    '-is:pinned',
    'host:*.example.dev',
    'type:json',
    'larger:2kb',
    'smaller:1MiB',
    'faster:1s',
    'note:"first of"',
    'stripe',
    '"first of may"',
    'header:x-mode',
    'header:"x-mode: live"',
    'request.body:Invoice',
    'visitor:203.0.113.*',
    'id:7',
  ]
  for (const text of yes) test(`matches: ${text}`, () => expect(matches(text)).toBe(true))

  const no = [
    'method:GET',
    'path:/hook',
    'path:/hooks/str',
    'path:/hooks/*x',
    'GET',
    '/other',
    'status:2xx',
    'status:none',
    'slower:1s',
    'response.body:invoice',
    'header:"x-mode: test"',
    'header:x-mod',
    'is:pinned',
    '-body:invoice',
    'larger:3kb',
    'shop tunnel:other',
  ]
  for (const text of no) test(`does not match: ${text}`, () => expect(matches(text)).toBe(false))

  const faults: [text: string, at: number, words: string][] = [
    ['method:POST colour:red', 12, '"colour:" is unknown'],
    ['constructor:x', 0, '"constructor:" is unknown'],
    ['is:constructor', 0, 'is: takes open'],
    ['status:abc', 0, 'is no status'],
    ['is:nice', 0, 'is: takes open'],
    ['slower:soon', 0, 'is no time'],
    ['larger:much', 0, 'is no size'],
    ['body:"open', 0, 'quote'],
    ['GET "open', 4, 'quote'],
    ['method:', 0, 'has no value'],
    ['GET -', 4, 'missing'],
    ['x'.repeat(2_001), 2_000, 'at most'],
  ]
  for (const [text, at, words] of faults)
    test(`is refused, with its place: ${text.slice(0, 30)}`, () => {
      const fault = parseFilter(text)
      if (!isFilterFault(fault)) throw new Error('it was taken')
      expect(fault.at).toBe(at)
      expect(fault.message).toContain(words)
    })

  test('says whether it needs the content', () => {
    const needs = (text: string) => {
      const filter = parseFilter(text)
      return !isFilterFault(filter) && filter.needsContent
    }
    expect(needs('method:POST slower:1s')).toBe(false)
    expect(needs('-frame:hello')).toBe(true)
  })

  test('what goes on is neither slower nor faster', () => {
    const open = { ...row, times: {} }
    expect(matches('slower:1ms', open)).toBe(false)
    expect(matches('faster:1h'.replace('1h', '9m'), open)).toBe(false)
  })

  test('a pattern of many stars takes no longer than the path is long', () => {
    const long = { ...row, path: `/${'a'.repeat(50_000)}` }
    const startedAt = workedMs()
    expect(matches(`path:/${'a*'.repeat(900)}b`, long)).toBe(false)
    // Milliseconds, where a backtracking pattern needs years.
    expect(workedMs() - startedAt).toBeLessThan(1_000)
  })

  test('documents every key', async () => {
    const text = await Bun.file(`${import.meta.dir}/../../../docs/inspector.md`).text()
    for (const key of FILTER_KEYS) expect(text).toContain(`\`${key}:`)
  })
})
