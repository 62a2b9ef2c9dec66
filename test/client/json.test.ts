// The client speaks to existing servers: a real client against a naive server of the JSON wire and a real origin.

import { describe, expect, test } from 'bun:test'
import type { TunnelClientOptions } from '../../src/client/options.ts'
import { TunnelClient } from '../../src/index.ts'
import type { Message } from '../support/json-client.ts'
import { NaiveJsonServer, type NaiveJsonServerOptions } from '../support/json-server.ts'
import { RawOrigin } from '../support/raw.ts'
import { startServer } from '../support/tunnel.ts'
import { within } from '../support/within.ts'

interface Ends extends AsyncDisposable {
  readonly server: NaiveJsonServer
  readonly client: TunnelClient
}

async function start(origin: TunnelClientOptions, options: NaiveJsonServerOptions = {}): Promise<Ends> {
  const server = new NaiveJsonServer(options)
  const client = new TunnelClient({
    server: `ws://127.0.0.1:${server.port}`,
    host: '127.0.0.1',
    subdomain: 'app',
    ...origin,
  })
  await client.connect()
  return {
    server,
    client,
    async [Symbol.asyncDispose]() {
      await client.disconnect()
      server[Symbol.dispose]()
    },
  }
}

/** An origin that answers every request with exactly these bytes, and remembers what it got. */
async function answering(
  bytes: string | Uint8Array,
  requests = 1,
): Promise<{ origin: RawOrigin; heads: Promise<string[]> }> {
  const origin = new RawOrigin()
  const heads = (async () => {
    const connection = await origin.accept()
    const got: string[] = []
    for (let count = 0; count < requests; count++) {
      got.push(await connection.until('\r\n\r\n'))
      await connection.send(bytes)
    }
    return got
  })()
  return { origin, heads }
}

const HELLO = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello'
const text = (body: string) => new Response(body, { headers: { 'content-type': 'text/plain' } })
function refuse(send: (message: unknown) => void, message: string): true {
  send({ type: 'error', message })
  return true
}

const idle = { fetch: () => new Response('unused') }

