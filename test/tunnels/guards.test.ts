// Guards on real servers, clients and sockets: who gets in, what reaches the app, and what a failing guard does to others.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { Agent, request } from 'node:http'
import { connect, createServer, type Socket } from 'node:net'
import { deferred } from '../../src/deferred.ts'
import type { GuardOptions } from '../../src/guard.ts'
import { type Guard, guarding, TunnelClient, type TunnelServerOptions } from '../../src/index.ts'
import type { Verdict } from '../../src/plugin.ts'
import { ask } from '../support/ask.ts'
import { DatagramVisitor, datagramApp } from '../support/datagrams.ts'
import { codeOf, eventually, next } from '../support/events.ts'
import { rawDial } from '../support/raw.ts'
import { control, speakingServer } from '../support/speaker.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { startServer, startTunnel } from '../support/tunnel.ts'

const PASSWORD = 'correct horse'
const basic = { authorization: `Basic ${Buffer.from(`any:${PASSWORD}`).toString('base64')}` }

/** An app that says what it got, and holds WebSockets open. */
let app: Bun.Server<undefined>
beforeAll(() => {
  app = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request, server) {
      if (server.upgrade(request)) return undefined
      return Response.json({
        path: new URL(request.url).pathname,
        headers: Object.fromEntries(request.headers),
        body: await request.text(),
      })
    },
    websocket: {
      open: socket => void socket.send('hello'),
      message: (socket, text) => void socket.send(text),
    },
  })
})
afterAll(() => app.stop(true))

const start = (guard: GuardOptions, server: TunnelServerOptions = {}) =>
  startTunnel({ port: app.port ?? 0, guard }, { server: { guarding: guarding(), ...server } })

const startGuarded = (guards: readonly Guard[], server: TunnelServerOptions = {}) =>
  startTunnel({ port: app.port ?? 0 }, { server: { guards, ...server } })

/** What the app says it got. */
const headersOf = (seen: unknown) => (seen as { headers: Record<string, string> }).headers

const PASS = { withoutHeaders: ['authorization'], requestHeaders: [['x-added', '1']] } as const
const guardThat = (admit: Guard['admit']): Guard => ({ name: 'test', admit })

test('without credentials 401 and a code, with them the app, which does not see them', async () => {
  await using tunnel = await start({ password: PASSWORD })
  const { port, host } = tunnel
  expect(await ask(port, host)).toMatchObject({ status: 401, code: 'ACCESS_REQUIRED' })
  const answer = await ask(port, host, { headers: { ...basic, 'x-other': 'stays' } })
  expect(answer.status).toBe(200)
  const { headers } = JSON.parse(answer.body)
  expect(headers).not.toHaveProperty('authorization')
  expect(headers['x-other']).toBe('stays')
})

test('a body goes to the app behind a guard that takes a moment, whole', async () => {
  await using tunnel = await start({ password: PASSWORD })
  const body = 'x'.repeat(300_000)
  const answer = await ask(tunnel.port, tunnel.host, { method: 'POST', headers: basic, body })
  expect(JSON.parse(answer.body).body).toBe(body)
})

test('a refused request does not spoil the connection for the next one', async () => {
  await using tunnel = await start({ password: PASSWORD })
  const visitor = await rawDial(tunnel.port)
  const send = (more: string) => visitor.send(`GET / HTTP/1.1\r\nHost: ${tunnel.host}\r\n${more}\r\n`)
  await send('')
  expect(await visitor.until('\r\n\r\n')).toContain('401 Unauthorized')
  await visitor.until('}}\n')
  await send(`Authorization: ${basic.authorization}\r\n`)
  expect(await visitor.until('\r\n\r\n')).toContain('200 OK')
  visitor.socket.terminate()
})

test('requests that came ahead of a slow guard are answered in their order', async () => {
  await using tunnel = await start({ password: PASSWORD })
  const visitor = await rawDial(tunnel.port)
  const head = (path: string, auth: boolean) =>
    `GET ${path} HTTP/1.1\r\nHost: ${tunnel.host}\r\n${auth ? `Authorization: ${basic.authorization}\r\n` : ''}\r\n`
  await visitor.send(head('/1', true) + head('/2', false) + head('/3', true))
  const first = await visitor.until('"body":""}')
  expect(first).toContain('"path":"/1"')
  expect(await visitor.until('ACCESS_REQUIRED')).toContain('401')
  expect(await visitor.until('"body":""}')).toContain('"path":"/3"')
  visitor.socket.terminate()
})

