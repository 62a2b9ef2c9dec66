// Logins at a real OpenID Connect provider on this machine.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { codeOf, cookieOf, guardOf, headerOf, isPass, refusalOf } from '../support/guards.ts'
import { type OpenId, startOpenId } from '../support/openid.ts'
import { rejection } from '../support/rejection.ts'

const CALLBACK = 'https://shop.example/.localtunnels/callback'
const NAVIGATE = 'Sec-Fetch-Mode: navigate'
let openId: OpenId

beforeAll(async () => {
  openId = await startOpenId(CALLBACK)
})
afterAll(() => openId[Symbol.asyncDispose]())

const guarded = (emails?: string[], issuer = openId.issuer) =>
  guardOf(
    { login: { issuer, ...(emails && { emails }) } },
    { logins: [{ issuer, clientId: 'server', clientSecret: 'server-secret' }] },
  )

/** Signs in as this account, in one browser. */
async function signIn(account: string, { ask }: Awaited<ReturnType<typeof guarded>>, at = openId) {
  const sent = refusalOf(await ask('GET /page?a=1', [NAVIGATE]))
  const back = await at.signIn(headerOf(sent, 'location') ?? '', account)
  const path = `${back.pathname}${back.search}`
  return { path, begun: cookieOf(sent), answer: await ask(`GET ${path}`, [NAVIGATE, cookieOf(sent)]) }
}

test('a browser signs in and comes back to where it was; the app learns who it is', async () => {
  const guard = await guarded(['*@example.com'])
  const { answer } = await signIn('anna@example.com', guard)
  expect(headerOf(answer, 'location')).toBe('/page?a=1')
  const verdict = await guard.ask('GET /page', [cookieOf(refusalOf(answer))])
  expect(isPass(verdict) && verdict.requestHeaders).toEqual([['x-localtunnels-user', 'anna@example.com']])
})

/** Whom the app takes the account for. */
async function userOf(account: string, guard: Awaited<ReturnType<typeof guarded>>, at = openId) {
  const { answer } = await signIn(account, guard, at)
  const verdict = await guard.ask('GET /page', [cookieOf(refusalOf(answer))])
  return isPass(verdict) ? verdict.requestHeaders?.[0]?.[1] : codeOf(answer)
}

test('an address counts wherever the provider says it: in UserInfo, or in the ID token', async () => {
  await using other = await startOpenId(CALLBACK, { conformIdTokenClaims: false })
  for (const at of [openId, other])
    for (const emails of [['*@example.com'], undefined])
      expect(await userOf('7=anna@example.com', await guarded(emails, at.issuer), at)).toBe(
        'anna@example.com',
      )
})

test('an address that was not verified is nobody: the app gets the subject', async () => {
  await using other = await startOpenId(CALLBACK, { conformIdTokenClaims: false })
  for (const at of [openId, other])
    for (const account of ['unverified-4711', 'silent-1'])
      expect(await userOf(account, await guarded(undefined, at.issuer), at)).toBe(account)
})

test('a subject that is an address is no account’s verified address', async () => {
  const guard = await guarded(undefined)
  for (const account of ['unverified@company.example', 'silent-1=boss@company.example', 'silent@'])
    expect(await userOf(account, guard)).toBe(`sub:${account}`)
})

test('two users never have one name at the app', async () => {
  const guard = await guarded(['*@company.example'])
  expect(await userOf('1=ä@company.example', guard)).toBe('%C3%A4@company.example')
  expect(await userOf('2=ö@company.example', guard)).toBe('%C3%B6@company.example')
  expect(await userOf('3=%C3%A4@company.example', guard)).toBe('%25C3%25A4@company.example')
  const { answer } = await signIn(`4=${'a'.repeat(600)}@company.example`, guard)
  expect(refusalOf(answer)).toMatchObject({ code: 'LOGIN_REFUSED', reason: 'user_too_long' })
})

