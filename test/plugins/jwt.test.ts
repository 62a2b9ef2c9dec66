// Tokens of an issuer: a real one on this machine, whose keys change.

import { afterAll, beforeAll, expect, setSystemTime, test } from 'bun:test'
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose'
import { codeOf, guardOf, isPass, refusalOf } from '../support/guards.ts'
import { rejection } from '../support/rejection.ts'

/** An issuer with keys by their id, and the times they were asked for. */
const keys = new Map<string, CryptoKeyPair>()
let keyRequests = 0
let isAway = false
let server: Bun.Server<undefined>
let issuer = ''

const addKey = async (id: string) =>
  keys.set(id, (await generateKeyPair('ES256', { extractable: true })) as CryptoKeyPair)

beforeAll(async () => {
  await addKey('first')
  server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      if (isAway) return new Response('away', { status: 503 })
      if (new URL(request.url).pathname === '/.well-known/openid-configuration')
        return Response.json({ issuer, jwks_uri: `${issuer}/keys` })
      keyRequests++
      const all = [...keys].map(async ([kid, pair]) => ({
        ...(await exportJWK(pair.publicKey)),
        kid,
        alg: 'ES256',
      }))
      return Response.json({ keys: await Promise.all(all) })
    },
  })
  issuer = `http://127.0.0.1:${server.port}`
})

afterAll(() => server.stop(true))

const sign = (kid: string, claims: JWTPayload = {}, header: Record<string, unknown> = {}) =>
  new SignJWT({ iss: issuer, aud: 'shop', sub: 'ci', exp: Math.floor(Date.now() / 1_000) + 600, ...claims })
    .setProtectedHeader({ alg: 'ES256', kid, ...header })
    .sign((keys.get(kid) as CryptoKeyPair).privateKey)

const guarded = (claims?: Record<string, string>, keyCooldownMs?: number) =>
  guardOf(
    { jwt: { issuer, audience: 'shop', ...(claims && { claims }) } },
    { issuers: [{ issuer, ...(keyCooldownMs !== undefined && { keyCooldownMs }) }] },
  )

const codeFor = async (token: string, claims?: Record<string, string>) =>
  codeOf(
    await (await guarded(claims)).ask('GET /', [
      `Authorization: Bearer ${token}`,
      'Sec-Fetch-Mode: navigate',
    ]),
  )

test('a token of the issuer lets in, is not forwarded, and says who it is', async () => {
  const { ask } = await guarded()
  const verdict = await ask('GET /', [`Authorization: Bearer ${await sign('first')}`])
  expect(isPass(verdict) && verdict.requestHeaders).toEqual([['x-localtunnels-user', 'ci']])
  expect(isPass(verdict) && verdict.withoutHeaders).toContain('authorization')
})

test('a token that is verified once is not verified again', async () => {
  const { ask } = await guarded()
  const token = await sign('first')
  await ask('GET /', [`Authorization: Bearer ${token}`])
  const before = keyRequests
  for (let round = 0; round < 3; round++)
    expect(codeOf(await ask('GET /', [`Authorization: Bearer ${token}`]))).toBe('passed')
  expect(keyRequests).toBe(before)
})

test('every other token is refused with a code, never sent to a login', async () => {
  const past = Math.floor(Date.now() / 1_000) - 3_600
  const refused = [
    await sign('first', { aud: 'other' }),
    await sign('first', { iss: 'https://evil.example' }),
    await sign('first', { exp: past }),
    await sign('first', { exp: undefined }),
    await sign('first', { nbf: past + 7_200 }),
    `${await sign('first')}x`,
    'a.b.c',
    `${btoa('{"alg":"none"}')}.${btoa('{}')}.`,
  ]
  for (const token of refused) expect(await codeFor(token)).toBe('CREDENTIALS_REFUSED')
})

test("a token signed with the issuer's public key as a secret is refused", async () => {
  const jwk = await exportJWK((keys.get('first') as CryptoKeyPair).publicKey)
  const token = await new SignJWT({ iss: issuer, aud: 'shop', exp: Math.floor(Date.now() / 1_000) + 600 })
    .setProtectedHeader({ alg: 'HS256', kid: 'first' })
    .sign(new TextEncoder().encode(JSON.stringify(jwk)))
  expect(await codeFor(token)).toBe('CREDENTIALS_REFUSED')
})