test('the form, its cookie and signing out, as a browser does it', async () => {
  await using tunnel = await start({ password: PASSWORD })
  const url = `http://127.0.0.1:${tunnel.port}`
  const browse = (
    path: string,
    init: { method?: string; body?: URLSearchParams; headers?: Record<string, string> } = {},
  ) =>
    fetch(`${url}${path}`, {
      redirect: 'manual',
      ...init,
      headers: { host: tunnel.host, 'sec-fetch-mode': 'navigate', ...init.headers },
    })
  const page = await browse('/start?a=1')
  expect(page.status).toBe(401)
  expect(page.headers.get('content-type')).toContain('text/html')
  expect(page.headers.get('x-localtunnels-error')).toBe('ACCESS_REQUIRED')
  const form = new URLSearchParams({ to: '/start?a=1', password: PASSWORD })
  const signedIn = await browse('/.localtunnels/password', { method: 'POST', body: form })
  expect([signedIn.status, signedIn.headers.get('location')]).toEqual([303, '/start?a=1'])
  expect(signedIn.headers.get('x-localtunnels-error')).toBeNull()
  const cookie = signedIn.headers.getSetCookie()[0]?.split(';')[0] ?? ''
  const seen = await browse('/start', { headers: { cookie: `own=1; ${cookie}; other=2` } })
  expect(seen.status).toBe(200)
  expect(headersOf(await seen.json()).cookie).toBe('own=1; other=2')
  const left = await browse('/.localtunnels/logout', { method: 'POST', headers: { cookie } })
  expect([left.status, await left.text()]).toEqual([200, 'You are signed out.\n'])
  expect((await browse('/start', { headers: { cookie } })).status).toBe(401)
})

test('without a form, too, a person sees a page and a program JSON', async () => {
  await using tunnel = await start({ links: true })
  for (const [path, status, code] of [
    ['/', 401, 'ACCESS_REQUIRED'],
    ['/.localtunnels/link/none', 403, 'LINK_REFUSED'],
  ] as const)
    for (const [mode, type] of [
      ['navigate', 'text/html'],
      ['cors', 'application/json'],
    ] as const) {
      const headers = { host: tunnel.host, 'sec-fetch-mode': mode }
      const answer = await fetch(`http://127.0.0.1:${tunnel.port}${path}`, { headers })
      expect([answer.status, answer.headers.get('x-localtunnels-error')]).toEqual([status, code])
      expect(answer.headers.get('content-type')).toContain(type)
      expect(await answer.text()).toContain(code)
    }
})

test('behind a server that visitors reach by https the cookie is __Host-', async () => {
  await using tunnel = await start({ password: PASSWORD }, { publicUrl: 'https://tunnel.example' })
  const answer = await fetch(`http://127.0.0.1:${tunnel.port}/.localtunnels/password`, {
    method: 'POST',
    redirect: 'manual',
    headers: { host: tunnel.host },
    body: new URLSearchParams({ to: '/', password: PASSWORD }),
  })
  expect(answer.headers.getSetCookie()[0]).toMatch(/^__Host-localtunnels=.*; Secure/)
})

test('forms that are too long or have no length are refused', async () => {
  await using tunnel = await start({ password: PASSWORD })
  const path = '/.localtunnels/password'
  const long = await ask(tunnel.port, tunnel.host, { method: 'POST', path, body: 'x'.repeat(10_000) })
  expect(long).toMatchObject({ status: 413, code: 'BODY_TOO_LARGE' })
  const visitor = await rawDial(tunnel.port)
  await visitor.send(
    `POST ${path} HTTP/1.1\r\nHost: ${tunnel.host}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  )
  expect(await visitor.end()).toContain('400 Bad Request')
  visitor.socket.terminate()
})

test('what visitors send under the name of the user header does not reach the app', async () => {
  await using tunnel = await start({ password: PASSWORD, open: ['/health'] })
  const headers = { 'X-Localtunnels-User': 'root', X_LOCALTUNNELS_USER: 'root' }
  for (const path of ['/', '/health']) {
    const answer = await ask(tunnel.port, tunnel.host, { path, headers: { ...headers, ...basic } })
    expect(Object.keys(JSON.parse(answer.body).headers).join()).not.toMatch(/localtunnels.user/i)
  }
})

test('header rules reach the app and the visitor', async () => {
  await using tunnel = await start({
    requestHeaders: { 'x-env': 'preview' },
    responseHeaders: { 'x-robots-tag': 'noindex' },
  })
  const answer = await fetch(`http://127.0.0.1:${tunnel.port}/`, {
    headers: { host: tunnel.host, 'x-env': 'production' },
  })
  expect(answer.headers.get('x-robots-tag')).toBe('noindex')
  expect(headersOf(await answer.json())['x-env']).toBe('preview')
})

test('a visitor cannot have a line of the guard taken out by naming it in Connection', async () => {
  await using tunnel = await start({ requestHeaders: { 'x-env': 'preview' } })
  const hide = (names: string) => ask(tunnel.port, tunnel.host, { headers: { connection: names } })
  expect((await hide('close, X-Env')).status).toBe(400)
  expect(headersOf(JSON.parse((await hide('close, x-other')).body))['x-env']).toBe('preview')
})

