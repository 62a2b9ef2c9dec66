// The server serves existing clients: a naive client of the JSON wire against a real server, visited over raw TCP.

import { describe, expect, test } from 'bun:test'
import type { TunnelServer } from '../../src/index.ts'
import type { Bounds } from '../../src/server/settings/bounds.ts'
import { type Answers, echo, type Message, NaiveJsonClient } from '../support/json-client.ts'
import { type RawConnection, rawDial } from '../support/raw.ts'
import { startServer } from '../support/tunnel.ts'

interface Ends extends AsyncDisposable {
  readonly server: TunnelServer
  readonly client: NaiveJsonClient
  /** Sends lines of a request head, a blank line and the body; returns the whole answer of a closed connection. */
  visit(head: string, body?: string): Promise<string>
}

async function start(answers: Answers = echo, limits: Partial<Bounds> = {}): Promise<Ends> {
  const server = await startServer({ limits })
  const client = new NaiveJsonClient(server.port, answers)
  await client.register('app')
  return {
    server,
    client,
    async visit(head, body = '') {
      const visitor = await rawDial(server.port)
      await visitor.send(`${head}\r\nConnection: close\r\n\r\n${body}`)
      const answer = await visitor.end()
      visitor.socket.terminate()
      return answer
    },
    async [Symbol.asyncDispose]() {
      client[Symbol.dispose]()
      await server.stop()
    },
  }
}

/** A client that keeps the requests to itself, and the first one as soon as it is there. */
function holding(): { readonly answers: Answers; readonly request: Promise<Message> } {
  const { promise, resolve } = Promise.withResolvers<Message>()
  return {
    request: promise,
    answers: request => {
      resolve(request)
      return undefined
    },
  }
}

const GET = 'GET / HTTP/1.1\r\nHost: app.localhost'
const seen = (answers: (request: Message) => Message = echo as never) => {
  const requests: Message[] = []
  const remember: Answers = request => {
    requests.push(request)
    return answers(request)
  }
  return { requests, remember }
}

describe('registration', () => {
  test('connected, ready, registered: as existing clients expect it', async () => {
    await using server = await startServer()
    using client = await new NaiveJsonClient(server.port).opened()
    expect((await client.next('connected')).type).toBe('connected')
    expect(await client.register('my-app')).toEqual({
      type: 'registered',
      subdomain: 'my-app',
      url: `http://my-app.localhost:${server.port}`,
    })
  })

  test('a taken name is refused, and the same socket may ask for another', async () => {
    await using ends = await start()
    using second = new NaiveJsonClient(ends.server.port)
    expect(await second.register('app')).toEqual({ type: 'subdomain_taken', subdomain: 'app' })
    expect((await second.register('app-2')).type).toBe('registered')
  })

  test('an invalid name is an error that leaves the socket open', async () => {
    await using ends = await start()
    using second = new NaiveJsonClient(ends.server.port)
    expect(await second.register('Not_Valid')).toEqual({ type: 'error', message: 'Invalid subdomain format' })
    expect((await second.register('valid')).type).toBe('registered')
  })

  for (const name of ['api', 'www', 'localhost']) {
    test(`defect 21: the name ${name} cannot be taken`, async () => {
      await using ends = await start()
      using second = new NaiveJsonClient(ends.server.port)
      expect((await second.register(name)).type).toBe('error')
    })
  }

  test('defect 19: without a token of the server nobody registers', async () => {
    await using server = await startServer({ tokens: ['secret'] })
    using client = await new NaiveJsonClient(server.port).opened()
    expect(client.isClosed).toBe(true)
    expect(server.getStats().totalConnections).toBe(0)
  })

  test('defect 14: several names on one socket all work and none is left behind', async () => {
    await using ends = await start(request => ({ status: 200, body: String(request.id) }))
    await ends.client.register('other')
    expect(await ends.visit(GET)).toEndWith('\r\n\r\n1')
    expect(await ends.visit('GET / HTTP/1.1\r\nHost: other.localhost')).toEndWith('\r\n\r\n2')
    const freed = Promise.withResolvers<void>()
    ends.server.on('disconnection', ({ subdomain }) => subdomain === 'other' && freed.resolve())
    ends.client[Symbol.dispose]()
    await freed.promise
    expect(ends.server.getStats(true).subdomains).toEqual([])
  })

  test('disconnect frees the name at once and closes with 1000', async () => {
    await using ends = await start()
    ends.client.send({ type: 'disconnect', subdomain: 'app' })
    expect(await ends.client.closed()).toBe(1000)
    using next = new NaiveJsonClient(ends.server.port)
    expect((await next.register('app')).type).toBe('registered')
  })

  test("defect 15: a disconnect with another client's name changes nothing", async () => {
    await using ends = await start()
    using stranger = new NaiveJsonClient(ends.server.port)
    await stranger.register('stranger')
    stranger.send({ type: 'disconnect', subdomain: 'app' })
    stranger.send({ type: 'ping' })
    await stranger.next('pong')
    expect(ends.server.getStats(true)).toMatchObject({ connections: 2, subdomains: ['app', 'stranger'] })
    expect(await ends.visit(GET)).toStartWith('HTTP/1.1 200')
  })

  test('a silent stranger is closed after the register timeout', async () => {
    await using server = await startServer({ limits: { registerTimeoutMs: 1 } })
    using client = await new NaiveJsonClient(server.port).opened()
    expect(await client.closed()).toBe(1008)
    expect(server.getStats().connections).toBe(0)
  })
})

