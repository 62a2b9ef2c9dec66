// Middlewares on real servers: what they may change, what they leave as it is, and what a failing one does to others.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createHash, randomBytes } from 'node:crypto'
import { guarding, type Middleware, type TunnelServerOptions } from '../../src/index.ts'
import { ask } from '../support/ask.ts'
import { eventually, next } from '../support/events.ts'
import { get as get1, headerOf, ok, rawTunnel } from '../support/exchange.ts'
import { frame } from '../support/h2-frames.ts'
import { get, H2Peer, head } from '../support/h2-peer.ts'
import { startHttp2Site } from '../support/http2-site.ts'
import { rawDial } from '../support/raw.ts'
import { startTunnel } from '../support/tunnel.ts'

const sha = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

let app: Bun.Server<undefined>
let received = 0
/** Pieces of endless answers. */
let pulls = 0
beforeAll(() => {
  app = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request, server) {
      if (server.upgrade(request)) return undefined
      const { pathname } = new URL(request.url)
      if (pathname === '/endless')
        return new Response(
          new ReadableStream({
            pull(controller) {
              pulls++
              controller.enqueue(new Uint8Array(65_536))
            },
          }),
        )
      if (pathname === '/large') return new Response(new Uint8Array(8_000_000).fill(7))
      if (pathname === '/nothing') return new Response(null, { status: 204 })
      if (pathname === '/sum') {
        const bytes = await request.bytes()
        received = bytes.length
        return new Response(sha(bytes))
      }
      return Response.json({
        method: request.method,
        path: request.url.replace(/^https?:\/\/[^/]+/, ''),
        headers: Object.fromEntries(request.headers),
        body: await request.text(),
      })
    },
    websocket: { message: (socket, text) => void socket.send(text) },
  })
})
afterAll(() => app.stop(true))

const handles = (handle: Middleware['handle'], name = 'test'): Middleware => ({ name, handle })
const start = (
  middlewares: readonly Middleware[],
  server: TunnelServerOptions = {},
  wire: 'streams' | 'json' = 'streams',
) => startTunnel({ port: app.port ?? 0 }, { server: { middlewares, ...server }, wire })

for (const wire of ['streams', 'json'] as const)
  test(`a middleware changes request and answer, on the ${wire} wire`, async () => {
    const stamp = handles(async (request, next, { tunnel, address }) => {
      const changed = new Request(`${new URL(request.url).origin}/changed?x=1`, request)
      changed.headers.set('x-seen', `${tunnel} ${address}`)
      const answer = await next(changed)
      const stamped = new Response(answer.body, answer)
      stamped.headers.set('x-served-by', 'tunnel')
      stamped.headers.append('set-cookie', 'a=1')
      stamped.headers.append('set-cookie', 'b=2')
      return stamped
    })
    await using tunnel = await start([stamp], {}, wire)
    const answer = await fetch(`http://127.0.0.1:${tunnel.port}/first`, {
      method: 'POST',
      headers: { host: tunnel.host },
      body: 'hello',
    })
    expect(answer.headers.get('x-served-by')).toBe('tunnel')
    expect(answer.headers.getSetCookie()).toEqual(['a=1', 'b=2'])
    const seen = (await answer.json()) as { headers: Record<string, string> }
    expect(seen).toMatchObject({ method: 'POST', path: '/changed?x=1', body: 'hello' })
    expect(seen.headers).toMatchObject({
      'x-seen': 'app 127.0.0.1',
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-host': tunnel.host,
    })
  })

test('the first of the list is the outermost, and one may answer itself', async () => {
  const calls: string[] = []
  const named = (name: string): Middleware =>
    handles(async (request, next) => {
      calls.push(name)
      const answer = await next(request)
      calls.push(`${name} again`)
      return answer
    }, name)
  const own = handles((request, next) =>
    request.url.endsWith('/own') ? new Response('mine', { status: 418 }) : next(request),
  )
  await using tunnel = await start([named('outer'), named('inner'), own])
  expect(await ask(tunnel.port, tunnel.host, { path: '/own' })).toMatchObject({ status: 418, body: 'mine' })
  expect(calls).toEqual(['outer', 'inner', 'inner again', 'outer again'])
  expect(await ask(tunnel.port, tunnel.host, { path: '/sum' })).toMatchObject({ status: 200 })
  expect(await ask(tunnel.port, tunnel.host, { path: '/nothing' })).toMatchObject({ status: 204 })
  expect(await ask(tunnel.port, tunnel.host, { path: '/large', method: 'HEAD' })).toMatchObject({
    status: 200,
    body: '',
  })
})

