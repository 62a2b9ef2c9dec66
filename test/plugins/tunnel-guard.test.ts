// The guard of a tunnel, asked by requests: walls, ways in, sessions, and the mistakes that others are known for.

import { expect, spyOn, test } from 'bun:test'
import { BlockList } from 'node:net'
import { GUARD_PATH, type GuardOptions, LINK_PURPOSE } from '../../src/guard.ts'
import { makeLink, OwnGuard } from '../../src/own-guard.ts'
import type { Verdict } from '../../src/plugin.ts'
import { guarding } from '../../src/plugins/guarding.ts'
import { WRONG_PASSWORDS } from '../../src/plugins/password.ts'
import { seal } from '../../src/seal.ts'
import { codeOf, cookieOf, guardOf, headerOf, headOf, isPass, refusalOf, submit } from '../support/guards.ts'
import { rejection } from '../support/rejection.ts'

const NAVIGATE = 'Sec-Fetch-Mode: navigate'
const PASSWORD = 'correct horse'
const TOKEN = 'a-token-of-a-machine'
const basic = (password: string, user = 'anybody') =>
  `Authorization: Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`

const passOf = (verdict: Verdict) => {
  if (!isPass(verdict)) throw new Error(`not let in: ${codeOf(verdict)}`)
  return verdict
}

test('all walls must let a visitor pass, whatever credentials it has', async () => {
  const { ask } = await guardOf({ allow: ['192.0.2.0/24'], deny: ['192.0.2.9'], password: PASSWORD })
  expect(codeOf(await ask('GET /', [basic(PASSWORD)]))).toBe('passed')
  expect(codeOf(await ask('GET /', [basic(PASSWORD)], { address: '192.0.2.9' }))).toBe('ADDRESS_REFUSED')
  expect(codeOf(await ask('GET /', [basic(PASSWORD)], { address: '203.0.113.1' }))).toBe('ADDRESS_REFUSED')
})

test('long lists are made before the maker returns: in the turn of the client that asks', async () => {
  const make = guarding()
  const tunnel = { kind: 'http', name: 'shop' } as const
  const allow = Array.from({ length: 1_000 }, (_, index) => `2001:db8:${index.toString(16)}::/64`)
  const define = (options: GuardOptions) => new OwnGuard(options).define('shop')
  await make(await define({ allow }), tunnel)
  for (const options of [{ allow }, { allow, links: true }, { allow, paths: { '/a': { bearer: TOKEN } } }]) {
    const definition = await define(options)
    using added = spyOn(BlockList.prototype, 'addSubnet')
    const making = make(definition, tunnel)
    expect(added).toHaveBeenCalledTimes(1_000)
    await making
  }
})

test('of the ways in, one is enough', async () => {
  const { ask } = await guardOf({ password: PASSWORD, bearer: [TOKEN, 'another-token-of-a-machine'] })
  expect(codeOf(await ask('GET /', [basic(PASSWORD)]))).toBe('passed')
  expect(codeOf(await ask('GET /', [`Authorization: bearer ${TOKEN}`]))).toBe('passed')
  expect(codeOf(await ask('GET /', ['Authorization: Bearer another-token-of-a-machine']))).toBe('passed')
  expect(codeOf(await ask('GET /'))).toBe('ACCESS_REQUIRED')
})

test('wrong credentials are refused with a code, and never with a page', async () => {
  const { ask } = await guardOf({ password: PASSWORD, bearer: TOKEN })
  for (const line of [
    basic('wrong'),
    'Authorization: Bearer wrong',
    'Authorization: Basic',
    'Authorization: Basic !!!',
  ]) {
    const verdict = refusalOf(await ask('GET /', [line, NAVIGATE, 'Accept: text/html']))
    const isNone = line === 'Authorization: Basic'
    expect(verdict.code).toBe(isNone ? 'ACCESS_REQUIRED' : 'CREDENTIALS_REFUSED')
    if (!isNone) expect(headerOf(verdict, 'content-type')).toContain('application/json')
  }
})