describe('the name after a lost connection', () => {
  /** Registers over a raw socket, which then answers no ping: as if its machine had vanished. */
  async function vanished(server: TunnelServer, ...headers: readonly string[]): Promise<RawConnection> {
    const raw = await rawDial(server.port)
    await raw.send(
      'GET /?subdomain=app HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
        headers.map(line => `${line}\r\n`).join('') +
        'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
    )
    const ready = '{"type":"ready","subdomain":"app"}'
    // Masked with zeros.
    await raw.send(Buffer.concat([Buffer.from([0x81, 0x80 | ready.length, 0, 0, 0, 0]), Buffer.from(ready)]))
    await raw.until('"registered"')
    return raw
  }

  test('defect 2: goes to the same address again when the old holder answers no ping', async () => {
    await using server = await startServer()
    const old = await vanished(server)
    using client = new NaiveJsonClient(server.port)
    expect((await client.register('app')).type).toBe('registered')
    expect(server.getStats(true).subdomains).toEqual(['app'])
    old.socket.terminate()
  })

  test("does not go to another tenant's token, from the same address as it is; to its own it does", async () => {
    await using server = await startServer({ tokens: ['mine', 'theirs'] })
    const old = await vanished(server, 'Authorization: Bearer mine')
    using thief = new NaiveJsonClient(server.port, undefined, undefined, 'theirs')
    expect((await thief.register('app')).type).toBe('subdomain_taken')
    using owner = new NaiveJsonClient(server.port, undefined, undefined, 'mine')
    expect((await owner.register('app')).type).toBe('registered')
    old.socket.terminate()
  })

  test('without tokens does not go to another client behind the same proxy', async () => {
    await using server = await startServer({ trustedProxies: ['127.0.0.1'] })
    const old = await vanished(server)
    using other = new NaiveJsonClient(server.port)
    expect((await other.register('app')).type).toBe('subdomain_taken')
    old.socket.terminate()
  })

  test('without tokens, by way of a proxy, goes to the same address that the proxy names', async () => {
    await using server = await startServer({ trustedProxies: ['127.0.0.1'] })
    const old = await vanished(server, 'X-Forwarded-For: 203.0.113.7')
    const from = (address: string) =>
      new NaiveJsonClient(server.port, undefined, undefined, undefined, { 'x-forwarded-for': address })
    using other = from('203.0.113.8')
    expect((await other.register('app')).type).toBe('subdomain_taken')
    using owner = from('203.0.113.7')
    expect((await owner.register('app')).type).toBe('registered')
    old.socket.terminate()
  })

  test('stays with a holder that lives', async () => {
    await using ends = await start()
    using client = new NaiveJsonClient(ends.server.port)
    expect((await client.register('app')).type).toBe('subdomain_taken')
    expect(await ends.visit(GET)).toStartWith('HTTP/1.1 200')
  })

  test('a silent client is asked for a sign of life', async () => {
    await using server = await startServer({ limits: { pingIntervalMs: 20 } })
    const silent = await vanished(server)
    await silent.until('\x89\x00')
    silent.socket.terminate()
  })

  test('a holder that answers no ping for too long is gone by itself', async () => {
    await using server = await startServer({ limits: { pingIntervalMs: 20, deadAfterMs: 60 } })
    const gone = Promise.withResolvers<string>()
    server.on('disconnection', ({ reason }) => gone.resolve(reason))
    const old = await vanished(server)
    expect(await gone.promise).toBe('CARRIER_LOST')
    old.socket.terminate()
  })
})