describe('joining an existing server', () => {
  for (const wire of ['auto', 'json'] as const) {
    test(`with --wire ${wire}: dials with the name, sends ready, takes what was registered`, async () => {
      await using ends = await start({ ...idle, wire })
      expect(ends.server.queries).toEqual(['?subdomain=app'])
      expect(ends.server.received[0]).toMatchObject({ type: 'ready', subdomain: 'app' })
      expect(ends.client.getSubdomain()).toBe('app')
      expect(ends.client.getTunnelUrl()).toBe('http://app.example')
    })
  }

  test('a server that echoes subprotocols is not taken for one of the streams wire', async () => {
    await using ends = await start({ fetch: () => new Response('hello'), wire: 'auto' })
    expect(await ends.server.ask({ path: '/' })).toMatchObject({ status: 200 })
    const client = new TunnelClient({
      ...idle,
      server: `127.0.0.1:${ends.server.port}`,
      wire: 'streams',
      reconnect: false,
    })
    expect(await client.connect().catch((error: unknown) => error)).toMatchObject({ code: 'SERVER_REFUSED' })
  })

  test('a server of ours gives it the streams wire when it may', async () => {
    await using server = await startServer()
    const connected = Promise.withResolvers<string>()
    await using client = new TunnelClient({ ...idle, server: `127.0.0.1:${server.port}` })
    client.on('connected', ({ wire }) => connected.resolve(wire))
    await client.connect()
    expect(await connected.promise).toBe('streams')
  })

  test('the token goes into the Authorization header', async () => {
    await using ends = await start({ ...idle, token: 'secret' })
    expect(ends.server.authorizations).toEqual(['Bearer secret'])
  })

  test('a taken name is asked for again with a number, on the same connection', async () => {
    const taken = new Set(['app', 'app-2'])
    await using ends = await start(idle, {
      ready(name, send) {
        if (!taken.has(name)) return false
        send({ type: 'subdomain_taken', subdomain: name })
        return true
      },
    })
    expect(ends.client.getSubdomain()).toBe('app-3')
    expect(ends.server.queries).toHaveLength(1)
  })

  for (const [message, code] of [
    ['Invalid subdomain format', 'NAME_INVALID'],
    ['Connection limit reached', 'CLIENT_LIMIT'],
    ['whatever', 'SERVER_REFUSED'],
  ] as const) {
    test(`defect 18: the error "${message}" rejects with ${code}, and nothing goes on behind it`, async () => {
      const refused = start(idle, { ready: (_, send) => refuse(send, message) })
      expect(await refused.catch((error: unknown) => error)).toMatchObject({ code })
    })
  }

  test('a connection that closes before registration rejects', async () => {
    const server = new NaiveJsonServer({ ready: () => server.cut() })
    const client = new TunnelClient({ ...idle, server: `127.0.0.1:${server.port}` })
    expect(await client.connect().catch((error: unknown) => error)).toMatchObject({ code: 'CARRIER_LOST' })
    expect(client.getState()).toBe('idle')
    server[Symbol.dispose]()
  })

  test('leaving says disconnect, and the server closes', async () => {
    const ends = await start(idle)
    await ends.client.disconnect()
    expect(await ends.server.heard('disconnect')).toEqual({ type: 'disconnect', subdomain: 'app' })
    await ends.server.heard('(closed)')
    ends.server[Symbol.dispose]()
  })

  test('it pings while nothing happens', async () => {
    await using ends = await start({ ...idle, pingIntervalMs: 5 })
    expect(await ends.server.heard('ping')).toEqual({ type: 'ping' })
  })

  test('defect 1: after a reconnect it serves on, under its name', async () => {
    await using ends = await start({ fetch: () => text('again') })
    const back = Promise.withResolvers<string>()
    ends.client.on('connected', ({ subdomain }) => back.resolve(subdomain))
    ends.server.cut()
    expect(await within(back.promise, 'the reconnect')).toBe('app')
    expect(await ends.server.ask({})).toMatchObject({ status: 200, body: 'again' })
  })
})