test('only a navigation sees the page; everything else gets 401 with a JSON code', async () => {
  const { ask } = await guardOf({ password: PASSWORD })
  const page = refusalOf(await ask('GET /a?b', [NAVIGATE]))
  expect(page.status).toBe(401)
  expect(headerOf(page, 'content-type')).toContain('text/html')
  expect(page.body).toContain('type="password"')
  for (const lines of [
    [],
    ['Accept: text/html'],
    ['Sec-Fetch-Mode: cors'],
    ['Sec-Fetch-Mode: no-cors'],
    ['Sec-Fetch-Mode: websocket'],
  ]) {
    const answer = refusalOf(await ask('GET /', lines))
    expect(answer.code).toBe('ACCESS_REQUIRED')
    expect(headerOf(answer, 'content-type')).toContain('application/json')
    expect(JSON.parse(String(answer.body)).error.code).toBe('ACCESS_REQUIRED')
  }
})

test("a program is told of Basic, a browser's script is not: a window would open for each", async () => {
  const { ask } = await guardOf({ password: PASSWORD, bearer: TOKEN })
  expect(headerOf(await ask('GET /'), 'www-authenticate')).toBe(
    'Bearer realm="shop", Basic realm="shop", charset="UTF-8"',
  )
  expect(headerOf(await ask('GET /', ['Sec-Fetch-Mode: cors']), 'www-authenticate')).toBe('Localtunnels')
})

test('credentials that were used do not reach the app, and those of the app do', async () => {
  const { ask } = await guardOf({ password: PASSWORD })
  expect(passOf(await ask('GET /', [basic(PASSWORD)])).withoutHeaders).toContain('authorization')
  const cookie = cookieOf(
    await submit(
      await ask('POST /.localtunnels/password', ['Content-Length: 1']),
      `password=${PASSWORD}&to=/`,
    ),
  )
  const pass = passOf(await ask('GET /', [cookie, "Authorization: Bearer the-app's-own"]))
  expect(pass.withoutHeaders).not.toContain('authorization')
  expect(pass.withoutCookies).toContain('__Host-localtunnels')
})

test('the name of the user header never comes from a visitor', async () => {
  const { ask } = await guardOf({ password: PASSWORD, open: ['/health'] })
  expect(passOf(await ask('GET /health')).withoutHeaders).toContain('x-localtunnels-user')
  expect(passOf(await ask('GET /', [basic(PASSWORD)])).withoutHeaders).toContain('x-localtunnels-user')
})

test('the form leads back, with a cookie for this host alone', async () => {
  const { ask } = await guardOf({ password: PASSWORD })
  const page = refusalOf(await ask('GET /a?b=1', [NAVIGATE]))
  expect(page.body).toContain('name="to" value="/a?b=1"')
  expect(page.body).not.toContain(PASSWORD)
  const answer = await submit(
    await ask('POST /.localtunnels/password', ['Content-Length: 1', 'Sec-Fetch-Site: same-origin']),
    `password=${encodeURIComponent(PASSWORD)}&to=${encodeURIComponent('/a?b=1')}`,
  )
  expect(answer.status).toBe(303)
  expect(headerOf(answer, 'location')).toBe('/a?b=1')
  const cookie = headerOf(answer, 'set-cookie') ?? ''
  expect(cookie).toStartWith('__Host-localtunnels=')
  for (const part of ['Path=/', 'HttpOnly', 'Secure', 'SameSite=Lax']) expect(cookie).toContain(part)
  expect(cookie).not.toContain('Domain')
  expect(codeOf(await ask('GET /a', [cookieOf(answer)]))).toBe('passed')
})

test('the form leads to this host only', async () => {
  const { ask } = await guardOf({ password: PASSWORD })
  for (const to of [
    '//evil.example',
    'https://evil.example',
    '/\\evil.example',
    'javascript:alert(1)',
    '/a\nb',
  ]) {
    const form = await ask('POST /.localtunnels/password', ['Content-Length: 1'])
    const answer = await submit(form, `password=${PASSWORD}&to=${encodeURIComponent(to)}`)
    expect(headerOf(answer, 'location')).toBe('/')
  }
})