describe('a request', () => {
  test('carries method, path and query as sent, and headers in lower case', async () => {
    const { requests, remember } = seen()
    await using ends = await start(remember)
    await ends.visit(
      'GET /a/../b//%2F?x=%20&y HTTP/1.1\r\nHost: app.localhost\r\nX-Custom: One\r\nAccept: a\r\nAccept: b',
    )
    expect(requests).toEqual([
      {
        type: 'request',
        id: 1,
        method: 'GET',
        path: '/a/../b//%2F?x=%20&y',
        headers: expect.objectContaining({ 'x-custom': 'One', accept: 'a, b' }),
      },
    ])
  })

  test('has ids that are numbers and count from 1', async () => {
    const { requests, remember } = seen()
    await using ends = await start(remember)
    await ends.visit(GET)
    await ends.visit(GET)
    expect(requests.map(one => one.id)).toEqual([1, 2])
  })

  test('defect 10 and 16: tells where it came from, and no hop-by-hop header of the visitor', async () => {
    const { requests, remember } = seen()
    await using ends = await start(remember)
    await ends.visit(
      'GET / HTTP/1.1\r\nHost: App.localhost:80\r\nX-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Host: evil\r\nTE: trailers\r\n' +
        'Keep-Alive: x\r\nProxy-Authorization: x\r\nX-Hop: x\r\nConnection: X-Hop',
    )
    const headers = requests[0]?.headers as Message // as the wire describes it
    expect(headers).toEqual({
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-host': 'App.localhost:80',
      'x-forwarded-proto': 'http',
      forwarded: 'for=127.0.0.1;host="App.localhost:80";proto=http',
    })
  })

  test('has its text as text, and anything else in base64', async () => {
    const { requests, remember } = seen()
    await using ends = await start(remember)
    const post = (type: string) => `POST / HTTP/1.1\r\nHost: app.localhost\r\n${type}`
    await ends.visit(`${post('Content-Type: application/json')}\r\nContent-Length: 7`, '{"a":1}')
    await ends.visit(`${post('Content-Type: image/png')}\r\nContent-Length: 2`, '\x00\xff')
    await ends.visit(`${post('X-No-Type: here')}\r\nContent-Length: 2`, 'ab')
    await ends.visit(`${post('Content-Type: text/plain')}\r\nContent-Length: 0`)
    expect(requests.map(({ body, isBase64Encoded }) => [body, isBase64Encoded])).toEqual([
      ['{"a":1}', undefined],
      ['AP8=', true],
      ['YWI=', true],
      ['', undefined],
    ])
  })

  test('defect 9: text that is not UTF-8 goes in base64, unharmed', async () => {
    const { requests, remember } = seen()
    await using ends = await start(remember)
    await ends.visit(
      'POST / HTTP/1.1\r\nHost: app.localhost\r\nContent-Type: text/plain; charset=latin1\r\nContent-Length: 4',
      'caf\xe9',
    )
    expect(requests[0]).toMatchObject({ body: 'Y2Fm6Q==', isBase64Encoded: true })
  })

  test('loses the framing of its chunks, not a byte of its body', async () => {
    const { requests, remember } = seen()
    await using ends = await start(remember)
    const head =
      'POST / HTTP/1.1\r\nHost: app.localhost\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked'
    expect(
      await ends.visit(head, '5\r\nhello\r\n6;x\r\n world\r\n0\r\nTrailer: dropped\r\n\r\n'),
    ).toStartWith('HTTP/1.1 200')
    expect(requests[0]).toMatchObject({ body: 'hello world' })
    expect(requests[0]?.headers).not.toHaveProperty('transfer-encoding')
  })

  test('that expects 100-continue gets it before its body', async () => {
    await using ends = await start(request => ({ status: 200, body: request.body }))
    const visitor = await rawDial(ends.server.port)
    await visitor.send(
      'POST / HTTP/1.1\r\nHost: app.localhost\r\nContent-Type: text/plain\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n',
    )
    await visitor.until('HTTP/1.1 100 Continue\r\n\r\n')
    await visitor.send('ok')
    expect(await visitor.until('\r\n\r\nok')).toStartWith('HTTP/1.1 200 OK')
    visitor.socket.terminate()
  })

  test('with a header called __proto__ arrives whole', async () => {
    const { requests, remember } = seen()
    await using ends = await start(remember)
    await ends.visit(`${GET}\r\n__proto__: polluted\r\nconstructor: x`)
    expect(Object.entries(requests[0]?.headers as Message)).toContainEqual(['__proto__', 'polluted'])
    expect(({} as Message).polluted).toBeUndefined()
  })

  test('has its raw bytes escaped in the path, and its framing left out of the headers', async () => {
    const { requests, remember } = seen()
    await using ends = await start(remember)
    await ends.visit(
      'POST /caf\xc3\xa9 HTTP/1.1\r\nHost: app.localhost\r\nContent-Length: 1\r\nExpect: other',
      'x',
    )
    expect(requests[0]).toMatchObject({ path: '/caf%C3%A9' })
    expect(Object.keys(requests[0]?.headers as Message).every(name => /forwarded/.test(name))).toBe(true)
  })

  test('many of one tick reach the client, each answered as its own', async () => {
    await using ends = await start(request => ({ status: 200, body: String(request.path) }))
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, index) => ends.visit(`GET /${index} HTTP/1.1\r\nHost: app.localhost`)),
    )
    expect(answers.every((answer, index) => answer.endsWith(`\r\n\r\n/${index}`))).toBe(true)
  })

  test('too large for a message is 413, told as soon as its length is', async () => {
    await using ends = await start(echo, { maxMessageBytes: 1_000_000 })
    const tooLong = 'POST / HTTP/1.1\r\nHost: app.localhost\r\nContent-Length: 700000'
    expect(await ends.visit(tooLong)).toContain('413')
    const visitor = await rawDial(ends.server.port)
    await visitor.send('POST / HTTP/1.1\r\nHost: app.localhost\r\nTransfer-Encoding: chunked\r\n\r\n')
    await visitor.send(`aae60\r\n${'x'.repeat(0xaae60)}\r\n0\r\n\r\n`)
    expect(await visitor.until('BODY_TOO_LARGE')).toContain('413')
    visitor.socket.terminate()
  })

  test('as large as a message can hold arrives, also text whose escapes would make it too long', async () => {
    await using ends = await start(
      request => ({
        status: 200,
        body: `${String(request.isBase64Encoded)} ${Buffer.from(String(request.body), 'base64').length}`,
      }),
      { maxMessageBytes: 1_000_000 },
    )
    const head =
      'POST / HTTP/1.1\r\nHost: app.localhost\r\nContent-Type: text/plain\r\nContent-Length: 600000'
    expect(await ends.visit(head, '\x01'.repeat(600_000))).toEndWith('\r\n\r\ntrue 600000')
  })

  for (const [what, head] of [
    ['defect 11: a WebSocket of the app', `${GET}\r\nUpgrade: websocket\r\nConnection: Upgrade, close`],
    ['a GET with a body', `${GET}\r\nContent-Length: 1`],
    ['OPTIONS *', 'OPTIONS * HTTP/1.1\r\nHost: app.localhost'],
  ] as const) {
    test(`that the wire cannot carry is 501: ${what}`, async () => {
      const { requests, remember } = seen()
      await using ends = await start(remember)
      expect(await ends.visit(head, head.endsWith(': 1') ? 'x' : '')).toMatch(
        /^HTTP\/1.1 501 [\s\S]*WIRE_UNSUPPORTED/,
      )
      expect(requests).toEqual([])
    })
  }

  test("defect 12: /status, /health and /metrics on a tunnel's host are the app's", async () => {
    await using ends = await start()
    for (const path of ['/status', '/health', '/metrics', '/tls-check', '/devtools']) {
      expect(await ends.visit(`GET ${path} HTTP/1.1\r\nHost: app.localhost`)).toEndWith(`\r\n\r\nGET ${path}`)
    }
  })
})

