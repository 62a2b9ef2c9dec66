// Finding a cookie in a head: the same as a naive reading, whatever the lines look like.

import { expect, test } from 'bun:test'
import { findCookie } from '../../src/http/cookie.ts'
import { parseRequestHead, RequestHead } from '../../src/http/head.ts'
import { DEFAULT_LIMITS } from '../../src/server/settings/options.ts'
import { FUZZ, Random } from '../support/random.ts'
import { workedMs } from '../support/within.ts'

function headOf(lines: readonly string[], moved = 0): RequestHead {
  const head = new RequestHead()
  const bytes = Buffer.from(
    `${'-'.repeat(moved)}GET / HTTP/1.1\r\nHost: a\r\n${lines.map(line => `${line}\r\n`).join('')}\r\n`,
    'latin1',
  )
  expect(parseRequestHead(head, bytes, moved, bytes.length, DEFAULT_LIMITS)).toBe(bytes.length)
  return head
}

const text = (bytes: Uint8Array, start: number, end: number) =>
  Buffer.from(bytes.subarray(start, end)).toString('latin1')

function all(head: RequestHead, name: string): string[] {
  const values: string[] = []
  const found = findCookie(head, name, (bytes, start, end) => void values.push(text(bytes, start, end)))
  expect(found).toBeUndefined()
  return values
}

/** As a reader of RFC 6265 would say it. */
function naive(lines: readonly string[], name: string): string[] {
  return lines
    .map(line => /^([^:]*):(.*)$/s.exec(line) ?? [])
    .filter(([, key]) => key?.toLowerCase() === 'cookie')
    .flatMap(([, , value = '']) => value.split(';'))
    .map(pair => pair.replace(/^[ \t]+|[ \t]+$/g, ''))
    .filter(pair => pair.startsWith(`${name}=`))
    .map(pair => pair.slice(name.length + 1))
}

test.each([
  [['Cookie: id=1'], ['1']],
  [['cOOKIE:id=1;id=2; id=3'], ['1', '2', '3']],
  [
    ['Cookie: a=1; id=2', 'X: y', 'Cookie: id=3'],
    ['2', '3'],
  ],
  [['Cookie: xid=1; id2=2; ID=3; id; =id=4; a=id=5'], []],
  [['Cookie: id=; id==; id=a=b; id="q"'], ['', '=', 'a=b', '"q"']],
  [['Cookie:', 'Cookie: ;;; ;', 'Cookie: id'], []],
  [['Cookie2: id=1', 'X-Cookie: id=2'], []],
])('%j has %j', (lines, values) => {
  expect(all(headOf(lines), 'id')).toEqual(values)
})

test('the first that is accepted ends the search', () => {
  const seen: string[] = []
  const found = findCookie(headOf(['Cookie: id=1; id=2; id=3']), 'id', (bytes, start, end) => {
    seen.push(text(bytes, start, end))
    return seen.length === 2 ? 'this' : undefined
  })
  expect([found, seen]).toEqual(['this', ['1', '2']])
})

test('random lines, against the naive reading', () => {
  const random = new Random(5)
  const pieces = ['id', 'i', 'd', '=', ';', ' ', '\t', '"', 'x', 'id=', '; id=', '\xff', ',', 'id=a']
  let found = 0
  for (let round = 0; round < 20_000 * FUZZ; round++) {
    const lines = Array.from({ length: random.below(4) }, () => {
      const value = Array.from({ length: random.below(12) }, () => random.pick(pieces)).join('')
      return `${random.pick(['Cookie', 'cookie', 'COOKIE', 'Cookies', 'X'])}:${value}`
    })
    const wanted = naive(lines, 'id')
    found += wanted.length
    expect([lines, all(headOf(lines, random.below(3)), 'id')]).toEqual([lines, wanted])
  }
  expect(found).toBeGreaterThan(1_000)
})

test('a head full of cookies is gone through once', () => {
  const head = headOf([`Cookie: ${'id=1;'.repeat(12_000)}`])
  const startedAt = workedMs()
  expect(all(head, 'id').length).toBe(12_000)
  expect(workedMs() - startedAt).toBeLessThan(500)
})