test('a wrong password shows the page again, with a word', async () => {
  const { ask } = await guardOf({ password: PASSWORD })
  const answer = await submit(
    await ask('POST /.localtunnels/password', ['Content-Length: 1']),
    'password=wrong1&to=/',
  )
  expect(answer).toMatchObject({ code: 'CREDENTIALS_REFUSED', status: 401 })
  expect(answer.body).toContain('not the password')
})

test('a form of another site signs nobody in or out', async () => {
  const { ask } = await guardOf({ password: PASSWORD })
  for (const line of [
    'Sec-Fetch-Site: cross-site',
    'Sec-Fetch-Site: same-site',
    'Origin: https://evil.example',
  ])
    for (const path of ['password', 'logout'])
      expect(codeOf(await ask(`POST /.localtunnels/${path}`, ['Content-Length: 1', line]))).toBe(
        'GUARD_REFUSED',
      )
  const own = await ask('POST /.localtunnels/logout', ['Content-Length: 1', 'Origin: https://shop.example'])
  expect(codeOf(own)).toBe('reads')
})

test('guessing is slowed down for each address', async () => {
  const { ask } = await guardOf({ password: PASSWORD })
  for (let guess = 0; guess < WRONG_PASSWORDS.limit; guess++)
    expect(codeOf(await ask('GET /', [basic(`guess${guess}`)]))).toBe('CREDENTIALS_REFUSED')
  const verdict = await ask('GET /', [basic(PASSWORD)])
  expect(codeOf(verdict)).toBe('RATE_LIMITED')
  expect(headerOf(verdict, 'retry-after')).toBe('6')
  expect(codeOf(await ask('GET /', [basic(PASSWORD)], { address: '192.0.2.2' }))).toBe('passed')
})

test('the right password does not count as a guess', async () => {
  const { ask } = await guardOf({ password: PASSWORD })
  for (let round = 0; round < 2 * WRONG_PASSWORDS.limit; round++)
    expect(codeOf(await ask('GET /', [basic(PASSWORD)]))).toBe('passed')
  for (let guess = 0; guess < WRONG_PASSWORDS.limit; guess++)
    expect(codeOf(await ask('GET /', [basic(`guess${guess}`)]))).toBe('CREDENTIALS_REFUSED')
})

test('many guesses at once are as many guesses', async () => {
  const { ask } = await guardOf({ password: PASSWORD })
  const guesses = Array.from({ length: 30 }, (_, guess) => ask('GET /', [basic(`guess${guess}`)]))
  const codes = (await Promise.all(guesses)).map(codeOf)
  expect(codes.filter(code => code === 'CREDENTIALS_REFUSED')).toHaveLength(WRONG_PASSWORDS.limit)
  expect(codes.filter(code => code === 'RATE_LIMITED')).toHaveLength(30 - WRONG_PASSWORDS.limit)
})

test('the first requests of a page come together, with one password', async () => {
  const { ask } = await guardOf({ password: PASSWORD })
  const together = Array.from({ length: 50 }, () => ask('GET /', [basic(PASSWORD)]))
  expect((await Promise.all(together)).map(codeOf)).toEqual(together.map(() => 'passed'))
})

test('a guard of walls alone leaves the head as it is', async () => {
  const { ask } = await guardOf({ deny: ['203.0.113.1'] })
  const pass = passOf(await ask('GET /', ['Cookie: a=1', 'Authorization: Basic x']))
  expect(Object.keys(pass)).toEqual(['whileOpen'])
})

test('a cookie of another tunnel, or one that was changed, lets nobody in', async () => {
  const one = await guardOf({ password: PASSWORD })
  const other = await guardOf({ password: PASSWORD })
  const cookie = cookieOf(
    await submit(
      await one.ask('POST /.localtunnels/password', ['Content-Length: 1']),
      `password=${PASSWORD}`,
    ),
  )
  expect(codeOf(await one.ask('GET /', [cookie]))).toBe('passed')
  expect(codeOf(await other.ask('GET /', [cookie]))).toBe('ACCESS_REQUIRED')
  expect(codeOf(await one.ask('GET /', [`${cookie}x`]))).toBe('ACCESS_REQUIRED')
  expect(codeOf(await one.ask('GET /', ['Cookie: __Host-localtunnels=a.b~c.d~']))).toBe('ACCESS_REQUIRED')
})