describe('an answer', () => {
  const answered = async (answer: Message, head = GET): Promise<string> => {
    await using ends = await start(() => answer)
    return await ends.visit(head)
  }

  test('keeps its status, headers and body', async () => {
    const answer = await answered({
      status: 418,
      headers: { 'X-Mixed-Case': 'a, b', etag: '"x"' },
      body: 'short',
    })
    expect(answer).toBe(
      'HTTP/1.1 418 I\'m a Teapot\r\nX-Mixed-Case: a, b\r\netag: "x"\r\nContent-Length: 5\r\nConnection: close\r\n\r\nshort',
    )
  })

  test('in base64 is decoded', async () => {
    expect(await answered({ status: 200, body: 'AAH/', isBase64Encoded: true })).toEndWith(
      '\r\n\r\n\x00\x01\xff',
    )
  })

  test('without headers and body is fine, as existing servers take it', async () => {
    expect(await answered({ status: 200 })).toContain('Content-Length: 0\r\n')
  })

  test('defect 3: keeps each of several Set-Cookie that differ in case', async () => {
    const headers = { 'set-cookie': 'a=1', 'Set-cookie': 'b=2', 'SET-COOKIE': 'c=3' }
    expect((await answered({ status: 200, headers })).match(/set-cookie: .=./gi)).toHaveLength(3)
  })

  test('cannot set its own length, coding or connection', async () => {
    const headers = {
      'Content-Length': '99',
      'Transfer-Encoding': 'chunked',
      Connection: 'X-Hop',
      'x-hop': '1',
      Upgrade: 'h2c',
    }
    expect(await answered({ status: 200, headers, body: 'hi' })).toBe(
      'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi',
    )
  })

  test('defect 8: to HEAD keeps the length that the client knows', async () => {
    const head = 'HEAD / HTTP/1.1\r\nHost: app.localhost'
    const known = await answered(
      { status: 200, headers: { 'content-length': '123' }, body: 'not sent' },
      head,
    )
    expect(known).toContain('Content-Length: 123\r\n')
    expect(known).toEndWith('\r\n\r\n')
    expect(await answered({ status: 200, headers: { 'content-length': '1\r\n2' } }, head)).toStartWith(
      'HTTP/1.1 502',
    )
    expect(await answered({ status: 200 }, head)).not.toContain('Content-Length')
  })

  for (const status of [204, 304]) {
    test(`with status ${status} has no body and no length`, async () => {
      const answer = await answered({ status, body: 'none of this' })
      expect(answer).not.toContain('Content-Length')
      expect(answer).toEndWith('\r\n\r\n')
    })
  }

  test('lets the connection go on, for HTTP/1.0 when it asks', async () => {
    await using ends = await start()
    const visitor = await rawDial(ends.server.port)
    await visitor.send(`${GET}\r\n\r\n`)
    expect(await visitor.until('GET /')).not.toContain('Connection')
    await visitor.send('GET /2 HTTP/1.0\r\nHost: app.localhost\r\nConnection: keep-alive\r\n\r\n')
    expect(await visitor.until('GET /2')).toContain('Connection: keep-alive')
    visitor.socket.terminate()
  })

  test('of several MB reaches a visitor who closes behind it', async () => {
    const body = Buffer.alloc(5_000_000, 'large ')
    const answer = await answered({ status: 200, body: body.toString('base64'), isBase64Encoded: true })
    expect(answer.slice(answer.indexOf('\r\n\r\n') + 4)).toBe(body.toString('latin1'))
  })

  for (const [what, message] of [
    ['a status below 200', { status: 101 }],
    ['a status above 999', { status: 1000 }],
    ['a status that is no number', { status: '200' }],
    ['no status', {}],
    ['a line end in a value', { status: 200, headers: { a: 'b\r\nc: d' } }],
    ['a NUL in a value', { status: 200, headers: { a: '\0' } }],
    ['a name that is no name', { status: 200, headers: { 'a b': 'c' } }],
    ['headers that are no object', { status: 200, headers: 'a: b' }],
    ['a header that is no text', { status: 200, headers: { a: { b: 1 } } }],
    ['a body that is no text', { status: 200, body: { a: 1 } }],
    ['base64 that is none', { status: 200, body: '!!!!', isBase64Encoded: true }],
    [
      'more headers than an origin may send',
      { status: 200, headers: Object.fromEntries(Array.from({ length: 201 }, (_, i) => [`h${i}`, '1'])) },
    ],
    ['a head of 1 MB', { status: 200, headers: { a: 'x'.repeat(1_000_000) } }],
  ] as const) {
    test(`defect 13: with ${what} is 502 at once`, async () => {
      expect(await answered(message)).toMatch(/^HTTP\/1.1 502 [\s\S]*ORIGIN_INVALID/)
    })
  }

  test('that names why there is none becomes the page of that code, if it is about the origin', async () => {
    expect(await answered({ status: 502, error: 'ORIGIN_REFUSED', body: 'x' })).toContain('ORIGIN_REFUSED')
    expect(await answered({ status: 502, error: 'SERVER_DRAINING', body: 'x' })).toEndWith('\r\n\r\nx')
    expect(await answered({ status: 502, error: '__proto__', body: 'x' })).toEndWith('\r\n\r\nx')
  })
})