test('bodies stream both ways, byte for byte, with a length and without', async () => {
  await using tunnel = await start([handles((request, next) => next(request))])
  const body = randomBytes(5_000_000)
  const url = `http://127.0.0.1:${tunnel.port}`
  const headers = { host: tunnel.host }
  const whole = await fetch(`${url}/sum`, { method: 'POST', headers, body })
  expect(await whole.text()).toBe(sha(body))
  const pieces = new ReadableStream({
    start(controller) {
      for (let at = 0; at < body.length; at += 100_000) controller.enqueue(body.subarray(at, at + 100_000))
      controller.close()
    },
  })
  const streamed = await fetch(`${url}/sum`, { method: 'POST', headers, body: pieces })
  expect(await streamed.text()).toBe(sha(body))
  expect(received).toBe(body.length)
  const large = await fetch(`${url}/large`, { headers })
  expect(sha(await large.bytes())).toBe(sha(new Uint8Array(8_000_000).fill(7)))
})

test('OPTIONS for the whole app stays that, also through a guard with cors, unless a middleware changes the path', async () => {
  const preflight = 'Origin: https://a.example\r\nAccess-Control-Request-Method: PUT\r\n'
  const passing = handles((request, next) => next(request))
  const changing = handles((request, next) =>
    next(new Request(request.url.replace(/\/\*?$/, '/changed'), request)),
  )
  for (const [options, path] of [
    [{ server: { middlewares: [passing] } }, '*'],
    [{ server: { middlewares: [changing] } }, '/changed'],
    [
      { server: { guarding: guarding() }, client: { guard: { password: 'a long password', cors: true } } },
      '*',
    ],
  ] as const) {
    await using raw = await rawTunnel(options)
    for (const target of ['*', `http://${raw.host}`]) {
      await raw.visit(
        `OPTIONS ${target} HTTP/1.1\r\nHost: ${raw.host}\r\n${preflight}Connection: close\r\n\r\n`,
      )
      const app = await raw.origin.accept()
      expect(await app.until('\r\n')).toBe(`OPTIONS ${path} HTTP/1.1\r\n`)
    }
  }
})

test('one that throws gives its visitor a 500 with a code, and affects no other', async () => {
  const failing = handles((request, next) => {
    const { pathname } = new URL(request.url)
    if (pathname === '/throw') throw new Error('secret detail')
    if (pathname === '/reject') return Promise.reject(new Error('secret detail'))
    // A plugin of a program without types.
    if (pathname === '/nothing') return undefined as unknown as Response
    if (pathname === '/twice') return next(request).then(() => next(request))
    if (pathname === '/status') return new Response(null, { status: 101 })
    return next(request)
  }, 'failing')
  await using tunnel = await start([failing])
  const faults: string[] = []
  tunnel.server.on('error', error => faults.push(error.message))
  for (const path of ['/throw', '/reject', '/nothing', '/twice', '/status']) {
    const answer = await ask(tunnel.port, tunnel.host, { path })
    expect(answer).toMatchObject({ status: 500, code: 'PLUGIN_FAILED' })
    expect(answer.body).not.toContain('secret detail')
  }
  expect(await ask(tunnel.port, tunnel.host, { path: '/sum' })).toMatchObject({ status: 200 })
  const action = 'Correct the plugin, or what it waits for.'
  expect(faults).toEqual([`The middleware "failing" failed: secret detail. ${action}`])
  await tunnel.server.stop()
  expect(faults[1]).toEndWith(` Failures since the last report: 4. ${action}`)
})

test('a target that is too long once it is a URL is the fault of the visitor, and of no middleware', async () => {
  await using tunnel = await start([handles((request, next) => next(request))])
  const faults: unknown[] = []
  tunnel.server.on('error', error => faults.push(error))
  const visitor = await rawDial(tunnel.port)
  // Each of them is three characters in a URL, so it is above the 16 KiB that a target may have.
  await visitor.send(`GET /${'"'.repeat(9_000)} HTTP/1.1\r\nHost: ${tunnel.host}\r\n\r\n`)
  expect(await visitor.until('\r\n\r\n')).toMatch(/ 414 .*x-localtunnels-error: TARGET_TOO_LONG/s)
  visitor.socket.terminate()
  expect(await ask(tunnel.port, tunnel.host, { path: '/sum' })).toMatchObject({ status: 200 })
  expect(faults).toEqual([])
})

test('one that never answers is given up, as the limits say', async () => {
  const limits = { originTimeoutMs: 50, guardTimeoutMs: 50 }
  await using tunnel = await start([handles(() => new Promise(() => {}))], { limits })
  expect(await ask(tunnel.port, tunnel.host)).toMatchObject({ status: 500, code: 'PLUGIN_FAILED' })
})