test('a session ends when the password changes, and outlives a new start with the same secret', async () => {
  const secret = 's'.repeat(32)
  const before = await guardOf({ password: PASSWORD, secret })
  const cookie = cookieOf(
    await submit(
      await before.ask('POST /.localtunnels/password', ['Content-Length: 1']),
      `password=${PASSWORD}`,
    ),
  )
  const again = await guardOf({ password: PASSWORD, secret })
  expect(codeOf(await again.ask('GET /', [cookie]))).toBe('passed')
  const changed = await guardOf({ password: 'another one', secret })
  expect(codeOf(await changed.ask('GET /', [cookie]))).toBe('ACCESS_REQUIRED')
})

test('signing out ends the session, also where the cookie was copied, and its open connections', async () => {
  const { ask } = await guardOf({ password: PASSWORD })
  const cookie = cookieOf(
    await submit(await ask('POST /.localtunnels/password', ['Content-Length: 1']), `password=${PASSWORD}`),
  )
  const { promise: isCut, resolve: cut } = Promise.withResolvers<void>()
  const over = passOf(await ask('GET /socket', [cookie])).whileOpen?.(cut)
  expect(codeOf(await ask('GET /.localtunnels/logout', [cookie]))).toBe('200')
  const answer = await submit(await ask('POST /.localtunnels/logout', ['Content-Length: 0', cookie]), '')
  expect(headerOf(answer, 'set-cookie')).toContain('Max-Age=0')
  await isCut
  over?.()
  expect(codeOf(await ask('GET /', [cookie]))).toBe('ACCESS_REQUIRED')
})

test('open connections end when another guard takes over, and when the session does', async () => {
  const { ask, guard } = await guardOf({ bearer: TOKEN, password: PASSWORD, sessionMs: 1_000 })
  const first = Promise.withResolvers<void>()
  passOf(await ask('GET /', [`Authorization: Bearer ${TOKEN}`])).whileOpen?.(first.resolve)
  const second = Promise.withResolvers<void>()
  const form = await ask('POST /.localtunnels/password', ['Content-Length: 1'])
  const cookie = cookieOf(await submit(form, `password=${PASSWORD}`))
  passOf(await ask('GET /', [cookie])).whileOpen?.(second.resolve)
  await second.promise
  guard.close?.()
  await first.promise
})

test('open paths need no way in, and walls still hold', async () => {
  const { ask } = await guardOf({ password: PASSWORD, open: ['/health', '/assets/*'], deny: ['192.0.2.9'] })
  expect(codeOf(await ask('GET /health'))).toBe('passed')
  expect(codeOf(await ask('GET /health', [], { address: '192.0.2.9' }))).toBe('ADDRESS_REFUSED')
  expect(codeOf(await ask('GET /assets/../secret'))).toBe('BAD_REQUEST')
  expect(codeOf(await ask('GET http://shop.example/health'))).toBe('passed')
  expect(codeOf(await ask('GET http://shop.example/'))).toBe('ACCESS_REQUIRED')
})

test('the ways in of a path replace those of the tunnel', async () => {
  const { ask } = await guardOf({ password: PASSWORD, paths: { '/api': { bearer: TOKEN } } })
  expect(codeOf(await ask('GET /api/x', [`Authorization: Bearer ${TOKEN}`]))).toBe('passed')
  expect(codeOf(await ask('GET /api/x', [basic(PASSWORD)]))).toBe('ACCESS_REQUIRED')
  expect(codeOf(await ask('GET /', [`Authorization: Bearer ${TOKEN}`]))).toBe('ACCESS_REQUIRED')
  // A path with a token has nothing to ask a person for: the page of the code, without a form.
  const machine = refusalOf(await ask('GET /api/x', [NAVIGATE]))
  expect([machine.code, machine.body]).toEqual(['ACCESS_REQUIRED', undefined])
})