describe('an answer that does not come', () => {
  test('is 504 after the origin timeout; when it comes late it is dropped', async () => {
    const { answers, request } = holding()
    await using ends = await start(answers, { originTimeoutMs: 1 })
    expect(await ends.visit(GET)).toMatch(/^HTTP\/1.1 504 [\s\S]*ORIGIN_TIMEOUT/)
    ends.client.send({ type: 'response', id: (await request).id, status: 200, body: 'late' })
    ends.client.send({ type: 'ping' })
    await ends.client.next('pong')
    expect(ends.server.getStats().pendingResponses).toBe(0)
  })

  test('is 502 at once when the client goes', async () => {
    const { answers, request } = holding()
    await using ends = await start(answers)
    const answer = ends.visit(GET)
    await request
    ends.client[Symbol.dispose]()
    expect(await answer).toMatch(/^HTTP\/1.1 502 [\s\S]*CLIENT_GONE/)
    expect(await ends.visit(GET)).toStartWith('HTTP/1.1 404')
  })

  test('is 502 at once also while the request is still arriving', async () => {
    await using ends = await start()
    const visitor = await rawDial(ends.server.port)
    await visitor.send(
      'POST / HTTP/1.1\r\nHost: app.localhost\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n',
    )
    await visitor.until('100 Continue\r\n\r\n')
    ends.client[Symbol.dispose]()
    expect(await visitor.until('CLIENT_GONE')).toStartWith('HTTP/1.1 502')
    visitor.socket.terminate()
  })

  test('a visitor who left before is forgotten, and the late answer dropped', async () => {
    const { answers, request } = holding()
    await using ends = await start(answers)
    const visitor = await rawDial(ends.server.port)
    await visitor.send(`${GET}\r\n\r\n`)
    const { id } = await request
    const left = Promise.withResolvers<string | undefined>()
    ends.server.on('request', ({ error }) => left.resolve(error))
    visitor.socket.terminate()
    expect(await left.promise).toBe('CANCELLED')
    ends.client.send({ type: 'response', id, status: 200, body: 'late' })
    ends.client.send({ type: 'ping' })
    await ends.client.next('pong')
    expect(ends.server.getStats()).toMatchObject({ pendingResponses: 0, connections: 1 })
  })

  test('draining waits for it and leaves the client its socket until then', async () => {
    const { answers, request } = holding()
    const ends = await start(answers)
    const answer = ends.visit(GET)
    const { id } = await request
    const stopped = ends.server.stop()
    ends.client.send({ type: 'ping' })
    await ends.client.next('pong')
    ends.client.send({ type: 'response', id, status: 200, body: 'in time' })
    expect(await answer).toEndWith('\r\n\r\nin time')
    await stopped
    expect(await ends.client.closed()).toBe(1001)
  })
})