test('letters are the same in ASCII alone', async () => {
  const guard = await guarded(['Mark@Example.com', '*@kiosk.example'])
  expect(await userOf('1=mARK@example.COM', guard)).toBe('mARK@example.COM')
  // KELVIN SIGN.
  for (const account of ['2=mar\u212a@example.com', '3=eve@\u212aiosk.example'])
    expect(await userOf(account, guard)).toBe('LOGIN_REFUSED')
})

test('the operator gets to know why a login is refused, in a word', async () => {
  const guard = await guarded(['*@example.com'])
  const reasonOf = async (account: string) => refusalOf((await signIn(account, guard)).answer).reason
  expect(await reasonOf('eve@evil.example')).toBe('email_not_listed')
  expect(await reasonOf('unverified@example.com')).toBe('email_unverified')
  expect(await reasonOf('silent@example.com')).toBe('email_unverified')
  const { path, begun } = await signIn('anna@example.com', guard)
  const callback = async (query: string, cookie = begun) =>
    refusalOf(await guard.ask(`GET /.localtunnels/callback?${query}`, [NAVIGATE, cookie])).reason
  const [, query = ''] = path.split('?')
  const { state, iss } = Object.fromEntries(new URLSearchParams(query))
  const own = `state=${state}&iss=${encodeURIComponent(iss ?? '')}`
  expect(await callback(`error=access_denied&${own}`)).toBe('access_denied')
  expect(await callback(`error=${encodeURIComponent('a b\nc')}&${own}`)).toBe('provider_error')
  expect(await callback(query)).toBe('invalid_grant')
  expect(await callback(query, 'Cookie: other=1')).toBe('state_unknown')

  await using bare = await startOpenId(CALLBACK, { claims: { openid: ['sub'] } })
  const without = await guarded(['*@example.com'], bare.issuer)
  expect(refusalOf((await signIn('anna@example.com', without, bare)).answer).reason).toBe('email_missing')

  const wrong = await guardOf(
    { login: { issuer: openId.issuer } },
    { logins: [{ issuer: openId.issuer, clientId: 'server', clientSecret: 'another-secret' }] },
  )
  expect(refusalOf((await signIn('anna@example.com', wrong)).answer).reason).toBe('invalid_client')

  const away = await guarded(undefined, 'http://127.0.0.1:9')
  expect(refusalOf(await away.ask('GET /', [NAVIGATE]))).toMatchObject({
    code: 'ISSUER_UNAVAILABLE',
    reason: 'provider_unreachable',
  })
})

test('UserInfo of another subject signs nobody in, and an address is verified if the issuer says so, as a value or as text', async () => {
  const { publicKey, privateKey } = await generateKeyPair('RS256')
  let nonce = ''
  let subject = 'other'
  let isVerified: unknown = true
  using provider = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch({ url }) {
      const { origin, pathname } = new URL(url)
      if (pathname === '/jwks') return Response.json({ keys: [await exportJWK(publicKey)] })
      if (pathname === '/me')
        return Response.json({ sub: subject, email: 'anna@example.com', email_verified: isVerified })
      if (pathname === '/token') {
        const token = new SignJWT({ nonce }).setIssuer(origin).setAudience('server').setSubject('7')
        const signed = token.setIssuedAt().setExpirationTime('1m').setProtectedHeader({ alg: 'RS256' })
        return Response.json({
          access_token: 'a',
          token_type: 'bearer',
          id_token: await signed.sign(privateKey),
        })
      }
      return Response.json({
        issuer: origin,
        authorization_endpoint: `${origin}/auth`,
        token_endpoint: `${origin}/token`,
        userinfo_endpoint: `${origin}/me`,
        jwks_uri: `${origin}/jwks`,
      })
    },
  })
  const { ask } = await guarded(['*@example.com'], `http://127.0.0.1:${provider.port}`)
  const outcome = async () => {
    const sent = refusalOf(await ask('GET /', [NAVIGATE]))
    const { searchParams } = new URL(headerOf(sent, 'location') ?? '')
    nonce = searchParams.get('nonce') ?? ''
    const query = `code=1&state=${searchParams.get('state')}`
    return refusalOf(await ask(`GET /.localtunnels/callback?${query}`, [NAVIGATE, cookieOf(sent)]))
  }
  expect((await outcome()).reason).toBe('json_attribute_comparison_failed')
  subject = '7'
  expect((await outcome()).status).toBe(303)
  // UserInfo of Amazon Cognito and the ID token of Apple say it as text.
  isVerified = 'true'
  expect((await outcome()).status).toBe(303)
  for (isVerified of ['false', '', 1, null]) expect((await outcome()).reason).toBe('email_unverified')
})