test('an app that cannot be had is a page that the middleware sees, and keeps its code', async () => {
  const statuses: number[] = []
  const watching = handles(async (request, next) => {
    const answer = await next(request)
    statuses.push(answer.status)
    return answer
  })
  const requests: (string | undefined)[] = []
  const free = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('') })
  const port = free.port ?? 0
  await free.stop(true)
  await using tunnel = await startTunnel({ port }, { server: { middlewares: [watching] } })
  tunnel.server.on('request', ({ error }) => void requests.push(error))
  expect(await ask(tunnel.port, tunnel.host)).toMatchObject({ status: 502, code: 'ORIGIN_REFUSED' })
  expect(statuses).toEqual([502])
  await eventually(() => requests.length === 1, 'the end to be known')
  expect(requests).toEqual(['ORIGIN_REFUSED'])
})

test('a visitor that leaves ends the exchange at the app and tells the middleware', async () => {
  let isAborted = false
  const watching = handles((request, next) => {
    request.signal.addEventListener('abort', () => {
      isAborted = true
    })
    return next(request)
  })
  await using tunnel = await start([watching])
  const leaving = new AbortController()
  const answer = await fetch(`http://127.0.0.1:${tunnel.port}/endless`, {
    headers: { host: tunnel.host },
    signal: leaving.signal,
  })
  await answer.body?.getReader().read()
  leaving.abort()
  await eventually(() => isAborted && tunnel.server.getStats().pendingResponses === 0, 'the end to be known')
})

test('a small answer on a connection whose visitor takes nothing is over when its end is sent', async () => {
  let answered = 0
  const counting = handles(async (request, next) => {
    const answer = await next(request)
    if (answer.status === 204) answered++
    return answer
  })
  await using site = await startHttp2Site(app.port ?? 0, { server: { middlewares: [counting] } })
  const peer = await H2Peer.connect(site.port)
  peer.grow(100_000_000)
  peer.send(head(1, get(site.host, '/endless')))
  peer.grow(100_000_000, 1)
  await peer.when(seen => seen.body(1).length > 0, 'the endless answer to begin')
  peer.socket.pause()
  const { server } = site
  // The kernel is full when the app is asked for no more.
  for (let before = -1; before !== pulls; await Bun.sleep(200)) before = pulls
  for (const stream of [3, 5, 7]) peer.send(head(stream, get(site.host, '/nothing')))
  await eventually(() => answered === 3, 'the small answers at the middleware')
  await eventually(() => server.getStats().pendingResponses === 1, 'all but the endless one to be over')
  peer.socket.destroy()
  await eventually(() => server.getStats().pendingResponses === 0, 'nothing to be left')
})

test('a request to switch protocols is one like others: it may be refused, and other tunnels do without it', async () => {
  const refusing: Middleware = { ...handles(() => new Response('no', { status: 403 })), tunnels: ['app'] }
  await using tunnel = await start([refusing])
  const other = await tunnel.client.http({ port: app.port ?? 0, subdomain: 'other' })
  expect(await ask(tunnel.port, tunnel.host)).toMatchObject({ status: 403 })
  expect(await ask(tunnel.port, `${other.name}.localhost`)).toMatchObject({ status: 200 })
  expect(await echoed(tunnel.port, tunnel.host)).toBe('closed')
  expect(await echoed(tunnel.port, `${other.name}.localhost`)).toBe('hello')
})