test('a trailer with the name of a line that a guard adds or takes out ends the request', async () => {
  let late = deferred<Verdict>()
  const rules: Guard[] = [
    guardThat(() => ({ requestHeaders: [['x-tenant', 'shop']], withoutHeaders: ['x-internal'] })),
    guardThat(({ head }) => (head?.path === '/late' ? late.promise : undefined)),
  ]
  for (const wire of ['streams', 'json'] as const) {
    late = deferred()
    await using tunnel = await startTunnel({ port: app.port ?? 0 }, { server: { guards: rules }, wire })
    const send = async (path: string, trailer: string) => {
      const visitor = await rawDial(tunnel.port)
      await visitor.send(
        `POST ${path} HTTP/1.1\r\nHost: ${tunnel.host}\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n${trailer}: admin\r\n\r\n`,
      )
      if (path === '/late') late.resolve(undefined)
      const line = await visitor.until('\r\n')
      visitor.socket.terminate()
      return line.trim()
    }
    for (const name of ['X-Tenant', 'x_tenant', 'X-Internal'])
      expect([name, await send('/', name)]).toEqual([name, 'HTTP/1.1 400 Bad Request'])
    expect(await send('/late', 'X-Tenant')).toBe('HTTP/1.1 400 Bad Request')
    expect(await send('/', 'X-Tenants')).toBe('HTTP/1.1 200 OK')
  }
})

test('an address that is not allowed gets 403, one that asks too often 429 with Retry-After', async () => {
  await using denied = await start({ deny: ['127.0.0.0/8'] })
  expect(await ask(denied.port, denied.host)).toMatchObject({ status: 403, code: 'ADDRESS_REFUSED' })
  await using rated = await start({ rate: { limit: 2, windowMs: 60_000 } })
  const codes = []
  for (let round = 0; round < 3; round++) codes.push((await ask(rated.port, rated.host)).status)
  expect(codes).toEqual([200, 200, 429])
  const answer = await fetch(`http://127.0.0.1:${rated.port}/`, { headers: { host: rated.host } })
  expect(answer.headers.get('retry-after')).toBe('30')
  expect(answer.headers.get('ratelimit')).toBe('"visitor";r=0;t=30')
})

test('behind a trusted proxy the address is the one that it names, and of no other', async () => {
  const guard = { allow: ['203.0.113.7'] }
  await using behind = await start(guard, { trustedProxies: ['127.0.0.1'] })
  const headers = { 'x-forwarded-for': '203.0.113.7' }
  expect((await ask(behind.port, behind.host, { headers })).status).toBe(200)
  await using open = await start(guard)
  expect((await ask(open.port, open.host, { headers })).status).toBe(403)
})

test('a WebSocket needs a way in too, and ends when it is signed out', async () => {
  await using tunnel = await start({ password: PASSWORD })
  const url = `ws://127.0.0.1:${tunnel.port}/socket`
  const refused = new WebSocket(url, { headers: { host: tunnel.host } } as never)
  await new Promise(resolve => refused.addEventListener('error', resolve))
  const form = await fetch(`http://127.0.0.1:${tunnel.port}/.localtunnels/password`, {
    method: 'POST',
    redirect: 'manual',
    headers: { host: tunnel.host },
    body: new URLSearchParams({ to: '/', password: PASSWORD }),
  })
  const cookie = form.headers.getSetCookie()[0]?.split(';')[0] ?? ''
  const socket = new WebSocket(url, { headers: { host: tunnel.host, cookie } } as never)
  await new Promise(resolve => socket.addEventListener('message', resolve))
  const closed = new Promise(resolve => socket.addEventListener('close', resolve))
  await ask(tunnel.port, tunnel.host, { method: 'POST', path: '/.localtunnels/logout', headers: { cookie } })
  await closed
})

test('a link lets in until it is taken back, which ends its WebSockets', async () => {
  await using server = await startServer({ guarding: guarding() })
  const client = new TunnelClient({ server: `http://127.0.0.1:${server.port}` })
  const tunnel = await client.http({ port: app.port ?? 0, subdomain: 'app', guard: { links: true } })
  const { url, id } = tunnel.link({ path: '/preview' })
  const { pathname } = new URL(url)
  const open = await fetch(`http://127.0.0.1:${server.port}${pathname}`, {
    redirect: 'manual',
    headers: { host: 'app.localhost' },
  })
  expect(open.headers.get('location')).toBe('/preview')
  const cookie = open.headers.getSetCookie()[0]?.split(';')[0] ?? ''
  const visit = () => ask(server.port, 'app.localhost', { path: '/preview/a', headers: { cookie } })
  expect((await visit()).status).toBe(200)
  const socket = new WebSocket(`ws://127.0.0.1:${server.port}/preview/socket`, {
    headers: { host: 'app.localhost', cookie },
  } as never)
  await new Promise(resolve => socket.addEventListener('message', resolve))
  const closed = new Promise(resolve => socket.addEventListener('close', resolve))
  await tunnel.revokeLink(id)
  await closed
  expect((await visit()).code).toBe('ACCESS_REQUIRED')
  expect((await ask(server.port, 'app.localhost', { path: pathname })).code).toBe('LINK_REFUSED')
  await client.disconnect()
})