describe('a hostile client', () => {
  test("defect 20: cannot answer another client's request, registered or not", async () => {
    const { answers, request } = holding()
    await using ends = await start(answers)
    using registered = new NaiveJsonClient(ends.server.port)
    using unregistered = await new NaiveJsonClient(ends.server.port).opened()
    await registered.register('mallory')
    const answer = ends.visit(GET)
    const { id } = await request
    for (const mallory of [registered, unregistered]) {
      for (const forged of [id, String(id), Number(id) + 1])
        mallory.send({ type: 'response', id: forged, status: 200, body: 'forged' })
      mallory.send({ type: 'ping' })
      await mallory.next('pong')
    }
    ends.client.send({ type: 'response', id, status: 200, body: 'genuine' })
    expect(await answer).toEndWith('\r\n\r\ngenuine')
  })

  test('an id that was not given, or answered before, is ignored', async () => {
    await using ends = await start()
    await ends.visit(GET)
    for (const id of [1, 2, -1, 1.5, null, '1', {}, '__proto__'])
      ends.client.send({ type: 'response', id, status: 200 })
    expect(await ends.visit(GET)).toEndWith('\r\n\r\nGET /')
  })

  test('nonsense is ignored, as existing servers do', async () => {
    await using ends = await start()
    for (const nonsense of [
      '',
      '{',
      'null',
      '[]',
      '"ping"',
      '{"type":1}',
      '{"type":"unknown"}',
      '{"__proto__":{"type":"ping"}}',
      '{"type":"ready"}',
      '{"type":"ready","subdomain":{}}',
      `{"type":${'['.repeat(100_000)}`,
    ]) {
      ends.client.send(nonsense)
    }
    expect(await ends.visit(GET)).toEndWith('\r\n\r\nGET /')
    expect(({} as Message).type).toBeUndefined()
  })

  test('a binary message closes its connection', async () => {
    await using ends = await start()
    ends.client.sendBytes(new Uint8Array(8))
    expect(await ends.client.closed()).toBe(1003)
  })

  test('a flood of messages closes its connection', async () => {
    await using ends = await start()
    for (let count = 0; count < 300; count++) ends.client.send({ type: 'ping' })
    await ends.client.closed()
    expect(await ends.visit(GET)).toStartWith('HTTP/1.1 404')
  })

  test('a large message before a name was granted closes its connection', async () => {
    await using ends = await start()
    using stranger = await new NaiveJsonClient(ends.server.port).opened()
    stranger.send({ type: 'ready', subdomain: 'x'.repeat(100_000) })
    await stranger.closed()
    expect(ends.server.getStats().connections).toBe(1)
  })

  test('a message over the limit closes its connection, and its visitors learn so', async () => {
    await using ends = await start(() => ({ status: 200, body: 'x'.repeat(300_000) }), {
      maxMessageBytes: 200_000,
    })
    expect(await ends.visit(GET)).toMatch(/^HTTP\/1.1 502 [\s\S]*CLIENT_GONE/)
    expect(await ends.client.closed()).toBe(1009)
  })

  test('cannot hold names without end', async () => {
    await using ends = await start(echo, { maxTunnels: 10 })
    const verdicts: unknown[] = []
    for (let count = 0; count < 20; count++) verdicts.push((await ends.client.register(`name-${count}`)).type)
    expect(verdicts.filter(verdict => verdict === 'registered')).toHaveLength(9)
  })

  test('a browser page cannot be a client', async () => {
    await using server = await startServer()
    const visitor = await rawDial(server.port)
    await visitor.send(
      'GET /?subdomain=app HTTP/1.1\r\nHost: localhost\r\nOrigin: https://evil.example\r\nConnection: Upgrade\r\n' +
        'Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
    )
    expect(await visitor.until('\r\n\r\n')).toStartWith('HTTP/1.1 403')
    visitor.socket.terminate()
  })
})

