// The guard that a client asks for, as a stranger may send it.

import { expect, test } from 'bun:test'
import { OwnGuard } from '../../src/own-guard.ts'
import { parseDefinition } from '../../src/plugins/definition.ts'

const key = 'k'.repeat(43)
const sound = { sessionMs: 1_000, key }
const hash = 'h'.repeat(43)

test('what a client sends is read back as it was', async () => {
  const definition = await new OwnGuard({
    allow: ['10.0.0.0/8'],
    deny: ['10.0.0.1'],
    rate: { limit: 5, windowMs: 1_000 },
    open: ['/health'],
    cors: true,
    password: 'secret one',
    bearer: 'a-token-of-a-machine',
    jwt: { issuer: 'https://id.example', audience: 'shop', claims: { repository: 'a/b' } },
    links: true,
    login: { issuer: 'https://id.example', emails: ['*@example.com'] },
    paths: { '/api': { bearer: ['another-token-of-a-machine'] } },
    requestHeaders: { 'x-a': '1' },
    responseHeaders: { 'x-b': '2' },
    ttlMs: 60_000,
  }).define('shop')
  const text = JSON.stringify(definition)
  expect(JSON.parse(JSON.stringify(parseDefinition(JSON.parse(text))))).toEqual(JSON.parse(text))
})

test('neither passwords nor tokens leave the client as they are', async () => {
  const definition = await new OwnGuard({ password: 'secret one', bearer: 'a-token-of-a-machine' }).define(
    'shop',
  )
  const text = JSON.stringify(definition)
  expect(text).not.toContain('secret one')
  expect(text).not.toContain('a-token-of-a-machine')
  const elsewhere = await new OwnGuard({ password: 'secret one' }).define('other')
  expect(elsewhere.password?.hash).not.toBe(definition.password?.hash)
})

test('what is not known is refused, not ignored', () => {
  for (const more of [
    { walls: 1 },
    { webhook: {} },
    { paths: { '/a': { webhook: {} } } },
    { paths: { '/a': { allow: [] } } },
  ])
    expect(() => parseDefinition({ ...sound, ...more })).toThrow(
      expect.objectContaining({ code: 'OPTION_INVALID' }),
    )
})

test('what has another shape is OPTION_INVALID', () => {
  const broken: unknown[] = [
    undefined,
    null,
    [],
    'guard',
    {},
    { key },
    { sessionMs: 1_000, key: 'short' },
    { ...sound, sessionMs: -1 },
    { ...sound, allow: '10.0.0.0/8' },
    { ...sound, allow: [5] },
    { ...sound, deny: Array.from({ length: 1_001 }, () => '10.0.0.1') },
    { ...sound, rate: 5 },
    { ...sound, rate: { limit: 'many', windowMs: 1 } },
    { ...sound, password: 'secret' },
    { ...sound, password: { salt: 'a', hash: 'short' } },
    { ...sound, bearer: hash },
    { ...sound, bearer: [] },
    { ...sound, bearer: ['a-token-of-a-machine'] },
    { ...sound, jwt: { issuer: 'https://id.example' } },
    { ...sound, jwt: { issuer: 'https://id.example', audience: 'a', claims: { a: 5 } } },
    { ...sound, links: 'yes' },
    { ...sound, login: {} },
    { ...sound, login: { issuer: 'a', emails: [] } },
    { ...sound, login: { issuer: 'a', emails: ['*'] } },
    { ...sound, cors: 1 },
    { ...sound, open: [''] },
    { ...sound, paths: [] },
    { ...sound, revoked: 'a' },
    { ...sound, leftMs: 1.5 },
    { ...sound, requestHeaders: { Host: 'a' } },
    { ...sound, requestHeaders: { content_length: '5' } },
    { ...sound, requestHeaders: { 'Content.Length': '5' } },
    { ...sound, requestHeaders: { 'x-localtunnels-user': 'root' } },
    { ...sound, requestHeaders: { 'x-a': 'b\r\nc: d' } },
    { ...sound, responseHeaders: { 'set-cookie': 'a=b' } },
    { ...sound, responseHeaders: { 'x a': 'b' } },
  ]
  for (const one of broken)
    expect(() => parseDefinition(one)).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
})

test('what cannot be used is OPTION_INVALID where it is written', () => {
  for (const options of [
    { password: 'short' },
    { bearer: 'short' },
    { bearer: ['with spaces in between'] },
    { secret: 'short' },
    { ttlMs: 0 },
    { paths: { '/a': { password: 'short' } } },
  ])
    expect(() => new OwnGuard(options)).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
})