test('the request to the provider has PKCE, state and nonce', async () => {
  const sent = refusalOf(await (await guarded()).ask('GET /', [NAVIGATE]))
  const { searchParams } = new URL(headerOf(sent, 'location') ?? '')
  expect(searchParams.get('code_challenge_method')).toBe('S256')
  for (const name of ['code_challenge', 'state', 'nonce'])
    expect(searchParams.get(name)?.length).toBeGreaterThan(20)
})

test('an account outside of the rules is refused, and so is an address that was not verified', async () => {
  const guard = await guarded(['*@example.com', 'bob@other.example'])
  for (const account of [
    'eve@evil.example',
    'eve@sub.example.com',
    'unverified@example.com',
    'a@b@example.com',
  ])
    expect([account, codeOf((await signIn(account, guard)).answer)]).toEqual([account, 'LOGIN_REFUSED'])
  expect(codeOf((await signIn('bob@other.example', guard)).answer)).toBe('303')
})

test('a callback in another browser, one used twice, and one that was changed sign nobody in', async () => {
  const guard = await guarded()
  const { path, begun } = await signIn('anna@example.com', guard)
  expect(codeOf(await guard.ask(`GET ${path}`, [NAVIGATE]))).toBe('LOGIN_REFUSED')
  expect(codeOf(await guard.ask(`GET ${path}`, [NAVIGATE, begun]))).toBe('LOGIN_REFUSED')
  const other = cookieOf(refusalOf(await guard.ask('GET /', [NAVIGATE])))
  expect(codeOf(await guard.ask(`GET ${path}`, [NAVIGATE, other]))).toBe('LOGIN_REFUSED')
  expect(codeOf(await guard.ask('GET /.localtunnels/callback?error=access_denied', [NAVIGATE]))).toBe(
    'LOGIN_REFUSED',
  )
})

test('tabs that a browser opens at the same time sign in each, and come back to where each was', async () => {
  const guard = await guarded()
  // None of them has the cookie of another yet.
  const tabs = await Promise.all(
    ['/one', '/two', '/three'].map(async path => refusalOf(await guard.ask(`GET ${path}`, [NAVIGATE]))),
  )
  const cookies = new Map(tabs.map(sent => [cookieOf(sent).split('=')[0], cookieOf(sent)]))
  const all = [...cookies.values()].map(line => line.replace('Cookie: ', '')).join('; ')
  for (const [index, path] of ['/one', '/two', '/three'].entries()) {
    const back = await openId.signIn(headerOf(tabs[index]!, 'location') ?? '', 'anna@example.com')
    const answer = await guard.ask(`GET ${back.pathname}${back.search}`, [NAVIGATE, `Cookie: ${all}`])
    expect(headerOf(answer, 'location')).toBe(path)
    // Its own login is over, and no other.
    const ended = refusalOf(answer).headers?.filter(([, value]) => value.includes('Max-Age=0'))
    expect(ended?.map(([, value]) => value.split('=')[0])).toEqual([cookieOf(tabs[index]!).split(/[ =]/)[1]!])
  }
})

test('so do tabs whose paths have rules of their own', async () => {
  const login = { issuer: openId.issuer }
  const { ask } = await guardOf(
    { paths: { '/a': { login }, '/b': { login } } },
    { logins: [{ issuer: openId.issuer, clientId: 'server', clientSecret: 'server-secret' }] },
  )
  const names = await Promise.all(
    ['/a', '/b', '/a/x', '/b/x'].map(
      async path => cookieOf(refusalOf(await ask(`GET ${path}`, [NAVIGATE]))).split('=')[0],
    ),
  )
  expect(new Set(names).size).toBe(4)
})

