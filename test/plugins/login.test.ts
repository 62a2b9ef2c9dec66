// Logins at a real OpenID Connect provider on this machine.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { codeOf, cookieOf, guardOf, headerOf, isPass, refusalOf } from '../support/guards.ts'
import { type OpenId, startOpenId } from '../support/openid.ts'
import { rejection } from '../support/rejection.ts'

const NAVIGATE = 'Sec-Fetch-Mode: navigate'
let openId: OpenId

beforeAll(async () => {
  openId = await startOpenId('https://shop.example/.localtunnels/callback')
})
afterAll(() => openId[Symbol.asyncDispose]())

const guarded = (emails?: string[], issuer = openId.issuer) =>
  guardOf(
    { login: { issuer, ...(emails && { emails }) } },
    { logins: [{ issuer, clientId: 'server', clientSecret: 'server-secret' }] },
  )

/** Signs in as this account, in one browser. */
async function signIn(account: string, { ask }: Awaited<ReturnType<typeof guarded>>) {
  const sent = refusalOf(await ask('GET /page?a=1', [NAVIGATE]))
  const back = await openId.signIn(headerOf(sent, 'location') ?? '', account)
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
  expect(codeOf(await ask('GET /', [NAVIGATE]))).toBe('LOGIN_UNAVAILABLE')
})

test('a login that the operator has not set up is refused at the registration', async () => {
  const guard = guardOf({ login: { issuer: 'https://accounts.example' } })
  expect(await rejection(guard)).toMatchObject({ code: 'GUARD_UNAVAILABLE' })
})