test('a browser may be signed in to two paths at once', async () => {
  const { ask } = await guardOf({ password: PASSWORD, paths: { '/admin': { password: 'another one' } } })
  const signIn = async (password: string, to: string, lines: string[] = []) =>
    cookieOf(
      await submit(
        await ask('POST /.localtunnels/password', ['Content-Length: 1', ...lines]),
        `password=${password}&to=${to}`,
      ),
    )
  const first = await signIn(PASSWORD, '/')
  expect(codeOf(await ask('GET /admin', [first]))).toBe('ACCESS_REQUIRED')
  const both = await signIn('another one', '/admin', [first])
  expect(codeOf(await ask('GET /admin', [both]))).toBe('passed')
  expect(codeOf(await ask('GET /', [both]))).toBe('passed')
})

test('preflights pass only with cors', async () => {
  const preflight = ['Origin: https://app.example', 'Access-Control-Request-Method: GET']
  expect(codeOf(await (await guardOf({ bearer: TOKEN })).ask('OPTIONS /', preflight))).toBe('ACCESS_REQUIRED')
  const { ask } = await guardOf({ bearer: TOKEN, cors: true })
  expect(codeOf(await ask('OPTIONS /', preflight))).toBe('passed')
  expect(codeOf(await ask('OPTIONS /'))).toBe('ACCESS_REQUIRED')
  expect(codeOf(await ask('GET /', preflight))).toBe('ACCESS_REQUIRED')
  for (const line of [
    'Content-Length: 5',
    'Transfer-Encoding: chunked',
    'Connection: upgrade\r\nUpgrade: websocket',
  ])
    expect([line, codeOf(await ask('OPTIONS /', [...preflight, line]))]).toEqual([line, 'ACCESS_REQUIRED'])
  expect(codeOf(await ask('OPTIONS /', [...preflight, 'Content-Length: 0']))).toBe('passed')
})

test('with cors a page of another site can read why it is refused', async () => {
  const lines = ['Origin: https://app.example']
  const guard = { bearer: TOKEN, cors: true, deny: ['192.0.2.9'], rate: { limit: 3, windowMs: 60_000 } }
  const { ask } = await guardOf(guard)
  const refusals = [
    await ask('GET /', lines),
    await ask('GET /', [...lines, 'Authorization: Bearer wrong-token-of-a-machine']),
    await ask('GET /', lines, { address: '192.0.2.9' }),
    await ask('POST /.localtunnels/logout', lines),
    await ask('GET /', lines),
  ]
  expect(refusals.map(codeOf)).toEqual([
    'ACCESS_REQUIRED',
    'CREDENTIALS_REFUSED',
    'ADDRESS_REFUSED',
    'GUARD_REFUSED',
    'RATE_LIMITED',
  ])
  for (const one of refusals) {
    expect(headerOf(one, 'access-control-allow-origin')).toBe('https://app.example')
    expect(headerOf(one, 'access-control-expose-headers')).toContain('x-localtunnels-error')
  }
  expect(
    headerOf(await ask('GET /', [], { address: '192.0.2.9' }), 'access-control-allow-origin'),
  ).toBeUndefined()
  const without = await guardOf({ bearer: TOKEN })
  expect(headerOf(await without.ask('GET /', lines), 'access-control-allow-origin')).toBeUndefined()
})

test('no header names another path, or another method of a preflight, past the rule that was looked at', async () => {
  const { ask } = await guardOf({ bearer: TOKEN, cors: true, open: ['/health'] })
  expect(passOf(await ask('GET /health')).withoutHeaders).toEqual(
    expect.arrayContaining(['x-original-url', 'x-rewrite-url']),
  )
  const preflight = ['Origin: https://app.example', 'Access-Control-Request-Method: GET']
  expect(passOf(await ask('OPTIONS /', preflight)).withoutHeaders).toContain('x-http-method-override')
  expect(passOf(await ask('GET /health')).withoutHeaders).not.toContain('x-http-method-override')
})

test('header rules reach the app and the answer', async () => {
  const { ask } = await guardOf({
    requestHeaders: { 'x-env': 'preview' },
    responseHeaders: { 'x-robots-tag': 'noindex' },
  })
  expect(passOf(await ask('GET /'))).toMatchObject({
    requestHeaders: [['x-env', 'preview']],
    responseHeaders: [['x-robots-tag', 'noindex']],
  })
})

test('a tunnel with walls only leaves every path to the app', async () => {
  const { ask } = await guardOf({ deny: ['203.0.113.1'] })
  expect(codeOf(await ask('GET /.localtunnels/logout'))).toBe('passed')
})