test('links that are taken back one after the other are all taken back', async () => {
  // The first of the four is ready last: what is asked for later must not be overtaken.
  let making = 0
  const make = guarding()
  const last = deferred<void>()
  const slower: typeof make = async (definition, about) => {
    const number = ++making
    const guard = await make(definition, about)
    if (number === 2) await last.promise
    return guard
  }
  await using server = await startServer({ guarding: slower })
  const client = new TunnelClient({ server: `http://127.0.0.1:${server.port}` })
  const tunnel = await client.http({ port: app.port ?? 0, subdomain: 'app', guard: { links: true } })
  const links = Array.from({ length: 4 }, () => tunnel.link())
  for (const { id } of links) await tunnel.revokeLink(id)
  await eventually(() => making === 5, 'the guards to be made')
  last.resolve()
  const refusalOf = async (url: string) =>
    (await ask(server.port, 'app.localhost', { path: new URL(url).pathname })).code
  // In force one after the other: with the last one, all are.
  const newest = links.at(-1)?.url ?? ''
  while ((await refusalOf(newest)) !== 'LINK_REFUSED');
  for (const { url } of links) expect(await refusalOf(url)).toBe('LINK_REFUSED')
  await client.disconnect()
})

test('a TCP tunnel has walls: others are reset before the app hears of them', async () => {
  const sockets: Socket[] = []
  const service = createServer(socket => {
    sockets.push(socket)
    socket.on('error', () => {})
    socket.end('hello')
  })
  await new Promise<void>(resolve => service.listen(0, '127.0.0.1', resolve))
  const { port } = service.address() as { port: number }
  await using server = await startServer({ guarding: guarding() })
  const client = new TunnelClient({ server: `http://127.0.0.1:${server.port}` })
  const visit = (to: number) =>
    new Promise<string>((resolve, reject) => {
      let text = ''
      const socket = connect(to, '127.0.0.1')
      socket.on('data', piece => (text += piece.toString()))
      socket.on('end', () => resolve(text))
      socket.on('error', reject)
    })
  const rated = await client.tcp({ port, guard: { rate: { limit: 1, windowMs: 60_000 } } })
  expect(await visit(rated.port ?? 0)).toBe('hello')
  const ends: unknown[] = []
  server.on('visitorDisconnected', ({ error }) => ends.push(error))
  expect(await codeOf(visit(rated.port ?? 0))).toBe('ECONNRESET')
  await eventually(() => ends.includes('RATE_LIMITED'), 'the end of the connection that was one too many')
  const denied = await client.tcp({ port, guard: { allow: ['203.0.113.0/24'] } })
  expect(await codeOf(visit(denied.port ?? 0))).toBe('ECONNRESET')
  expect(sockets).toHaveLength(1)
  expect(await codeOf(client.tcp({ port, guard: { password: PASSWORD } }))).toBe('OPTION_INVALID')
  await client.disconnect()
  service.close()
})

test('datagrams of an address that is not allowed are dropped', async () => {
  await using echo = await datagramApp()
  await using server = await startServer({ guarding: guarding() })
  const client = new TunnelClient({ server: `http://127.0.0.1:${server.port}` })
  const denied = await client.udp({ port: echo.port, guard: { deny: ['127.0.0.1'] } })
  const allowed = await client.udp({ port: echo.port, guard: { allow: ['127.0.0.1'] } })
  await using stranger = await DatagramVisitor.to(denied.port ?? 0)
  await stranger.send(new TextEncoder().encode('no'))
  await using visitor = await DatagramVisitor.to(allowed.port ?? 0)
  await visitor.send(new TextEncoder().encode('yes'))
  await eventually(() => echo.seen.length > 0, 'the datagram that may pass')
  await eventually(() => server.getStats().droppedDatagrams > 0, 'the other one to be dropped')
  expect(echo.seen.map(({ bytes }) => new TextDecoder().decode(bytes))).toEqual(['yes'])
  await client.disconnect()
})

// ── Guards of programs ───────────────────────────────────────────────────────────────────────────────────────

test('a guard that throws, rejects or takes too long gives its visitor a 500, and no other', async () => {
  const never = new Promise<never>(() => {})
  await using tunnel = await startGuarded(
    [
      guardThat(({ head }) => {
        if (head?.path === '/throws') throw new Error('secret words')
        if (head?.path === '/rejects') return Promise.reject(new Error('secret words'))
        return head?.path === '/hangs' ? never : undefined
      }),
    ],
    { limits: { guardTimeoutMs: 50 } },
  )
  const errors: string[] = []
  tunnel.server.on('error', error => errors.push(error.message))
  const action = 'Correct the plugin, or what it waits for.'
  const paths = ['/throws', '/', '/rejects', '/hangs', '/']
  const answers = await Promise.all(paths.map(path => ask(tunnel.port, tunnel.host, { path })))
  expect(answers.map(({ status }) => status)).toEqual([500, 200, 500, 500, 200])
  for (const { body } of answers) expect(body).not.toContain('secret words')
  expect(answers[0]?.code).toBe('PLUGIN_FAILED')
  expect(errors).toEqual([`The guard "test" failed: Error: secret words. ${action}`])
  await tunnel.server.stop()
  const late = 'The guard "test" failed: Error: no answer within 50 ms.'
  expect(errors.slice(1)).toEqual([`${late} Failures since the last report: 2. ${action}`])
})