describe('a request reaches the origin', () => {
  test('with its method, path, headers and body, and the Host that the visitor asked for', async () => {
    const { origin, heads } = await answering(HELLO)
    await using ends = await start({ port: origin.port })
    await ends.server.ask({
      method: 'POST',
      path: '/a/../b?x=%20',
      headers: { 'x-forwarded-host': 'app.example:8080', 'content-type': 'text/plain', 'x-custom': 'a, b' },
      body: 'héllo',
    })
    expect((await heads)[0]).toBe(
      'POST /a/../b?x=%20 HTTP/1.1\r\nHost: app.example:8080\r\nx-forwarded-host: app.example:8080\r\n' +
        'content-type: text/plain\r\nx-custom: a, b\r\nContent-Length: 6\r\n\r\n',
    )
    origin[Symbol.dispose]()
  })

  test('with another Host and Origin when the user wants so', async () => {
    const { origin, heads } = await answering(HELLO)
    await using ends = await start({ port: origin.port, hostHeader: 'rewrite' })
    await ends.server.ask({ headers: { 'x-forwarded-host': 'app.example', origin: 'https://app.example' } })
    expect((await heads)[0]).toContain(`Host: 127.0.0.1:${origin.port}\r\n`)
    expect((await heads)[0]).toContain(`origin: http://127.0.0.1:${origin.port}\r\n`)
    origin[Symbol.dispose]()
  })

  test('on a kept connection, and on a fresh one when that has gone stale', async () => {
    const origin = new RawOrigin()
    await using ends = await start({ port: origin.port })
    const first = ends.server.ask({ path: '/1' })
    const connection = await origin.accept()
    await connection.until('\r\n\r\n')
    await connection.send(HELLO)
    await first
    const second = ends.server.ask({ path: '/2' })
    expect(await connection.until('\r\n\r\n')).toStartWith('GET /2')
    connection.socket.terminate()
    const fresh = await origin.accept()
    expect(await fresh.until('\r\n\r\n')).toStartWith('GET /2')
    await fresh.send(HELLO)
    expect(await second).toMatchObject({ status: 200, body: 'hello' })
    origin[Symbol.dispose]()
  })

  test('defect 23: a hostile server cannot make it anything else', async () => {
    const origin = new RawOrigin()
    await using ends = await start({ port: origin.port })
    for (const hostile of [
      { path: '@evil.example/' },
      { path: 'http://evil.example/' },
      { path: '' },
      { path: '/ HTTP/1.1\r\nHost: evil.example\r\n\r\nGET /' },
      { path: '/a b' },
      { path: '/\u{1f600}' },
      { method: 'CONNECT', path: '/' },
      { method: 'GET / HTTP/1.1\r\nX:' },
      { method: 'POST', body: '!', isBase64Encoded: true },
    ]) {
      expect(await ends.server.ask(hostile)).toMatchObject({ status: 400, error: 'BAD_REQUEST' })
    }
    expect(origin.connections).toHaveLength(0)
    origin[Symbol.dispose]()
  })

  test('with headers that cannot frame it anew', async () => {
    const { origin, heads } = await answering(HELLO)
    await using ends = await start({ port: origin.port })
    await ends.server.ask({
      headers: {
        'Transfer-Encoding': 'chunked',
        'content-length': '5',
        Host: 'evil',
        connection: 'x',
        'x-forwarded-host': 'a b',
      },
    })
    expect((await heads)[0]).toBe(
      `GET / HTTP/1.1\r\nHost: 127.0.0.1:${origin.port}\r\nx-forwarded-host: a b\r\n\r\n`,
    )
    origin[Symbol.dispose]()
  })

  test('messages that are none are ignored', async () => {
    await using ends = await start({ fetch: () => text('still here') })
    for (const nonsense of [
      '',
      '{',
      '[]',
      'null',
      '{"type":"request"}',
      '{"type":"request","id":{},"method":"GET","path":"/"}',
      '{"type":"request","id":1,"method":1,"path":"/"}',
      '{"type":"request","id":1,"method":"GET","path":"/","headers":{"a":"b\\r\\nc: d"}}',
      '{"type":"__proto__"}',
      '{"type":"newer"}',
    ]) {
      ends.server.send(nonsense)
    }
    expect(await ends.server.ask({ id: 7 })).toMatchObject({ id: 7, status: 200, body: 'still here' })
    expect(await ends.server.ask({ id: 'req_x' })).toMatchObject({ id: 'req_x', status: 200 })
  })
})

