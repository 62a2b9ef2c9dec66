// Tokens of clients that an issuer makes: which are taken, for how long, and what they open.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type JwtTokenRule, jwtTokens } from '../../src/index.ts'
import { NamePattern } from '../../src/server/settings/plugins-for.ts'
import type { TokenReader } from '../../src/tokens.ts'
import { AUDIENCE, type Issuer, startIssuer } from '../support/issuer.ts'

let issuer: Issuer
beforeAll(async () => {
  issuer = await startIssuer()
})
afterAll(() => issuer[Symbol.dispose]())

const readerOf = (...rules: readonly Partial<JwtTokenRule>[]) =>
  jwtTokens(rules.map(rule => ({ issuer: issuer.url, audience: AUDIENCE, keyCooldownMs: 0, ...rule })))

/** What a token opens, or why it opens nothing. */
async function opened(reader: TokenReader, token: string, address = '192.0.2.1') {
  const identity = await reader.read(token, address)
  return typeof identity === 'string' ? identity : reader.scopeOf(identity)
}

const secondsFromNow = (seconds: number) => Math.floor(Date.now() / 1_000) + seconds

test('a token of the issuer opens what the first rule says that it fits', async () => {
  const reader = readerOf(
    { claims: { repository: 'me/shop', ref: 'refs/heads/*' }, names: ['shop-*'], name: 'shop-ci' },
    { claims: { repository: 'me/*' }, kinds: ['http'] },
  )
  const claims = { repository: 'me/shop', ref: 'refs/heads/main' }
  expect(await opened(reader, await issuer.sign(claims))).toMatchObject({
    name: 'shop-ci',
    scope: { names: ['shop-*'] },
  })
  const other = await opened(reader, await issuer.sign({ repository: 'me/blog', sub: 'repo:me/blog' }))
  expect(other).toMatchObject({ name: 'repo:me/blog', scope: { kinds: ['http'] } })
  expect(await opened(reader, await issuer.sign({ repository: 'you/shop' }))).toBe('TOKEN_REFUSED')
  expect(await opened(reader, await issuer.sign({}))).toBe('TOKEN_REFUSED')
})

test('a pattern is for the whole claim, and of a list one is enough', async () => {
  const fits = async (wanted: string, has: unknown) =>
    typeof (await opened(readerOf({ claims: { team: wanted } }), await issuer.sign({ team: has }))) ===
    'object'
  for (const [wanted, has] of [
    ['a', 'a'],
    ['*', ''],
    ['a*', 'abc'],
    ['*c', 'abc'],
    ['a*b*c', 'aXbYc'],
    ['a*a', 'aa'],
    ['admins', ['users', 'admins']],
    ['7', 7],
    ['true', true],
  ] as const)
    expect([wanted, has, await fits(wanted, has)]).toEqual([wanted, has, true])
  for (const [wanted, has] of [
    ['a', 'A'],
    ['a', 'ab'],
    ['a*', 'ba'],
    ['a*a', 'a'],
    ['a*b*c', 'acb'],
    ['*ab*ab', 'ab'],
    ['.*', 'x'],
    ['admins', ['users']],
    ['admins', { admins: true }],
    ['null', null],
  ] as const)
    expect([wanted, has, await fits(wanted, has)]).toEqual([wanted, has, false])
  // Nothing of JavaScript's own is a claim.
  expect(await opened(readerOf({ claims: { constructor: '*' } }), await issuer.sign({}))).toBe(
    'TOKEN_REFUSED',
  )
})

test('claims in names become labels, and never patterns or other names', async () => {
  const reader = readerOf({ names: ['{owner}--*', 'pr-{number}'], hosts: ['{owner}.customer.example'] })
  const scopeFor = async (owner: unknown) => {
    const read = await opened(reader, await issuer.sign({ owner, number: 7 }))
    return typeof read === 'object' ? read.scope : read
  }
  expect(await scopeFor('Me-And-You')).toMatchObject({
    names: ['me-and-you--*', 'pr-7'],
    hosts: ['me-and-you.customer.example'],
  })
  // Any of these would be the name of another claim, too.
  for (const owner of [
    '*',
    'a*b',
    'a_b',
    'a.b',
    'a/b',
    'a--b',
    '-a',
    'a-',
    'ä',
    'm\u00e4r',
    '\u212aiosk',
    'a b',
  ])
    expect([owner, await scopeFor(owner)]).toEqual([owner, undefined])
  for (const owner of ['', '...', ['a'], null, 'x'.repeat(64)]) expect(await scopeFor(owner)).toBeUndefined()
})

test('owners never have the names of others', async () => {
  const namesFor = async (reader: TokenReader, claims: Record<string, unknown>) => {
    const read = await opened(reader, await issuer.sign(claims))
    return typeof read === 'object' ? (read.scope.names ?? []) : []
  }
  const owners = readerOf({ names: ['{owner}--*'] })
  const [acme = ''] = await namesFor(owners, { owner: 'acme' })
  const [corp = ''] = await namesFor(owners, { owner: 'acme-corp' })
  expect([acme, corp]).toEqual(['acme--*', 'acme-corp--*'])
  for (const name of ['acme-corp--preview', 'acme-corp---x', 'acme-corp----'])
    expect([new NamePattern(acme, '').fits(name), new NamePattern(corp, '').fits(name)]).toEqual([
      false,
      true,
    ])
  const repositories = readerOf({ names: ['ci-{repository}'] })
  expect(await namesFor(repositories, { repository: 'a-b/c' })).toEqual(['ci-a-b--c'])
  expect(await namesFor(repositories, { repository: 'a/b-c' })).toEqual(['ci-a--b-c'])
  for (const repository of ['a/b--c', 'a//b', '/a', 'a/', 'a/-b', 'a/b_c'])
    expect([repository, await namesFor(repositories, { repository })]).toEqual([repository, []])
})