test('claims must have the values that are asked for', async () => {
  const token = await sign('first', { repository: 'org/app' })
  expect(await codeFor(token, { repository: 'org/app' })).toBe('passed')
  expect(await codeFor(token, { repository: 'org/other' })).toBe('CREDENTIALS_REFUSED')
  expect(await codeFor(token, { ref: 'main' })).toBe('CREDENTIALS_REFUSED')
  // As claims of tokens of clients.
  expect(await codeFor(token, { repository: 'org/*' })).toBe('passed')
  expect(await codeFor(token, { repository: 'other/*' })).toBe('CREDENTIALS_REFUSED')
  const member = await sign('first', { groups: ['users', 'ops'] })
  expect(await codeFor(member, { groups: 'ops' })).toBe('passed')
  expect(await codeFor(member, { groups: 'admins' })).toBe('CREDENTIALS_REFUSED')
})

test('the app gets the subject in characters of a header, and one that is too long is refused', async () => {
  const { ask } = await guarded()
  const userOf = async (sub: string) => {
    const verdict = await ask('GET /', [`Authorization: Bearer ${await sign('first', { sub })}`])
    return isPass(verdict) ? verdict.requestHeaders?.[0]?.[1] : refusalOf(verdict).code
  }
  expect(await userOf('repo:me/shop:ref:refs/heads/main')).toBe('repo:me/shop:ref:refs/heads/main')
  expect(await userOf(' Änne B ')).toBe('%20%C3%84nne B%20')
  expect(await userOf('a\r\nb')).toBe('a%0D%0Ab')
  expect(await userOf('100%')).toBe('100%25')
  for (const sub of ['x'.repeat(513), 'ä'.repeat(90), '\ud800'])
    expect(await userOf(sub)).toBe('CREDENTIALS_REFUSED')
})

test('a key that is new is fetched', async () => {
  const { ask } = await guarded(undefined, 0)
  expect(codeOf(await ask('GET /', [`Authorization: Bearer ${await sign('first')}`]))).toBe('passed')
  await addKey('second')
  expect(codeOf(await ask('GET /', [`Authorization: Bearer ${await sign('second')}`]))).toBe('passed')
})

test('a stranger cannot have keys fetched at will', async () => {
  const { ask } = await guarded()
  expect(codeOf(await ask('GET /', [`Authorization: Bearer ${await sign('first')}`]))).toBe('passed')
  const before = keyRequests
  for (let round = 0; round < 5; round++) {
    const token = await sign('first', {}, { kid: `unknown-${round}` })
    expect(codeOf(await ask('GET /', [`Authorization: Bearer ${token}`]))).toBe('CREDENTIALS_REFUSED')
  }
  expect(keyRequests).toBe(before)
})

test('a token of a key that was withdrawn is refused after ten minutes, however long it is good', async () => {
  await addKey('withdrawn')
  const { ask } = await guarded(undefined, 0)
  const token = await sign('withdrawn', { exp: Math.floor(Date.now() / 1_000) + 86_400 })
  const visit = async () => codeOf(await ask('GET /', [`Authorization: Bearer ${token}`]))
  expect(await visit()).toBe('passed')
  try {
    setSystemTime(Date.now() + 660_000)
    isAway = true
    expect(await visit()).toBe('passed')
    isAway = false
    keys.delete('withdrawn')
    expect(await visit()).toBe('CREDENTIALS_REFUSED')
  } finally {
    isAway = false
    setSystemTime()
  }
})

test('a token whose subject is no text is refused', async () => {
  for (const sub of [42, { name: 'root' }, ['root'], null])
    expect(await codeFor(await sign('first', { sub: sub as never }))).toBe('CREDENTIALS_REFUSED')
})

test('an issuer that is away is 503, and nobody is let in', async () => {
  isAway = true
  const { ask } = await guarded()
  const token = await sign('first')
  expect(codeOf(await ask('GET /', [`Authorization: Bearer ${token}`]))).toBe('ISSUER_UNAVAILABLE')
  isAway = false
  expect(codeOf(await ask('GET /', [`Authorization: Bearer ${token}`]))).toBe('passed')
})

test('only issuers that the operator listed are asked', async () => {
  const before = keyRequests
  const guard = guardOf(
    { jwt: { issuer, audience: 'shop' } },
    { issuers: [{ issuer: 'https://id.example' }] },
  )
  expect(await rejection(guard)).toMatchObject({ code: 'GUARD_UNAVAILABLE' })
  expect(keyRequests).toBe(before)
})
