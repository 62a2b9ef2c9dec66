// A guard with a password and a login: on a real server, with a real provider, people choose and programs get 401.

import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import type { GuardOptions } from '../../src/guard.ts'
import { guarding, TunnelClient, type TunnelServer } from '../../src/index.ts'
import { type OpenId, startOpenId } from '../support/openid.ts'
import { freePort } from '../support/ports.ts'
import { startServer } from '../support/tunnel.ts'

const PASSWORD = 'correct horse'
const NAVIGATE = { 'sec-fetch-mode': 'navigate' }

let openId: OpenId
let server: TunnelServer
let client: TunnelClient
let base = ''
let host = ''

beforeAll(async () => {
  const port = freePort()
  host = `shop.localhost:${port}`
  base = `http://127.0.0.1:${port}`
  openId = await startOpenId(`http://${host}/.localtunnels/callback`)
  const clientSecret = 'server-secret'
  const logins = [
    { issuer: openId.issuer, clientId: 'server', clientSecret },
    { issuer: 'http://127.0.0.1:9', clientId: 'server', clientSecret },
  ]
  server = await startServer({ port, guarding: guarding({ logins }) })
  client = new TunnelClient({ server: base })
})
afterAll(async () => {
  await client.disconnect()
  await server.stop()
  await openId[Symbol.asyncDispose]()
})
afterEach(async () => {
  for (const tunnel of client.tunnels) await tunnel.close()
})

const start = (guard: GuardOptions) =>
  client.http({
    subdomain: 'shop',
    guard,
    fetch: request => new Response(`app ${request.headers.get('x-localtunnels-user')}`),
  })
const login = () => ({ issuer: openId.issuer, emails: ['*@example.com'] })
const away = { issuer: 'http://127.0.0.1:9' }

const visit = (path: string, headers: Record<string, string> = {}, body?: Record<string, string>) =>
  fetch(`${base}${path}`, {
    redirect: 'manual',
    headers: { host, ...headers },
    ...(body && { method: 'POST', body: new URLSearchParams(body) }),
  })
const browse = (path: string, cookie = '', body?: Record<string, string>) =>
  visit(path, { ...NAVIGATE, ...(cookie && { cookie }) }, body)

const cookieOf = (answer: Response) =>
  answer.headers
    .getSetCookie()
    .map(one => one.split(';')[0])
    .join('; ')
const about = (answer: Response) => [answer.status, answer.headers.get('x-localtunnels-error')]
const locationOf = (answer: Response) => answer.headers.get('location') ?? ''

/** Where the link of a page leads, as HTML has it. */
function linkOf(page: string): string {
  const [, href] = /<a [^>]*href="([^"]*)"/.exec(page) ?? []
  return (href ?? 'no link').replaceAll('&amp;', '&')
}

/** Follows a link to the login, signs in, and comes back to the server. */
async function signIn(link: string, account: string): Promise<Response> {
  const sent = await browse(link)
  const back = await openId.signIn(locationOf(sent), account)
  return browse(`${back.pathname}${back.search}`, cookieOf(sent))
}

test('the page offers both ways, and each leads to the address that was asked for', async () => {
  await start({ password: PASSWORD, login: login() })
  const asked = '/start?a=1&b=%22x%22'
  const answer = await browse(asked)
  expect(about(answer)).toEqual([401, 'ACCESS_REQUIRED'])
  const page = await answer.text()
  expect(page).toContain('<label for="p">Password</label>')
  expect(page).toContain(`>Sign in with ${new URL(openId.issuer).host}</a>`)
  expect(linkOf(page)).toBe(`/.localtunnels/login?to=${encodeURIComponent(asked)}`)

  const byLogin = await signIn(linkOf(page), 'anna@example.com')
  expect([byLogin.status, locationOf(byLogin)]).toEqual([303, asked])
  expect(await (await browse('/start', cookieOf(byLogin))).text()).toBe('app anna@example.com')

  const byPassword = await browse('/.localtunnels/password', '', { to: asked, password: PASSWORD })
  expect([byPassword.status, locationOf(byPassword)]).toEqual([303, asked])
  expect(await (await browse('/start', cookieOf(byPassword))).text()).toBe('app null')
})

