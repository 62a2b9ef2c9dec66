// What a guard takes out of a request head and puts in, against the same done on a list of lines.

import { expect, test } from 'bun:test'
import { editHead, headerLine } from '../../src/http/edit-head.ts'
import { headOf } from '../support/guards.ts'

const edit = (
  lines: string[],
  edits: { headers?: string[]; cookies?: string[]; adds?: [string, string][] },
): string | undefined => {
  const edited = editHead(headOf('GET /a', lines), {
    withoutHeaders: edits.headers ?? [],
    withoutCookies: edits.cookies ?? [],
    adds: edits.adds ?? [],
  })
  return edited && new TextDecoder().decode(edited)
}

test('a head that has nothing of it stays as it is', () => {
  expect(edit(['Accept: */*'], { headers: ['authorization'], cookies: ['mine'] })).toBeUndefined()
})

test('lines go and come, every other byte stays', () => {
  const head = edit(['aCCept:  */* ', 'AUTHORIZATION: Basic x', 'X-Last: 1'], {
    headers: ['Authorization'],
    adds: [['x-user', 'anna']],
  })
  expect(head).toBe(
    'GET /a HTTP/1.1\r\nHost: shop.example\r\naCCept:  */* \r\nX-Last: 1\r\nx-user: anna\r\n\r\n',
  )
})

test('what a visitor sends under an added name goes, whatever an app takes for a dash', () => {
  // lighttpd makes `HTTP_X_USER` of all of them.
  const spellings = ['X-User', 'x_user', 'X_User', ..."!#$%&'*+.^`|~".split('')].map(one =>
    one.length > 1 ? one : `x${one}user`,
  )
  const head = edit([...spellings.map(name => `${name}: root`), 'X-Users: stays', 'X0User: stays'], {
    adds: [['x-user', 'anna']],
  })
  expect(head).toBe(
    'GET /a HTTP/1.1\r\nHost: shop.example\r\nX-Users: stays\r\nX0User: stays\r\nx-user: anna\r\n\r\n',
  )
})

test('cookies of these names go, the others stay in their order', () => {
  const without = (value: string) =>
    edit([`Cookie: ${value}`], { cookies: ['__Host-mine'] })?.match(/Cookie: (.*)\r\n/)?.[1]
  expect(without('a=1; __Host-mine=secret; b=2')).toBe('a=1; b=2')
  expect(without('__Host-mine=secret;b="x y"')).toBe('b="x y"')
  expect(without('a=1;__Host-mine = secret')).toBe('a=1')
  expect(without('a=1; __Host-mine')).toBe('a=1')
  expect(without('a=1; x__Host-mine=2; __Host-mine2=3')).toBeUndefined()
  expect(edit(['Cookie: __Host-mine=1; __Host-mine=2'], { cookies: ['__Host-mine'] })).toBe(
    'GET /a HTTP/1.1\r\nHost: shop.example\r\n\r\n',
  )
})

test('nothing that framing or routing stands on can be changed', () => {
  for (const name of [
    'Host',
    'Content-Length',
    'content_length',
    'Transfer-Encoding',
    'Connection',
    'Upgrade',
    'TE',
    '',
  ])
    expect(() => edit([], { headers: [name] })).toThrow(RangeError)
  expect(() => edit([], { adds: [['content-length', '5']] })).toThrow(RangeError)
})

test('a value with a line break is no line', () => {
  expect(() => headerLine('x-user', 'anna\r\nx-admin: 1')).toThrow(RangeError)
  expect(() => headerLine('x user', 'anna')).toThrow(RangeError)
  expect(new TextDecoder().decode(headerLine('x-user', 'Zoë'))).toBe('x-user: Zoë\r\n')
})