test('a pattern whose names could be those of several tokens is refused when the server starts', () => {
  for (const pattern of [
    '{a}',
    'pr-{a}',
    '{a}--*',
    '*--{a}',
    '{a}--{b}--*',
    '{a}--*--{b}',
    'x{a}y',
    '{a}--*-*--*',
  ])
    expect(() => readerOf({ names: [pattern] })).not.toThrow()
  for (const pattern of ['{a}-*', '*-{a}', '{a}*', '{a}-{b}', '{a}{b}', '*--{a}--*', 'x--*{a}', '{a}-x-*--*'])
    expect(() => readerOf({ names: [pattern] })).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
  expect(() => readerOf({ hosts: ['*.{a}.customer.example'] })).not.toThrow()
  for (const hosts of [['{a}-*.customer.example'], ['*.{a}.*.example']])
    expect(() => readerOf({ hosts })).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
})

test('tokens of one rule count together, unless their claims open other names', async () => {
  const idOf = async (reader: TokenReader, claims: Record<string, unknown>) => {
    const read = await opened(reader, await issuer.sign(claims))
    return typeof read === 'object' ? read.id : read
  }
  const fixed = readerOf({ names: ['ci-*'] })
  expect(await idOf(fixed, { sub: 'one' })).toBe(await idOf(fixed, { sub: 'two' }))
  const each = readerOf({ names: ['{sub}--*'] })
  expect(await idOf(each, { sub: 'one' })).not.toBe(await idOf(each, { sub: 'two' }))
})

test('what is not signed by the issuer, or not for here, is refused, and strangers have no keys fetched', async () => {
  const reader = readerOf({})
  const good = await issuer.sign()
  const [head = '', body = '', signature = ''] = good.split('.')
  const none = Buffer.from(JSON.stringify({ alg: 'none' })).toString('base64url')
  await reader.read(good, '192.0.2.1')
  const before = issuer.keyRequests
  for (const token of [
    await issuer.sign({ aud: 'https://elsewhere.example' }),
    await issuer.sign({ iss: 'https://evil.example' }),
    await issuer.sign({ nbf: secondsFromNow(600) }),
    `${head}.${body}.${signature.slice(0, -4)}AAAA`,
    `${none}.${body}.${signature}`,
    `${head}.bm90LWpzb24.${signature}`,
    `${head}.${Buffer.from('null').toString('base64url')}.${signature}`,
  ])
    expect(await opened(reader, token)).toBe('TOKEN_REFUSED')
  expect(issuer.keyRequests).toBe(before)
  for (const text of ['', 'a.b', 'a.b.c.d', 'a b.c.d', `a.${'b'.repeat(8_192)}.c`])
    expect(reader.fits(text)).toBe(false)
})

test('a key that is new is fetched, and an old one opens nothing', async () => {
  const reader = readerOf({})
  const old = await issuer.sign()
  expect(await opened(reader, old, '192.0.2.1')).toBeObject()
  await issuer.rotate()
  expect(await opened(reader, await issuer.sign())).toBeObject()
  expect(await opened(reader, old, '203.0.113.1')).toBe('TOKEN_REFUSED')
})

test('while the issuer is away new tokens wait, and those that were verified still open', async () => {
  const known = readerOf({})
  const token = await issuer.sign()
  expect(await opened(known, token)).toBeObject()
  const fresh = readerOf({})
  issuer.isAway = true
  expect(await opened(fresh, token)).toBe('ISSUER_UNAVAILABLE')
  expect(await opened(known, token)).toBeObject()
  issuer.isAway = false
  expect(await opened(fresh, token)).toBeObject()
})

test('a token that is over brings back who showed it before, from the same address, for as long as the session', async () => {
  const reader = readerOf({ sessionMs: 60_000 })
  expect(await reader.read(await issuer.sign({ exp: secondsFromNow(-31) }), '192.0.2.1')).toBe(
    'TOKEN_EXPIRED',
  )
  const token = await issuer.sign({ exp: secondsFromNow(-28) })
  const identity = await reader.read(token, '192.0.2.1')
  if (typeof identity === 'string') throw new Error(identity)
  expect(identity.endsAtMs).toBeGreaterThan(Date.now() + 50_000)
  // Its 30 seconds for clocks that differ are over.
  while (Date.now() / 1_000 < Number(identity.claims.exp) + 31) await Bun.sleep(100)
  expect(await reader.read(token, '192.0.2.1')).toBe(identity)
  expect(await reader.read(token, '192.0.2.2')).toBe('TOKEN_EXPIRED')
})

test('a token that lasts longer than a session is good until its end', async () => {
  const exp = secondsFromNow(7_200)
  const identity = await readerOf({ sessionMs: 1_000 }).read(await issuer.sign({ exp }), '192.0.2.1')
  expect(identity).toMatchObject({ endsAtMs: (exp + 30) * 1_000 })
})

test('what cannot be used is OPTION_INVALID', () => {
  for (const rule of [
    { issuer: 'no-url' },
    { issuer: 'file:///etc/passwd' },
    { jwksUrl: 'keys' },
    { audience: '' },
    { claims: { repository: '' } },
    { sessionMs: -1 },
    { sessionMs: 1.5 },
    { keyCooldownMs: Number.NaN },
  ])
    expect(() => readerOf(rule)).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
})