test('a wrong password leaves the login in reach, and a login that fails the password', async () => {
  await start({ password: PASSWORD, login: login() })
  const wrong = await browse('/.localtunnels/password', '', { to: '/start', password: 'wrong' })
  expect(about(wrong)).toEqual([401, 'CREDENTIALS_REFUSED'])
  expect(linkOf(await wrong.text())).toBe('/.localtunnels/login?to=%2Fstart')

  const stranger = await signIn('/.localtunnels/login?to=/start', 'eve@evil.example')
  expect(about(stranger)).toEqual([403, 'LOGIN_REFUSED'])
  expect(stranger.headers.getSetCookie()[0]).toContain('Max-Age=0')
  const page = await stranger.text()
  expect(page).toContain('this account may not visit')
  expect(page).toContain('name="to" value="/start"')
  expect(linkOf(page)).toBe('/.localtunnels/login?to=%2Fstart&other')
})

test('whose account is refused may choose another one, which only a page offers', async () => {
  await start({ login: login() })
  const sent = await browse('/start')
  expect(new URL(locationOf(sent)).searchParams.get('prompt')).toBeNull()
  const back = await openId.signIn(locationOf(sent), 'eve@evil.example')
  const callback = `${back.pathname}${back.search}`
  const refused = await browse(callback, cookieOf(sent))
  expect(about(refused)).toEqual([403, 'LOGIN_REFUSED'])
  const page = await refused.text()
  expect(page).not.toContain('<form')
  const again = await browse(linkOf(page))
  expect(new URL(locationOf(again)).searchParams.get('prompt')).toBe('login')
  // A login that this browser did not begin: where it should have led is not known.
  expect(linkOf(await (await browse(callback)).text())).toBe('/.localtunnels/login?to=%2F&other')
  const program = await visit(callback)
  expect([about(program), locationOf(program)]).toEqual([[403, 'LOGIN_REFUSED'], ''])
  expect(await program.json()).toMatchObject({ error: { code: 'LOGIN_REFUSED' } })
})

test('while the provider is away the password lets in', async () => {
  await start({ password: PASSWORD, login: away })
  expect(about(await browse('/start'))).toEqual([401, 'ACCESS_REQUIRED'])
  const answer = await browse('/.localtunnels/login?to=/start')
  expect(about(answer)).toEqual([503, 'ISSUER_UNAVAILABLE'])
  expect(answer.headers.get('retry-after')).toBe('5')
  expect(await answer.text()).toContain('name="to" value="/start"')
})

test('a password alone offers no login, and a login alone is begun at once', async () => {
  const alone = await start({ password: PASSWORD })
  expect(linkOf(await (await browse('/')).text())).toBe('no link')
  expect(locationOf(await browse('/.localtunnels/login?to=/start'))).toBe('/start')
  await alone.close()
  await start({ login: login() })
  expect(locationOf(await browse('/'))).toStartWith(openId.issuer)
})

test('the address to come back to is on this host', async () => {
  await start({ password: PASSWORD, login: login() })
  const links = ['https://evil.example/', '//evil.example', '/\\evil.example', '/a\r\nx: y', '']
    .map(to => `/.localtunnels/login?to=${encodeURIComponent(to)}`)
    .concat('/.localtunnels/login')
  for (const link of links)
    expect([link, locationOf(await signIn(link, 'anna@example.com'))]).toEqual([link, '/'])
  // Nor does it where the link leads to a path that takes no login.
  for (const tunnel of client.tunnels) await tunnel.close()
  await start({ password: PASSWORD })
  for (const link of links) expect([link, locationOf(await browse(link))]).toEqual([link, '/'])
})