describe('an answer', () => {
  const answer = async (bytes: string | Uint8Array, ask: Message = {}): Promise<Message> => {
    const { origin } = await answering(bytes)
    await using ends = await start({ port: origin.port })
    const message = await ends.server.ask(ask)
    origin[Symbol.dispose]()
    return message
  }

  test('is one message with the id as a number, text as text', async () => {
    expect(await answer(HELLO)).toEqual({
      type: 'response',
      id: 1,
      status: 200,
      headers: { 'content-type': 'text/plain' },
      body: 'hello',
    })
  })

  test("defect 4: a redirect is the visitor's to follow", async () => {
    const moved = 'HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n'
    expect(await answer(moved)).toMatchObject({ status: 302, headers: { location: '/elsewhere' } })
  })

  test('defect 5: a compressed body stays as it is, with its content-encoding', async () => {
    const zipped = Bun.gzipSync('some text')
    const head = `HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: gzip\r\nContent-Length: ${zipped.length}\r\n\r\n`
    const message = await answer(Buffer.concat([Buffer.from(head), zipped]))
    expect(message).toMatchObject({ headers: { 'content-encoding': 'gzip' }, isBase64Encoded: true })
    expect(Buffer.from(String(message.body), 'base64')).toEqual(Buffer.from(zipped))
  })

  test('that is compressed goes in base64 even if its bytes could be text', async () => {
    const head =
      'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: br\r\nContent-Length: 1\r\n\r\n'
    expect(await answer(`${head};`)).toMatchObject({ body: 'Ow==', isBase64Encoded: true })
  })

  test('defect 8: to HEAD keeps its content-length', async () => {
    const message = await answer('HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n', { method: 'HEAD' })
    expect(message).toMatchObject({ status: 200, headers: { 'content-length': '1234' }, body: '' })
  })

  test('defect 9: latin-1 text and a BOM survive', async () => {
    const head = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\n'
    expect(await answer(Buffer.from(`${head}caf\xe9`, 'latin1'))).toMatchObject({
      body: 'Y2Fm6Q==',
      isBase64Encoded: true,
    })
    expect(await answer(Buffer.from(`${head}\xef\xbb\xbfx`, 'latin1'))).toMatchObject({ body: '\ufeffx' })
  })

  test('in chunks, behind interim answers, or ended by the close arrives whole', async () => {
    const chunked =
      'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n'
    expect(await answer(`HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n${chunked}`)).toMatchObject({
      status: 200,
      body: 'abcde',
    })
    const origin = new RawOrigin()
    await using ends = await start({ port: origin.port })
    const message = ends.server.ask({})
    const connection = await origin.accept()
    await connection.until('\r\n\r\n')
    await connection.send('HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nuntil the end')
    connection.socket.end()
    expect(await message).toMatchObject({ body: 'until the end' })
    origin[Symbol.dispose]()
  })

  for (const [what, bytes, status, error] of [
    ['that is no HTTP', 'SSH-2.0-OpenSSH\r\n', 502, 'ORIGIN_INVALID'],
    [
      'with two lengths',
      'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n',
      502,
      'ORIGIN_INVALID',
    ],
    [
      'that switches protocols',
      'HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n',
      502,
      'ORIGIN_INVALID',
    ],
    [
      'too large for a message',
      'HTTP/1.1 200 OK\r\nContent-Length: 60000000\r\n\r\n',
      501,
      'WIRE_UNSUPPORTED',
    ],
  ] as const) {
    test(`${what} is ${status} ${error}`, async () => {
      expect(await answer(bytes)).toMatchObject({ status, error })
    })
  }

  test('that has no room beside the others is 503 until one of them is done', async () => {
    const origin = new RawOrigin()
    await using ends = await start({
      port: origin.port,
      wire: 'json',
      limits: { maxCollectedBytes: 100_000 },
    })
    const begin = async (ask: Promise<Message>) => {
      const app = await origin.accept()
      await app.until('\r\n\r\n')
      await app.send(`HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 60000\r\n\r\n`)
      return { ask, app }
    }
    const both = [await begin(ends.server.ask({})), await begin(ends.server.ask({}))]
    // Either fits, the two do not: which of them is the one too many, the network decides.
    const most = 'x'.repeat(59_000)
    for (const { app } of both) await app.send(most)
    const refused = await Promise.race(both.map(async one => ({ one, message: await one.ask })))
    expect(refused.message).toMatchObject({ status: 503, error: 'TUNNEL_BUSY' })
    expect(await refused.one.app.closed()).toBeDefined()
    const { ask, app } = both.find(one => one !== refused.one)!
    await app.send('y'.repeat(1_000))
    expect(await ask).toMatchObject({ status: 200, body: most + 'y'.repeat(1_000) })
    // What either held was given back.
    for (let count = 0; count < 3; count++) {
      const again = ends.server.ask({})
      await app.until('\r\n\r\n')
      await app.send(`HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 60000\r\n\r\n${most}`)
      await app.send('y'.repeat(1_000))
      expect(await again).toMatchObject({ status: 200 })
    }
    origin[Symbol.dispose]()
  })

  test('of an origin that closes in the middle is 502', async () => {
    const origin = new RawOrigin()
    await using ends = await start({ port: origin.port })
    const message = ends.server.ask({})
    const connection = await origin.accept()
    await connection.send('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf')
    connection.socket.end()
    expect(await message).toMatchObject({ status: 502, error: 'ORIGIN_CLOSED' })
    origin[Symbol.dispose]()
  })

  test('of no origin is the 502 that existing clients send', async () => {
    const gone = new RawOrigin()
    const { port } = gone
    gone[Symbol.dispose]()
    await using ends = await start({ port })
    const errors: unknown[] = []
    ends.client.on('error', error => errors.push(error))
    const message = await ends.server.ask({})
    expect(message).toMatchObject({
      status: 502,
      headers: { 'content-type': 'application/json' },
      error: 'ORIGIN_REFUSED',
    })
    expect(JSON.parse(String(message.body))).toMatchObject({
      error: 'Bad Gateway',
      message: `Could not connect to local server at 127.0.0.1:${port}`,
    })
    expect(errors).toMatchObject([{ code: 'ORIGIN_REFUSED' }])
  })

  test('that does not come is 504 before the server gives up, and an event stream 501', async () => {
    const origin = new RawOrigin()
    await using ends = await start(
      { port: origin.port },
      { connected: { type: 'connected', originTimeoutMs: 30 } },
    )
    expect(await ends.server.ask({})).toMatchObject({ status: 504, error: 'ORIGIN_TIMEOUT' })
    const stream = ends.server.ask({})
    await origin.accept()
    const connection = await origin.accept()
    await connection.send('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: x\n\n')
    expect(await stream).toMatchObject({ status: 501, error: 'WIRE_UNSUPPORTED' })
    origin[Symbol.dispose]()
  })

  test('is told to listeners', async () => {
    await using ends = await start({ fetch: () => new Response('hello') })
    const seen: unknown[] = []
    ends.client.on('request', event => seen.push(event))
    ends.client.on('response', event => seen.push(event))
    await ends.server.ask({ path: '/x' })
    expect(seen).toMatchObject([
      { id: 1, method: 'GET', path: '/x' },
      { id: 1, method: 'GET', path: '/x', status: 200, bytes: 5 },
    ])
  })

  test('is sent for each of many requests at once', async () => {
    await using ends = await start({ fetch: async request => new Response(new URL(request.url).pathname) })
    const messages = await Promise.all(
      Array.from({ length: 300 }, (_, index) => ends.server.ask({ path: `/${index}` })),
    )
    expect(
      messages.map(one =>
        Buffer.from(String(one.body), one.isBase64Encoded === true ? 'base64' : 'utf8').toString(),
      ),
    ).toEqual(Array.from({ length: 300 }, (_, index) => `/${index}`))
  })
})

describe('through an existing server to a visitor', () => {
  test('defect 3: every Set-Cookie arrives', async () => {
    await using ends = await start({
      fetch: () =>
        new Response('x', {
          headers: [
            ['set-cookie', 'a=1'],
            ['set-cookie', 'b=2; Expires=Wed, 21 Oct'],
            ['set-cookie', 'c=3'],
          ],
        }),
    })
    const response = await fetch(`http://127.0.0.1:${ends.server.port}/`, {
      headers: { host: 'app.example' },
    })
    expect(response.headers.getSetCookie()).toEqual(['a=1', 'b=2; Expires=Wed, 21 Oct', 'c=3'])
  })

  test('bytes of any kind come back as they went', async () => {
    await using ends = await start({ fetch: async request => new Response(await request.arrayBuffer()) })
    const bytes = Uint8Array.from({ length: 70_000 }, (_, index) => index * 7)
    const response = await fetch(`http://127.0.0.1:${ends.server.port}/`, {
      method: 'POST',
      body: bytes,
      headers: { host: 'app.example' },
    })
    expect(await response.bytes()).toEqual(bytes)
  })
})