test('the reader of a form that takes too long gives its visitor a 500, and no other', async () => {
  const never = new Promise<never>(() => {})
  await using tunnel = await startGuarded(
    [
      guardThat(({ head }) =>
        head?.path === '/form'
          ? { maxBodyBytes: 100, read: body => (body.length > 5 ? never : { status: 200, body: 'read' }) }
          : undefined,
      ),
    ],
    { limits: { guardTimeoutMs: 50 } },
  )
  const { port, host } = tunnel
  const post = (body: string) =>
    ask(port, host, { method: 'POST', path: '/form', body, headers: { 'content-length': `${body.length}` } })
  const [late, good, plain] = await Promise.all([post('too late'), post('good'), ask(port, host)])
  expect(late).toMatchObject({ status: 500, code: 'PLUGIN_FAILED' })
  expect(good).toMatchObject({ status: 200, body: 'read' })
  expect(plain.status).toBe(200)
})

test('a guard answers as it likes, and one that answers nonsense gets a 500', async () => {
  await using tunnel = await startGuarded([
    guardThat(({ head }) => {
      if (head?.path === '/teapot')
        return { status: 418, headers: [['content-type', 'text/plain']], body: 'short and stout' }
      if (head?.path === '/page') return { status: 200, body: '' }
      if (head?.path === '/status') return { status: 99, body: '' }
      if (head?.path === '/line') return { status: 403, headers: [['x-a', 'b\r\nset-cookie: c']], body: '' }
      if (head?.path === '/host') return { requestHeaders: [['host', 'other.example']] }
      if (head?.path === '/length') return { withoutHeaders: ['content-length'] }
      return undefined
    }),
  ])
  tunnel.server.on('error', () => {})
  const visit = (path: string, body?: string) =>
    ask(tunnel.port, tunnel.host, { path, ...(body !== undefined && { method: 'POST', body }) })
  expect(await visit('/teapot')).toMatchObject({
    status: 418,
    body: 'short and stout',
    code: 'GUARD_REFUSED',
  })
  expect(await visit('/page')).toMatchObject({ status: 200, body: '', code: undefined })
  for (const path of ['/status', '/line', '/host']) expect(await visit(path)).toMatchObject({ status: 500 })
  expect(await visit('/length', 'GET /smuggled HTTP/1.1\r\n\r\n')).toMatchObject({ status: 500 })
})

test('guards of the server come first, and all must let a visitor pass', async () => {
  const asked: string[] = []
  const noting = (name: string, verdict: ReturnType<Guard['admit']>) =>
    guardThat(() => {
      asked.push(name)
      return verdict
    })
  await using tunnel = await startTunnel(
    { port: app.port ?? 0, guard: { password: PASSWORD } },
    {
      server: {
        guarding: guarding(),
        guards: [
          noting('first', { requestHeaders: [['x-first', '1']] }),
          noting('second', Promise.resolve({ requestHeaders: [['x-second', '2']] })),
        ],
      },
    },
  )
  expect((await ask(tunnel.port, tunnel.host)).status).toBe(401)
  const answer = await ask(tunnel.port, tunnel.host, { headers: basic })
  expect(JSON.parse(answer.body).headers).toMatchObject({ 'x-first': '1', 'x-second': '2' })
  expect(asked).toEqual(['first', 'second', 'first', 'second'])
})

test('tunnels of the JSON wire are guarded by the guards of the server', async () => {
  await using tunnel = await startTunnel(
    { port: app.port ?? 0 },
    {
      wire: 'json',
      server: {
        guards: [guardThat(({ head }) => (head?.path === '/no' ? { code: 'GUARD_REFUSED' } : PASS))],
      },
    },
  )
  expect((await ask(tunnel.port, tunnel.host, { path: '/no' })).code).toBe('GUARD_REFUSED')
  const answer = await ask(tunnel.port, tunnel.host, { headers: { authorization: 'Bearer x' } })
  const headers = headersOf(JSON.parse(answer.body))
  expect([headers['x-added'], headers.authorization]).toEqual(['1', undefined])
})

test('behind a proxy that ends TLS and is trusted, the cookie is __Host-', async () => {
  const cookieFor = async (server: TunnelServerOptions) => {
    await using tunnel = await start({ password: PASSWORD }, server)
    const answer = await fetch(`http://127.0.0.1:${tunnel.port}/.localtunnels/password`, {
      method: 'POST',
      redirect: 'manual',
      headers: { host: tunnel.host, 'x-forwarded-proto': 'https' },
      body: new URLSearchParams({ to: '/', password: PASSWORD }),
    })
    return answer.headers.getSetCookie()[0]
  }
  expect(await cookieFor({ trustedProxies: ['127.0.0.1'] })).toStartWith('__Host-localtunnels=')
  // Who is not trusted says nothing of that.
  expect(await cookieFor({})).toStartWith('localtunnels-guard=')
})