test('what is no navigation gets 401 with the ways for programs, and never a login', async () => {
  await start({ password: PASSWORD, bearer: 'a-token-of-a-machine', links: true, login: login() })
  const basicAndBearer = 'Bearer realm="shop", Basic realm="shop", charset="UTF-8"'
  for (const path of ['/', '/.localtunnels/login?to=/'])
    for (const [headers, challenge] of [
      [{}, basicAndBearer],
      [{ accept: 'text/html' }, basicAndBearer],
      [{ 'sec-fetch-mode': 'cors' }, 'Localtunnels'],
      [{ 'sec-fetch-mode': 'websocket' }, 'Localtunnels'],
    ] as const) {
      const answer = await visit(path, headers)
      expect(about(answer)).toEqual([401, 'ACCESS_REQUIRED'])
      expect(answer.headers.get('www-authenticate')).toBe(challenge)
      expect(locationOf(answer)).toBe('')
      expect(await answer.json()).toMatchObject({ error: { code: 'ACCESS_REQUIRED' } })
    }
  // A form of another site, or of a program, begins no login.
  expect(about(await browse('/.localtunnels/login', '', { to: '/' }))).toEqual([403, 'GUARD_REFUSED'])
})

test('a machine with its token passes beside a login, and one with another gets 401', async () => {
  await start({ bearer: 'a-token-of-a-machine', login: login() })
  const withToken = (token: string) => visit('/', { authorization: `Bearer ${token}` })
  expect((await withToken('a-token-of-a-machine')).status).toBe(200)
  const wrong = await withToken('another-token-of-a-machine')
  expect([wrong.status, locationOf(wrong)]).toEqual([401, ''])
  expect(about(await visit('/'))).toEqual([401, 'ACCESS_REQUIRED'])
  expect(locationOf(await browse('/'))).toStartWith(openId.issuer)
})

test('a link lets in beside a login, and whoever has none is sent to the login', async () => {
  const tunnel = await start({ links: true, login: login() })
  const { pathname } = new URL(tunnel.link({ path: '/preview' }).url)
  const followed = await browse(pathname)
  expect([followed.status, locationOf(followed)]).toEqual([303, '/preview'])
  expect(await (await browse('/preview', cookieOf(followed))).text()).toBe('app null')
  // The link is for its path, the login for all of them.
  expect(locationOf(await browse('/other', cookieOf(followed)))).toStartWith(openId.issuer)
  expect(locationOf(await browse('/preview'))).toStartWith(openId.issuer)
  expect(about(await visit('/preview'))).toEqual([401, 'ACCESS_REQUIRED'])
  // A link that is none says so: the guest who followed it may have no account.
  expect(about(await browse('/.localtunnels/link/none'))).toEqual([403, 'LINK_REFUSED'])
})

test('each path offers its own ways', async () => {
  await start({
    password: PASSWORD,
    open: ['/health'],
    paths: {
      '/both': { password: 'battery staple', login: login() },
      '/login': { login: login() },
    },
  })
  expect(linkOf(await (await browse('/')).text())).toBe('no link')
  const link = linkOf(await (await browse('/both/x')).text())
  expect(link).toBe('/.localtunnels/login?to=%2Fboth%2Fx')
  expect(locationOf(await browse('/login/x'))).toStartWith(openId.issuer)
  // The link of one path leads to no path that has other ways: that one says itself what it takes.
  for (const to of ['/', '/health'])
    expect(locationOf(await browse(`/.localtunnels/login?to=${to}`))).toBe(to)
  const wrong = await browse('/.localtunnels/password', '', { to: '/both/x', password: PASSWORD })
  expect(linkOf(await wrong.text())).toBe(link)
  const right = await browse('/.localtunnels/password', '', { to: '/both/x', password: 'battery staple' })
  expect(locationOf(right)).toBe('/both/x')
  // Neither way is one for the other paths. The login is the same rule on both.
  expect((await browse('/both/x', cookieOf(right))).status).toBe(200)
  expect(about(await browse('/', cookieOf(right)))).toEqual([401, 'ACCESS_REQUIRED'])
  const signedIn = cookieOf(await signIn(link, 'anna@example.com'))
  expect(await (await browse('/both/x', signedIn)).text()).toBe('app anna@example.com')
  expect((await browse('/login/x', signedIn)).status).toBe(200)
  expect(about(await browse('/', signedIn))).toEqual([401, 'ACCESS_REQUIRED'])
})

test('the form of a path without a password leads to what that path takes', async () => {
  await start({ password: PASSWORD, paths: { '/login': { login: login() } } })
  const sent = await browse('/.localtunnels/password', '', { to: '/login', password: PASSWORD })
  expect([sent.status, locationOf(sent)]).toEqual([303, '/login'])
  expect(sent.headers.getSetCookie()).toEqual([])
})