test('a login from a long address leads to its page, or to the first one, and its cookie stays small', async () => {
  const guard = await guarded()
  for (const [path, to] of [
    [`/page?a=${'x'.repeat(400)}`, `/page?a=${'x'.repeat(400)}`],
    [`/page?a=${'x'.repeat(1_900)}`, '/page'],
    [`/${'x'.repeat(1_900)}`, '/'],
  ] as const) {
    const sent = refusalOf(await guard.ask(`GET ${path}`, [NAVIGATE]))
    const cookie = cookieOf(sent)
    // Eight of them fit into the 8 KB that proxies take of a line.
    expect(8 * cookie.length).toBeLessThan(8_000)
    const back = await openId.signIn(headerOf(sent, 'location') ?? '', 'anna@example.com')
    const answer = await guard.ask(`GET ${back.pathname}${back.search}`, [NAVIGATE, cookie])
    expect(headerOf(answer, 'location')).toBe(to)
  }
})

test('a login that is begun takes the place of no other that is under way', async () => {
  const { ask } = await guarded()
  const first = cookieOf(refusalOf(await ask('GET /', [NAVIGATE])))
  const [name] = first.split('=')
  for (let others = 0; others < 20; others++)
    expect(cookieOf(refusalOf(await ask('GET /', [NAVIGATE, first]))).split('=')[0]).not.toBe(name)
})

test('of the cookies of logins eight are looked at: each costs a signature', async () => {
  const { ask } = await guarded()
  const codeBehind = async (others: number) => {
    const sent = refusalOf(await ask('GET /', [NAVIGATE]))
    const back = await openId.signIn(headerOf(sent, 'location') ?? '', 'anna@example.com')
    const junk = '__Host-localtunnels-login-0=a.b; '.repeat(others)
    const cookie = cookieOf(sent).replace('Cookie: ', `Cookie: ${junk}`)
    return codeOf(await ask(`GET ${back.pathname}${back.search}`, [NAVIGATE, cookie]))
  }
  expect(await codeBehind(7)).toBe('303')
  expect(await codeBehind(8)).toBe('LOGIN_REFUSED')
})

test('another account is asked for as the provider says that it can', async () => {
  let supported: string[] | undefined
  using provider = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: ({ url }) => {
      const { origin } = new URL(url)
      const urls = { authorization_endpoint: `${origin}/auth`, token_endpoint: `${origin}/token` }
      return Response.json({ issuer: origin, ...urls, prompt_values_supported: supported })
    },
  })
  for (const [values, prompt] of [
    [undefined, 'login'],
    [['none', 'login'], 'login'],
    [['login', 'select_account'], 'select_account'],
  ] as const) {
    supported = values && [...values]
    const { ask } = await guarded(undefined, `http://127.0.0.1:${provider.port}`)
    const promptOf = async (path: string) =>
      new URL(headerOf(await ask(`GET ${path}`, [NAVIGATE]), 'location') ?? '').searchParams.get('prompt')
    expect(await promptOf('/.localtunnels/login?to=/&other')).toBe(prompt)
    expect(await promptOf('/')).toBeNull()
  }
})

test('programs and tokens of machines are never sent to a login', async () => {
  const { ask } = await guarded()
  for (const lines of [
    [],
    ['Authorization: Bearer some-token'],
    ['Sec-Fetch-Mode: cors'],
    ['User-Agent: git/2.44'],
  ]) {
    const answer = refusalOf(await ask('GET /', lines))
    expect(answer.code).toBe('ACCESS_REQUIRED')
    expect(headerOf(answer, 'location')).toBeUndefined()
  }
})

test('a provider that is away is 503, and nobody is let in', async () => {
  const { ask } = await guarded(undefined, 'http://127.0.0.1:9')
  expect(codeOf(await ask('GET /', [NAVIGATE]))).toBe('ISSUER_UNAVAILABLE')
})

test('a login that the operator has not set up is refused at the registration', async () => {
  const guard = guardOf({ login: { issuer: 'https://accounts.example' } })
  expect(await rejection(guard)).toMatchObject({ code: 'GUARD_UNAVAILABLE' })
})
