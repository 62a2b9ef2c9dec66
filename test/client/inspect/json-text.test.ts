// JSON from its source text: what JSON.parse takes is taken, and every token stays as it was sent.

import { expect, test } from 'bun:test'
import { formatJson, isJsonFault, parseJson } from '../../../src/parts/inspect/json-text.ts'
import { Random } from '../../support/random.ts'

const PIECES = '{ } [ ] , : "a" "b\\u00e9" 1 -0 1.5e3 1. true null \n 01 "\\x" tru " \u0001'.split(' ')
const WHOLE = '{"a":[1,{"b":"x\\n","c":[true,null,-1.5e10]}],"d":"é","id":12345678901234567890}'

const isTaken = (text: string) => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

test('it takes what JSON.parse takes, and nothing else; a cut one never throws', () => {
  const random = new Random(1)
  for (let index = 0; index < 50_000; index++) {
    const pieces = Array.from({ length: 1 + random.below(7) }, () => random.pick(PIECES))
    const text = pieces.join('')
    expect([text, !isJsonFault(parseJson(text))]).toEqual([text, isTaken(text)])
    parseJson(text, true)
  }
})

test('digits, order and names that come twice stay', () => {
  expect(formatJson('{"id":12345678901234567890,"p":1.0,"a":1,"a":2,"10":"x","9":[],"e":1e400}')).toBe(
    '{\n  "id": 12345678901234567890,\n  "p": 1.0,\n  "a": 1,\n  "a": 2,\n  "10": "x",\n  "9": [],\n  "e": 1e400\n}',
  )
  expect(formatJson('{"a":}')).toBeUndefined()
})

test('a text that was cut anywhere is a tree as far as it goes', () => {
  for (let length = 1; length < WHOLE.length; length++) {
    const root = parseJson(WHOLE.slice(0, length), true)
    expect(isJsonFault(root)).toBe(false)
    expect(!isJsonFault(root) && root.isCut).toBe(true)
  }
  const root = parseJson('{"rows":[{"id":1},{"id":2', true)
  const rows = isJsonFault(root) ? undefined : root.entries[0]?.value
  expect(rows?.entries.map(({ value }) => value.entries[0]?.value.raw)).toEqual(['1', '2'])
})

test('a fault has its place', () => {
  expect(parseJson('{"a":1,\n"b" 2}')).toEqual({ at: 12, expected: 'a colon' })
  expect(parseJson('[1,]')).toEqual({ at: 3, expected: 'a value' })
  expect(parseJson('{"a":1}x')).toEqual({ at: 7, expected: 'the end' })
})

test('depth and length are no matter', () => {
  expect(isJsonFault(parseJson('['.repeat(100_000), true))).toBe(false)
  const long = `"${'é\\n'.repeat(500_000)}"`
  expect(parseJson(long)).toMatchObject({ kind: 'string', raw: long })
})