test('an upload that stops is over after headTimeoutMs: the wire carries whole bodies only', async () => {
  await using server = await startServer({ limits: { headTimeoutMs: 300 } })
  using client = new NaiveJsonClient(server.port)
  await client.register('app')
  const raw = await rawDial(server.port)
  await raw.send('POST / HTTP/1.1\r\nHost: app.localhost\r\nContent-Length: 8\r\n\r\nhalf')
  const answer = await raw.end()
  expect(answer).toStartWith('HTTP/1.1 408 ')
  expect(answer).toContain('REQUEST_TIMEOUT')
})

test.each([
  // In all more than two messages, the bound of one client.
  { name: 'few large', count: 4, bytes: 600_000 },
  { name: 'many small', count: 25, bytes: 100_000 },
])('$name uploads that one visitor does not finish shut no other out', async ({ count, bytes }) => {
  await using server = await startServer({
    trustedProxies: ['127.0.0.1'],
    limits: { maxMessageBytes: 1_000_000 },
  })
  using client = new NaiveJsonClient(server.port)
  await client.register('app')
  const upload = async (from: string, length: number, sent: number) => {
    const visitor = await rawDial(server.port)
    await visitor.send(
      `POST / HTTP/1.1\r\nHost: app.localhost\r\nX-Forwarded-For: ${from}\r\nContent-Length: ${length}\r\n\r\n`,
    )
    await visitor.send('x'.repeat(sent))
    return visitor
  }
  const stalled: RawConnection[] = []
  for (let index = 0; index < count; index++)
    stalled.push(await upload(`192.0.2.${index}, 203.0.113.7`, bytes + 1, bytes))
  for (const [from, length] of [
    ['203.0.113.8', 0],
    ['203.0.113.9', 10],
    ['203.0.113.10', 400_000],
  ] as const) {
    const other = await upload(from, length, length)
    expect(await other.until('\r\n')).toStartWith('HTTP/1.1 200 ')
    other.socket.terminate()
  }
  const refused = stalled.filter(({ text }) => text.startsWith('HTTP/1.1 503 '))
  expect(refused.length).toBeGreaterThan(0)
  expect(refused.length).toBeLessThan(stalled.length)
  for (const { socket } of stalled) socket.terminate()
})