test('after its time the tunnel is 410', async () => {
  const { ask } = await guardOf({ ttlMs: 1 })
  await Bun.sleep(5)
  expect(codeOf(await ask('GET /'))).toBe('TUNNEL_EXPIRED')
})

test('a raw tunnel has walls only', async () => {
  const { ask } = await guardOf({ deny: ['192.0.2.9'], rate: { limit: 2, windowMs: 60_000 } }, {}, 'tcp')
  expect(codeOf(await ask('', [], { address: '192.0.2.9' }))).toBe('ADDRESS_REFUSED')
  expect(codeOf(await ask(''))).toBe('passed')
  expect(codeOf(await ask(''))).toBe('passed')
  expect(codeOf(await ask(''))).toBe('RATE_LIMITED')
  expect(await rejection(guardOf({ password: PASSWORD }, {}, 'tcp'))).toMatchObject({
    code: 'OPTION_INVALID',
  })
})

// ── Links ────────────────────────────────────────────────────────────────────────────────────────────────────

const pathOf = (url: string) => new URL(url).pathname

test('a link opens its path and what is below, until it expires', async () => {
  const { ask, key } = await guardOf({ links: true })
  const { url } = makeLink('https://shop.example', key, { path: '/preview?x=1' })
  expect(url).toStartWith(`https://shop.example${GUARD_PATH}link/`)
  const answer = refusalOf(await ask(`GET ${pathOf(url)}`))
  expect(headerOf(answer, 'location')).toBe('/preview?x=1')
  expect(codeOf(await ask('GET /preview/a', [cookieOf(answer)]))).toBe('passed')
  expect(codeOf(await ask('GET /other', [cookieOf(answer)]))).toBe('ACCESS_REQUIRED')
  expect(codeOf(await ask('GET /previews', [cookieOf(answer)]))).toBe('ACCESS_REQUIRED')
})

test('a link of another key, a changed one and an expired one are refused', async () => {
  const { ask, key } = await guardOf({ links: true })
  const foreign = makeLink('https://shop.example', 'x'.repeat(32)).url
  const ofAnother = makeLink('https://lab.example', key).url
  expect(codeOf(await ask(`GET ${pathOf(ofAnother)}`))).toBe('LINK_REFUSED')
  expect(codeOf(await ask(`GET ${pathOf(foreign)}`))).toBe('LINK_REFUSED')
  expect(codeOf(await ask(`GET ${pathOf(makeLink('https://shop.example', key).url)}x`))).toBe('LINK_REFUSED')
  const expired = seal(key, LINK_PURPOSE, { id: 'a', path: '/', exp: Math.floor(Date.now() / 1_000) - 1 })
  expect(codeOf(await ask(`GET ${GUARD_PATH}link/${expired}`))).toBe('LINK_REFUSED')
})

test('a session of a link is for its tunnel, also where another one has the same secret', async () => {
  const secret = 's'.repeat(32)
  const lab = await guarding()(await new OwnGuard({ links: true, secret }).define('lab'), {
    kind: 'http',
    name: 'lab',
  })
  const visitor = { kind: 'http', tunnel: 'lab', owner: 'o', address: '192.0.2.1', isSecure: true } as const
  const link = headOf(`GET ${pathOf(makeLink('https://lab.example', secret).url)}`)
  const cookie = cookieOf(refusalOf(await lab.admit({ ...visitor, head: link })))
  expect(codeOf(await lab.admit({ ...visitor, head: headOf('GET /', [cookie]) }))).toBe('passed')
  const { ask } = await guardOf({ links: true, secret })
  expect(codeOf(await ask('GET /', [cookie]))).toBe('ACCESS_REQUIRED')
})