test('a cookie that a browser lets other hosts set is none of __Host-, whatever is around its name', async () => {
  await using tunnel = await start({ password: PASSWORD }, { publicUrl: 'https://tunnel.example' })
  const form = await fetch(`http://127.0.0.1:${tunnel.port}/.localtunnels/password`, {
    method: 'POST',
    redirect: 'manual',
    headers: { host: tunnel.host },
    body: new URLSearchParams({ to: '/', password: PASSWORD }),
  })
  const cookie = form.headers.getSetCookie()[0]?.split(';')[0] ?? ''
  const statusWith = async (text: string) => {
    const visitor = await rawDial(tunnel.port)
    const head = `GET / HTTP/1.1\r\nHost: ${tunnel.host}\r\nCookie: ${text}\r\n\r\n`
    await visitor.send(Buffer.from(head, 'latin1'))
    const answer = await visitor.until('\r\n\r\n')
    visitor.socket.terminate()
    return answer.slice(9, 12)
  }
  expect(await statusWith(` \t${cookie}`)).toBe('200')
  expect(await statusWith(`\xa0${cookie}`)).toBe('401')
  expect(await statusWith(cookie.replace('=', '\xa0='))).toBe('401')
})

test('a guard that is replaced while it thinks lets nobody in', async () => {
  const asked = deferred<void>()
  const verdict = deferred<Verdict>()
  const replaced = deferred<void>()
  let made = 0
  const make = (): Guard =>
    made++ === 0
      ? {
          name: 'first',
          admit() {
            asked.resolve()
            return verdict.promise
          },
          close: () => replaced.resolve(),
        }
      : guardThat(() => ({ code: 'ADDRESS_REFUSED' }))
  await using server = await startServer({ guarding: async () => make() })
  const client = new TunnelClient({ server: `http://127.0.0.1:${server.port}` })
  const tunnel = await client.http({ port: app.port ?? 0, subdomain: 'app', guard: { links: true } })
  const visit = ask(server.port, 'app.localhost')
  await asked.promise
  await tunnel.revokeLink(tunnel.link().id)
  await replaced.promise
  verdict.resolve({})
  expect((await visit).code).toBe('ADDRESS_REFUSED')
  await client.disconnect()
})

test('a refusal is in the request event, with its code', async () => {
  await using tunnel = await start({ deny: ['127.0.0.1'] })
  const seen = next(tunnel.server, 'request')
  await ask(tunnel.port, tunnel.host)
  expect(await seen).toMatchObject({ status: 403, error: 'ADDRESS_REFUSED' })
})

// ── Who guards ───────────────────────────────────────────────────────────────────────────────────────────────

test('a server without guarding refuses the tunnel instead of serving everybody', async () => {
  await using server = await startServer()
  const client = new TunnelClient({ server: `http://127.0.0.1:${server.port}`, reconnect: false })
  const wish = client.http({ port: app.port ?? 0, subdomain: 'app', guard: { password: PASSWORD } })
  expect(await codeOf(wish)).toBe('GUARD_UNAVAILABLE')
  expect((await ask(server.port, 'app.localhost')).code).toBe('TUNNEL_NOT_FOUND')
  await client.disconnect()
})

test('over the JSON wire, which has no guards, there is no tunnel', async () => {
  await using server = await startServer({ guarding: guarding() })
  const client = new TunnelClient({
    server: `http://127.0.0.1:${server.port}`,
    port: app.port ?? 0,
    wire: 'json',
    reconnect: false,
    guard: { password: PASSWORD },
  })
  expect(await codeOf(client.connect())).toBe('FEATURE_UNSUPPORTED')
  await client.disconnect()
})

test('a token may be for guarded tunnels only', async () => {
  await using server = await startServer({
    guarding: guarding(),
    tokens: [{ token: 'team', requireGuard: true }],
  })
  const client = new TunnelClient({ server: `http://127.0.0.1:${server.port}`, token: 'team' })
  // The second is one that lets everybody pass.
  for (const guard of [undefined, { cors: true, requestHeaders: { 'X-A': 'b' } }])
    expect(
      await codeOf(client.http({ port: app.port ?? 0, subdomain: 'app', ...(guard && { guard }) })),
    ).toBe('NOT_ALLOWED')
  await client.http({ port: app.port ?? 0, subdomain: 'app', guard: { password: PASSWORD } })
  expect((await ask(server.port, 'app.localhost')).status).toBe(401)
  await client.disconnect()
})

