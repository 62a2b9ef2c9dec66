// What a visitor sends reaches the app as it was sent: method, target, headers, every byte.

import { expect, test } from 'bun:test'
import { exchange, get, headerOf, ok, rawTunnel } from '../support/exchange.ts'

const METHODS = [
  'GET',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
  'TRACE',
  'PROPFIND',
  'MKCALENDAR',
  'QUERY',
  'PURGE',
  'M-SEARCH',
  'BREW',
  'get',
  "x!#$%&'*+-.^_`|~9",
  'UPDATEREDIRECTREF',
] // prettier-ignore

test('every method passes, also those nobody has heard of', async () => {
  await using raw = await rawTunnel()
  for (const method of METHODS) {
    const request = `${method} / HTTP/1.1\r\nHost: ${raw.host}\r\nConnection: close\r\n\r\n`
    const visitor = await raw.visit(request)
    const app = raw.origin.connections[0] ?? (await raw.origin.accept())
    const seen = await app.until('\r\n\r\n')
    await app.send(ok(''))
    expect(seen.split('\r\n')[0]).toBe(`${method} / HTTP/1.1`)
    expect(await visitor.end()).toStartWith('HTTP/1.1 200 OK\r\n')
  }
})

const TARGETS = [
  '/',
  '/a/../b',
  '/./a',
  '//',
  '//a//b/',
  '/%2F',
  '/%2f',
  '/a%00b',
  '/%zz',
  '/?',
  '/x?',
  '/??',
  '/?a=1&a=2&',
  '/a;b=c',
  "/!$&'()*+,;=:@",
  '/"<>[]{}|\\^`',
  '/a?b=/../c',
  '/\xc3\xa9\xff',
  '/%E9',
  '/..%2f..%2fetc/passwd',
  `/${'long/'.repeat(3_000)}`,
] // prettier-ignore

test('the path and the query pass byte for byte', async () => {
  await using raw = await rawTunnel()
  for (const target of TARGETS) {
    const visitor = await raw.visit(get(raw.host, target, 'Connection: close\r\n'))
    const app = raw.origin.connections[0] ?? (await raw.origin.accept())
    const seen = await app.until('\r\n\r\n')
    await app.send(ok(''))
    expect(seen.slice(0, seen.indexOf('\r\n'))).toBe(`GET ${target} HTTP/1.1`)
    await visitor.end()
  }
})

test('an absolute-form target becomes its path, and an asterisk stays one', async () => {
  await using raw = await rawTunnel()
  const first = await exchange(raw, get(raw.host, `http://${raw.host}/a/../b?c`), ok(''))
  expect(first.seen.head).toStartWith('GET /a/../b?c HTTP/1.1\r\n')
  await first.visitor.send(`OPTIONS * HTTP/1.1\r\nHost: ${raw.host}\r\n\r\n`)
  expect(await first.app.until('\r\n\r\n')).toStartWith('OPTIONS * HTTP/1.1\r\n')
})

test('headers keep their case, order, repeats, spacing and bytes', async () => {
  await using raw = await rawTunnel()
  const lines = [
    'x-ONE: 1',
    'Cookie: a=1',
    'X-One: 2',
    'cookie: b=2',
    'X-Empty:',
    'X-Tight:value',
    'X-Wide:  \t padded \t ',
    'X-Bytes: \xe9\xff\x80',
    '__proto__: polluted',
    'constructor: x',
    'ACCEPT: */*',
    "x!#$%&'*+-.^_`|~: token",
  ] // prettier-ignore
  const { seen } = await exchange(raw, get(raw.host, '/', lines.map(line => `${line}\r\n`).join('')), ok(''))
  const got = seen.head.split('\r\n').slice(1, -2)
  expect(got).toEqual([
    `Host: ${raw.host}`,
    ...lines,
    'X-Forwarded-For: 127.0.0.1',
    `X-Forwarded-Host: ${raw.host}`,
    'X-Forwarded-Proto: http',
    `Forwarded: for=127.0.0.1;host=${raw.host};proto=http`,
  ])
})

test('a header of 16 KB passes, and a head of 60 KB', async () => {
  await using raw = await rawTunnel()
  const long = 'k'.repeat(16_384)
  const first = await exchange(raw, get(raw.host, '/', `X-Long: ${long}\r\n`), ok('', `X-Long: ${long}\r\n`))
  expect(headerOf(first.seen.head, 'X-Long')).toBe(long)
  expect(headerOf(first.got.head, 'X-Long')).toBe(long)
  const many = Array.from({ length: 150 }, (_, n) => `X-${n}: ${'v'.repeat(400)}\r\n`).join('')
  await first.visitor.send(get(raw.host, '/', many))
  expect(await first.app.until('\r\n\r\n')).toContain(many)
})

test('nothing is added that the visitor did not send, besides forwarding headers', async () => {
  await using raw = await rawTunnel()
  const { seen } = await exchange(raw, get(raw.host), ok(''))
  const names = seen.head
    .split('\r\n')
    .slice(1, -2)
    .map(line => line.split(':')[0]) // prettier-ignore
  expect(names).toEqual(['Host', 'X-Forwarded-For', 'X-Forwarded-Host', 'X-Forwarded-Proto', 'Forwarded'])
})

test('hop-by-hop headers stay on their hop, also those that Connection nominates', async () => {
  await using raw = await rawTunnel()
  const lines =
    'Connection: keep-alive, X-Mine, x-other\r\nKeep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\n' +
    'X-Mine: 1\r\nX-OTHER: 2\r\nX-Kept: 3\r\nTE: gzip\r\nUpgrade: h2c\r\n'
  const { seen } = await exchange(raw, get(raw.host, '/', lines), ok(''))
  for (const gone of ['Connection', 'Keep-Alive', 'Proxy-Connection', 'X-Mine', 'X-Other', 'TE', 'Upgrade'])
    expect(headerOf(seen.head, gone)).toBeUndefined()
  expect(headerOf(seen.head, 'X-Kept')).toBe('3')
})

test('TE: trailers is passed on as its own hop', async () => {
  await using raw = await rawTunnel()
  const { seen } = await exchange(raw, get(raw.host, '/', 'TE: trailers\r\nConnection: TE\r\n'), ok(''))
  expect(headerOf(seen.head, 'TE')).toBe('trailers')
  expect(headerOf(seen.head, 'Connection')).toBe('TE')
})

test('a request may arrive in any pieces', async () => {
  await using raw = await rawTunnel()
  const request = `POST /sliced HTTP/1.1\r\nHost: ${raw.host}\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n\r\n`
  const visitor = await raw.visit()
  for (const byte of request) {
    await visitor.send(byte)
    await new Promise(setImmediate)
  }
  const app = await raw.origin.accept()
  expect(await app.until('0\r\nX: y\r\n\r\n')).toStartWith('POST /sliced HTTP/1.1\r\n')
})