/** What a WebSocket of the app says to `hello`. */
function echoed(port: number, host: string): Promise<unknown> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/`, { headers: { host } })
  return new Promise(resolve => {
    socket.onopen = () => socket.send('hello')
    socket.onmessage = ({ data }) => {
      resolve(data)
      socket.close()
    }
    socket.onclose = () => resolve('closed')
  })
}

const upgrade = (to: string) => `Connection: Upgrade\r\nUpgrade: ${to}\r\n`

for (const [method, lines, body] of [
  ['GET', '', ''],
  ['POST', 'Content-Length: 7\r\n', '{"a":1}'],
] as const)
  test(`behind ${method} the 101 of the app passes, with what the middleware says, and bytes both ways`, async () => {
    const seen: unknown[] = []
    const stamp = handles(async (request, next) => {
      request.headers.set('x-checked', 'yes')
      const answer = await next(request)
      seen.push([request.headers.get('upgrade'), answer.status, answer.headers.get('x-app')])
      const stamped = new Response(answer.body, answer)
      stamped.headers.set('x-served-by', 'tunnel')
      return stamped
    })
    await using raw = await rawTunnel({ server: { middlewares: [stamp] } })
    const report = next(raw.tunnel.server, 'request')
    const visitor = await raw.visit(
      get1(raw.host, '/exec', upgrade('SPDY/3.1, tcp') + lines).replace('GET', method) + body,
    )
    const origin = await raw.origin.accept()
    const head = await origin.until('\r\n\r\n')
    expect([headerOf(head, 'upgrade'), headerOf(head, 'connection'), headerOf(head, 'x-checked')]).toEqual([
      'SPDY/3.1, tcp',
      'Upgrade',
      'yes',
    ])
    expect(await origin.exactly(body.length)).toBe(body)
    await origin.send(
      `HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 101 Switching Protocols\r\n${upgrade('tcp')}X-App: 1\r\n\r\n\0ready`,
    )
    const answer = await visitor.until('\r\n\r\n')
    expect(answer).toStartWith('HTTP/1.1 101 Switching Protocols\r\n')
    expect([headerOf(answer, 'upgrade'), headerOf(answer, 'x-app'), headerOf(answer, 'x-served-by')]).toEqual(
      ['tcp', '1', 'tunnel'],
    )
    expect(await visitor.exactly(6)).toBe('\0ready')
    expect(seen).toEqual([['SPDY/3.1, tcp', 101, '1']])
    await visitor.send('GET / HTTP/1.1\n')
    expect(await origin.exactly(15)).toBe('GET / HTTP/1.1\n')
    const large = 'x'.repeat(1_000_000)
    void origin.send(large)
    expect(await visitor.exactly(large.length)).toBe(large)
    // Half-closed.
    visitor.socket.end()
    await origin.end()
    await origin.send('the rest')
    origin.socket.end()
    expect(await visitor.end()).toBe('the rest')
    expect(await report).toMatchObject({ method, status: 101 })
  })

test('an app that does not switch answers, what ends at once ends, and a refused switch is cut at the app', async () => {
  const deciding = handles(async (request, next) => {
    const { pathname } = new URL(request.url)
    if (pathname === '/plain') request.headers.delete('upgrade')
    const answer = await next(request)
    if (pathname === '/own') return new Response(null, { status: 101 })
    return pathname === '/refused' ? new Response('not here', { status: 403 }) : answer
  })
  await using raw = await rawTunnel({ server: { middlewares: [deciding] } })
  raw.tunnel.server.on('error', () => {})
  const last = 'Connection: close\r\n'
  const switching = `HTTP/1.1 101 Switching Protocols\r\n${upgrade('tcp')}\r\n`
  const answered = async (path: string, bytes: string, ends = false) => {
    const visitor = await raw.visit(get1(raw.host, path, upgrade('tcp')))
    const origin = await raw.origin.accept()
    const head = await origin.until('\r\n\r\n')
    await origin.send(bytes)
    if (ends) origin.socket.end()
    return { visitor, origin, upgrade: headerOf(head, 'upgrade'), answer: await visitor.until('\r\n\r\n') }
  }
  const plain = await answered('/plain', ok('plain', last))
  expect([plain.upgrade, plain.answer.slice(9, 12)]).toEqual([undefined, '200'])
  const unwilling = await answered('/', ok('no', last))
  expect([unwilling.upgrade, unwilling.answer.slice(9, 12)]).toEqual(['tcp', '200'])
  const short = await answered('/', `${switching}bye`, true)
  expect(await short.visitor.exactly(3)).toBe('bye')
  short.visitor.socket.end()
  await short.visitor.closed()
  const refused = await answered('/refused', switching)
  expect(refused.answer.slice(9, 12)).toBe('403')
  await refused.origin.closed()
  const own = await answered('/own', ok('no', last))
  expect(own.answer).toContain('PLUGIN_FAILED')
  const odd = await answered('/', ok('odd').replace('200', '999'))
  expect(odd.answer).toContain('ORIGIN_INVALID')
})

test('a visitor of HTTP/2 has its WebSocket through a middleware', async () => {
  const stamp = handles(async (request, next) => {
    const answer = await next(request)
    answer.headers.set('x-served-by', 'tunnel')
    return answer
  })
  await using site = await startHttp2Site(app.port ?? 0, { server: { middlewares: [stamp] } })
  await using peer = await H2Peer.connect(site.port)
  const fields = get(site.host).filter(([name]) => name !== ':method')
  peer.send(head(1, [[':method', 'CONNECT'], [':protocol', 'websocket'], ...fields], false))
  await peer.when(seen => seen.field(1, ':status') !== undefined, 'the answer')
  expect([peer.seen.field(1, ':status'), peer.seen.field(1, 'x-served-by')]).toEqual(['200', 'tunnel'])
  // A masked text of one letter, by a mask of zeros.
  peer.send(frame(0, 0, 1, [0x81, 0x81, 0, 0, 0, 0, 0x68]))
  await peer.when(seen => seen.body(1).length >= 3, 'the echo')
  expect([...peer.seen.body(1)]).toEqual([0x81, 1, 0x68])
})