test('a preflight reaches the app, and brings back nothing that a browser does not look at', async () => {
  const seen: string[] = []
  using page = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request) {
      seen.push(`${request.method} ${new URL(request.url).pathname}`)
      return new Response('the secret page', {
        status: 203,
        headers: {
          'access-control-allow-origin': 'https://app.example',
          'access-control-max-age': '60',
          'set-cookie': 'session=1',
          'x-secret': 'yes',
        },
      })
    },
  })
  await using tunnel = await startTunnel(
    { port: page.port ?? 0, guard: { password: PASSWORD, cors: true } },
    { server: { guarding: guarding() } },
  )
  const visitor = await rawDial(tunnel.port)
  const preflight = 'Origin: https://app.example\r\nAccess-Control-Request-Method: DELETE\r\n'
  for (let turn = 0; turn < 2; turn++) {
    await visitor.send(`OPTIONS /private HTTP/1.1\r\nHost: ${tunnel.host}\r\n${preflight}\r\n`)
    const head = await visitor.until('\r\n\r\n')
    expect(head).toStartWith('HTTP/1.1 203')
    expect(head.toLowerCase()).toContain('access-control-allow-origin: https://app.example')
    expect(head.toLowerCase()).toContain('access-control-max-age: 60')
    expect(head).not.toMatch(/secret|cookie|content-type/i)
  }
  expect(seen).toEqual(['OPTIONS /private', 'OPTIONS /private'])
  // Not with a body, and nothing that a browser would not ask.
  await visitor.send(
    `OPTIONS /private HTTP/1.1\r\nHost: ${tunnel.host}\r\n${preflight}Content-Length: 14\r\n\r\n_method=DELETE`,
  )
  const refused = await visitor.until('\r\n\r\n')
  expect(refused).toStartWith('HTTP/1.1 401')
  expect(refused.toLowerCase()).toContain('access-control-allow-origin: https://app.example')
  expect(visitor.text).not.toContain('secret')
  visitor.socket.terminate()
  expect(seen).toHaveLength(2)
})

test('clients of a pool have one guard', async () => {
  await using server = await startServer({ guarding: guarding() })
  const connect = (guard: GuardOptions | undefined) => {
    const client = new TunnelClient({ server: `http://127.0.0.1:${server.port}` })
    return {
      client,
      wish: client.http({ port: app.port ?? 0, subdomain: 'app', pool: true, ...(guard && { guard }) }),
    }
  }
  const guard = { password: PASSWORD, secret: 's'.repeat(32) }
  const first = connect(guard)
  await first.wish
  const second = connect(guard)
  await second.wish
  const others = []
  for (const other of [{ ...guard, password: 'another one' }, undefined]) {
    others.push(connect(other))
    expect(await codeOf(others.at(-1)!.wish)).toBe('POOL_DIFFERS')
  }
  for (const { client } of [first, second, ...others]) await client.disconnect()
})

test('the guard is there again after a reconnect, and its sessions go on', async () => {
  await using server = await startServer({ guarding: guarding() })
  using proxy = new TcpProxy(server.port)
  const client = new TunnelClient({ server: `http://127.0.0.1:${proxy.port}`, maxBackoffMs: 50 })
  await client.http({ port: app.port ?? 0, subdomain: 'app', guard: { password: PASSWORD } })
  const form = await fetch(`http://127.0.0.1:${server.port}/.localtunnels/password`, {
    method: 'POST',
    redirect: 'manual',
    headers: { host: 'app.localhost' },
    body: new URLSearchParams({ to: '/', password: PASSWORD }),
  })
  const cookie = form.headers.getSetCookie()[0]?.split(';')[0] ?? ''
  const again = next(client, 'registered')
  proxy.cutAll()
  await again
  expect((await ask(server.port, 'app.localhost', { headers: { cookie } })).status).toBe(200)
  expect((await ask(server.port, 'app.localhost')).status).toBe(401)
  await client.disconnect()
})

test('a server without guards refuses the kind, and opens no tunnel', async () => {
  const kinds: unknown[] = []
  // A server without guards refuses an unknown kind, and would ignore an unknown field.
  using old = speakingServer(({ type, kind, ref }, say) => {
    if (type !== 'register') return
    kinds.push(kind)
    const isKnown = kind === 'http' || kind === 'tcp'
    say(
      control(
        isKnown
          ? { type: 'granted', ref, tunnel: 1, name: 'app', url: 'http://app.localhost', resume: 'secret' }
          : { type: 'refused', ref, code: 'KIND_REFUSED', message: 'No such kind.' },
      ),
    )
  })
  const client = new TunnelClient({ server: `http://127.0.0.1:${old.port}`, reconnect: false })
  const wish = client.http({ port: app.port ?? 0, subdomain: 'app', guard: { password: PASSWORD } })
  expect(await codeOf(wish)).toBe('KIND_REFUSED')
  expect(kinds).toEqual(['guarded-http'])
  await client.disconnect()
})

test('a grant that does not say that the guard is in force is given back', async () => {
  const { promise: released, resolve } = Promise.withResolvers<unknown>()
  let granted = 6
  using careless = speakingServer(({ type, ref, tunnel, name }, say) => {
    if (type === 'release') resolve(tunnel)
    if (type === 'register')
      say(
        control({
          type: 'granted',
          ref,
          tunnel: ++granted,
          name,
          url: 'http://app.localhost',
          resume: 'secret',
        }),
      )
  })
  const client = new TunnelClient({ server: `http://127.0.0.1:${careless.port}`, reconnect: false })
  await client.http({ port: app.port ?? 0, subdomain: 'open' })
  const wish = client.http({ port: app.port ?? 0, subdomain: 'app', guard: { password: PASSWORD } })
  expect(await codeOf(wish)).toBe('FEATURE_UNSUPPORTED')
  expect(await released).toBe(8)
  await client.disconnect()
})