test('a link that works once is spent by the button, not by whoever follows it', async () => {
  const { ask, key } = await guardOf({ links: true })
  const path = pathOf(makeLink('https://shop.example', key, { once: true }).url)
  for (const method of ['GET', 'GET', 'HEAD']) {
    const page = refusalOf(await ask(`${method} ${path}`))
    expect(page.status).toBe(200)
    expect(page.body).toContain('<button>')
    expect(headerOf(page, 'set-cookie')).toBeUndefined()
  }
  const press = () => ask(`POST ${path}`, ['Content-Length: 0', 'Sec-Fetch-Site: same-origin'])
  const [first, second] = [await press(), await press()]
  const answer = await submit(first, '')
  expect(codeOf(await ask('GET /', [cookieOf(answer)]))).toBe('passed')
  expect((await submit(second, '')).code).toBe('LINK_REFUSED')
  expect(codeOf(await ask(`GET ${path}`))).toBe('LINK_REFUSED')
})

test('a link that was taken back lets nobody in, nor do the sessions that it began', async () => {
  const secret = 's'.repeat(32)
  const before = await guardOf({ links: true, secret })
  const { url, id } = makeLink('https://shop.example', secret)
  const cookie = cookieOf(refusalOf(await before.ask(`GET ${pathOf(url)}`)))
  const own = new OwnGuard({ links: true, secret })
  own.revoke(id)
  const guard = await guarding()(await own.define('shop'), { kind: 'http', name: 'shop' })
  const ask = async (request: string, lines: string[] = []) =>
    guard.admit({
      kind: 'http',
      tunnel: 'shop',
      owner: 'of-a-token',
      address: '192.0.2.1',
      isSecure: true,
      head: headOf(request, lines),
    })
  expect(codeOf(await ask(`GET ${pathOf(url)}`))).toBe('LINK_REFUSED')
  expect(codeOf(await ask('GET /', [cookie]))).toBe('ACCESS_REQUIRED')
})

test('a session of a link for a path is for no other path, however it is written', async () => {
  for (const [path, below, others] of [
    [
      '/docs',
      ['/docs', '/docs/a', '/docs?x', '/docs/a%20b', '/docs/a/../b'],
      [
        '/docs/../admin',
        '/docs/%2e%2e/admin',
        '/docs/..%2fadmin',
        '/docs/..\\admin',
        '/docs/..;/admin',
        '//docs/admin',
      ],
    ],
    ['/caf%C3%A9', ['/caf%C3%A9', '/caf%C3%A9/a'], ['/caf%C3%A9/../admin', '/caf']],
  ] as const) {
    const { ask, key } = await guardOf({ links: true })
    const { url } = makeLink('https://shop.example', key, { path })
    const cookie = cookieOf(refusalOf(await ask(`GET ${pathOf(url)}`)))
    for (const target of below)
      expect([target, codeOf(await ask(`GET ${target}`, [cookie]))]).toEqual([target, 'passed'])
    for (const target of others)
      expect([target, codeOf(await ask(`GET ${target}`, [cookie]))]).toEqual([target, 'ACCESS_REQUIRED'])
  }
})

test('a guard without links takes none', async () => {
  const { ask, key } = await guardOf({ password: PASSWORD })
  expect(codeOf(await ask(`GET ${pathOf(makeLink('https://shop.example', key).url)}`))).toBe('LINK_REFUSED')
})

test('a link cannot be made for what is no path, or for ever', () => {
  for (const options of [
    { path: 'a' },
    { path: '//evil.example' },
    { path: '/a/../b' },
    { path: '/a\r\n' },
    { forMs: 5 },
    { forMs: 1e12 },
  ])
    expect(() => makeLink('https://shop.example', 'k'.repeat(32), options)).toThrow(
      expect.objectContaining({ code: 'OPTION_INVALID' }),
    )
})

// ── Over plain http ──────────────────────────────────────────────────────────────────────────────────────────

test('without https the cookie has another name, which counts for nothing over https', async () => {
  const { ask } = await guardOf({ password: PASSWORD })
  const form = await ask('POST /.localtunnels/password', ['Content-Length: 1'], { isSecure: false })
  const answer = await submit(form, `password=${PASSWORD}`)
  expect(headerOf(answer, 'set-cookie')).toStartWith('localtunnels-guard=')
  expect(codeOf(await ask('GET /', [cookieOf(answer)], { isSecure: false }))).toBe('passed')
  expect(codeOf(await ask('GET /', [cookieOf(answer)]))).toBe('ACCESS_REQUIRED')
})