test('a rate holds exactly for a connection that is in a lane, and for others of its address', async () => {
  await using tunnel = await start({ rate: { limit: 300, windowMs: 3_600_000 } })
  const agents = [1, 2].map(() => new Agent({ keepAlive: true, maxSockets: 1 }))
  const statuses: number[] = []
  const visit = (agent: Agent) =>
    new Promise<void>((resolve, reject) =>
      request({ host: '127.0.0.1', port: tunnel.port, agent, headers: { host: tunnel.host } }, answer => {
        statuses.push(answer.statusCode ?? 0)
        answer.resume().on('end', () => resolve())
      })
        .on('error', reject)
        .end(),
    )
  await Promise.all(
    agents.map(async agent => {
      for (let count = 0; count < 200; count++) await visit(agent)
    }),
  )
  for (const agent of agents) agent.destroy()
  expect(statuses.filter(status => status === 200)).toHaveLength(300)
  expect(statuses.filter(status => status === 429)).toHaveLength(100)
})

test('an answer that lasts ends when its visitor signs out, and that of another goes on', async () => {
  using feed = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: () => new Response(new ReadableStream({ start: controller => controller.enqueue('first') })),
  })
  await using server = await startServer({ guarding: guarding() })
  const client = new TunnelClient({ server: `http://127.0.0.1:${server.port}` })
  await client.http({ port: feed.port ?? 0, subdomain: 'app', guard: { password: PASSWORD } })
  const host = 'app.localhost'
  const enter = async () => {
    const form = await fetch(`http://127.0.0.1:${server.port}/.localtunnels/password`, {
      method: 'POST',
      redirect: 'manual',
      headers: { host },
      body: new URLSearchParams({ to: '/', password: PASSWORD }),
    })
    const cookie = form.headers.getSetCookie()[0]?.split(';')[0] ?? ''
    const answer = await fetch(`http://127.0.0.1:${server.port}/`, { headers: { host, cookie } })
    const reader = answer.body!.getReader()
    await reader.read()
    return { cookie, reader }
  }
  const [anna, ben] = [await enter(), await enter()]
  const isCut = anna.reader.read().then(
    () => false,
    () => true,
  )
  let isOver = false
  const others = ben.reader.read().then(
    () => (isOver = true),
    () => (isOver = true),
  )
  const headers = { cookie: anna.cookie }
  await ask(server.port, host, { method: 'POST', path: '/.localtunnels/logout', headers })
  expect(await isCut).toBe(true)
  expect(isOver).toBe(false)
  await client.disconnect()
  await others
})

test('the visitors of all tunnels of a token share its rate', async () => {
  const tokens = [{ token: 'anna', rate: { limit: 2, windowMs: 3_600_000 } }, 'ben']
  await using server = await startServer({ tokens })
  const clientOf = (token: string) => new TunnelClient({ server: `http://127.0.0.1:${server.port}`, token })
  const [anna, ben] = [clientOf('anna'), clientOf('ben')]
  for (const [client, subdomain] of [
    [anna, 'one'],
    [anna, 'two'],
    [ben, 'three'],
  ] as const)
    await client.http({ port: app.port ?? 0, subdomain })
  expect((await ask(server.port, 'one.localhost')).status).toBe(200)
  expect((await ask(server.port, 'two.localhost')).status).toBe(200)
  expect(await ask(server.port, 'one.localhost')).toMatchObject({ status: 429, code: 'RATE_LIMITED' })
  expect((await ask(server.port, 'three.localhost')).status).toBe(200)
  // What was counted stays through a reload that says the same, and a wider rule is in force at once.
  await server.reload({ tokens: [{ token: 'anna', rate: { limit: 2, windowMs: 3_600_000 } }, 'ben'] })
  expect((await ask(server.port, 'two.localhost')).status).toBe(429)
  await server.reload({ tokens: ['anna', 'ben'] })
  expect((await ask(server.port, 'two.localhost')).status).toBe(200)
  await Promise.all([anna.disconnect(), ben.disconnect()])
})

test('a bearer token in a header of its own: the app gets Authorization, and not the token', async () => {
  const bearer = 'a-token-of-a-machine'
  await using tunnel = await start({ bearer, bearerHeader: 'X-Api-Key' })
  const { port, host } = tunnel
  const authorization = `Bearer ${bearer}`
  expect(await ask(port, host, { headers: { authorization } })).toMatchObject({ code: 'ACCESS_REQUIRED' })
  const wrong = { 'x-api-key': 'another-token-of-a-machine' }
  expect(await ask(port, host, { headers: wrong })).toMatchObject({
    status: 401,
    code: 'CREDENTIALS_REFUSED',
  })
  const answer = await ask(port, host, { headers: { authorization: 'Basic b3du', 'x-API-key': bearer } })
  expect(headersOf(JSON.parse(answer.body))).toMatchObject({ authorization: 'Basic b3du' })
  expect(answer.body).not.toContain(bearer)
  for (const bearerHeader of ['Host', 'a b', 'X-Forwarded-For', 'x_localtunnels_user'])
    expect(await codeOf(start({ bearer, bearerHeader }))).toBe('OPTION_INVALID')
  expect(() => new TunnelClient({ port: 1, guard: { bearerHeader: 'X-Api-Key', links: true } })).toThrow(
    'needs',
  )
})
