// Behind a proxy that sends PROXY headers: whose address counts, who may send one, and what happens without.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { TunnelClient, TunnelServer } from '../../src/index.ts'
import { acceptProxied, type ProxiedHost } from '../../src/parts/proxy-protocol/proxied.ts'
import { Deadlines } from '../../src/server/limits/deadlines.ts'
import type { TunnelServerOptions } from '../../src/server/settings/options.ts'
import { listenBun } from '../../src/sockets/bun.ts'
import { encodeProxyV1, encodeProxyV2, type ProxiedRoute } from '../../src/wire/proxy-protocol.ts'
import { next } from '../support/events.ts'
import { get, headerOf, ok, readAnswer, readRequest, statusOf } from '../support/exchange.ts'
import { type RawConnection, RawOrigin, rawDial } from '../support/raw.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { TEST_CERT, TEST_KEY } from '../support/tls.ts'
import { startServer } from '../support/tunnel.ts'
import { within } from '../support/within.ts'

const routeFrom = (address: string): ProxiedRoute => ({
  transport: 'tcp',
  source: { address, port: 56_324 },
  destination: { address: '192.0.2.1', port: 443 },
})
const VISITOR = '203.0.113.7'
const HEADER = encodeProxyV2(routeFrom(VISITOR))
const HOST = 'app.localhost'

let origin: RawOrigin
let server: TunnelServer
let front: TcpProxy
let client: TunnelClient
const visitors: RawConnection[] = []
let errors: string[] = []

/** A server that trusts 127.0.0.1, and a client that came to it by a front. */
async function start(options: TunnelServerOptions = {}): Promise<void> {
  server = await startServer({ acceptProxyProtocol: true, trustedProxies: ['127.0.0.1'], ...options })
  server.on('error', error => errors.push(error.message))
  front = new TcpProxy(server.port)
  front.preface = encodeProxyV1(routeFrom('198.51.100.9'))
  client = new TunnelClient({
    server: `http://127.0.0.1:${front.port}`,
    host: '127.0.0.1',
    port: origin.port,
    subdomain: 'app',
  })
}

async function visit(...pieces: readonly (string | Uint8Array)[]): Promise<RawConnection> {
  const visitor = await rawDial(server.port)
  visitors.push(visitor)
  for (const piece of pieces) await visitor.send(piece)
  return visitor
}

/** What the app sees of a request with these bytes in front of it. */
async function headBehind(...pieces: readonly (string | Uint8Array)[]): Promise<string> {
  const visitor = await visit(...pieces)
  const app = await origin.accept()
  const { head } = await readRequest(app)
  await app.send(ok('', 'Connection: close\r\n'))
  expect(statusOf((await readAnswer(visitor)).head)).toBe(200)
  return head
}

beforeEach(() => {
  origin = new RawOrigin()
  errors = []
})
afterEach(async () => {
  for (const visitor of visitors.splice(0)) visitor.socket.terminate()
  for (const connection of origin.connections) connection.socket.terminate()
  await client.disconnect()
  front[Symbol.dispose]()
  await server.stop()
  origin[Symbol.dispose]()
})

describe('a connection from a trusted proxy', () => {
  beforeEach(async () => {
    await start()
    await client.connect()
  })
  const forged = get(
    HOST,
    '/',
    'X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Proto: https\r\nForwarded: for=6.6.6.6\r\n',
  )

  test.each([
    ['version 1', encodeProxyV1(routeFrom(VISITOR))],
    ['version 2', HEADER],
  ])('is the visitor of its header, whose own words are not believed: %s', async (_, header) => {
    const head = await headBehind(Buffer.concat([header, Buffer.from(forged)]))
    expect(headerOf(head, 'x-forwarded-for')).toBe(VISITOR)
    expect(headerOf(head, 'forwarded')).toBe(`for=${VISITOR};host=${HOST};proto=http`)
    expect(headerOf(head, 'x-forwarded-proto')).toBe('http')
    expect(head).not.toContain('6.6.6.6')
  })

  test('may be cut anywhere', async () => {
    const bytes = Buffer.concat([HEADER, Buffer.from(get(HOST))])
    for (let cut = 1; cut < HEADER.length + 3; cut += 3) {
      expect(headerOf(await headBehind(bytes.subarray(0, cut), bytes.subarray(cut)), 'x-forwarded-for')).toBe(
        VISITOR,
      )
    }
    expect(
      headerOf(await headBehind(...[...bytes].map(byte => Uint8Array.of(byte))), 'x-forwarded-for'),
    ).toBe(VISITOR)
  })

  test('says IPv6', async () => {
    const head = await headBehind(encodeProxyV1(routeFrom('2001:DB8::7')), get(HOST))
    expect(headerOf(head, 'x-forwarded-for')).toBe('2001:db8::7')
    expect(headerOf(head, 'forwarded')).toStartWith('for="[2001:db8::7]"')
  })

  test('of a proxy that is trusted itself passes on what that one says', async () => {
    const head = await headBehind(encodeProxyV1(routeFrom('127.0.0.1')), forged)
    expect(headerOf(head, 'x-forwarded-for')).toBe('6.6.6.6, 127.0.0.1')
  })

  test.each([
    ['LOCAL', encodeProxyV2(undefined)],
    ['UNKNOWN', encodeProxyV1(undefined)],
  ])('whose header names nobody keeps its address and none of its words: %s', async (_, header) => {
    const head = await headBehind(header, forged)
    expect(headerOf(head, 'x-forwarded-for')).toBe('127.0.0.1')
    expect(head).not.toContain('6.6.6.6')
  })

  test('that spoke TLS with its visitor is https', async () => {
    const tls = Buffer.from('2000050100000000', 'hex')
    const header = Buffer.concat([HEADER, tls])
    header.writeUInt16BE(header.length - 16, 14)
    expect(headerOf(await headBehind(header, get(HOST)), 'x-forwarded-proto')).toBe('https')
    expect(headerOf(await headBehind(HEADER, get(HOST)), 'x-forwarded-proto')).toBe('http')
  })

  test('keeps its visitor for every request on it', async () => {
    const visitor = await visit(HEADER, get(HOST))
    const app = await origin.accept()
    await readRequest(app)
    await app.send(ok('one'))
    expect((await readAnswer(visitor)).body).toBe('one')
    await visitor.send(get(HOST, '/large'))
    expect(headerOf((await readRequest(app)).head, 'x-forwarded-for')).toBe(VISITOR)
    await app.send(ok('two'))
    expect((await readAnswer(visitor)).body).toBe('two')
  })

  test.each([
    ['a request', get(HOST), 'begins with something else'],
    ['a header that is none', 'PROXY TCP4 1.2.3.4 5.6.7.8 1\r\n', 'not two addresses'],
    ['a header for UDP', encodeProxyV2({ ...routeFrom(VISITOR), transport: 'udp' }), 'has one for UDP'],
  ])('with %s instead of a header is cut without an answer, and reported', async (_, bytes, reason) => {
    const error = next(server, 'error')
    const visitor = await visit(bytes)
    expect(await visitor.end()).toBe('')
    expect(await error).toMatchObject({ code: 'PROXY_HEADER_INVALID' })
    expect((await error).message).toContain(reason)
    expect((await error).message).toContain('127.0.0.1')
    expect(headerOf(await headBehind(HEADER, get(HOST)), 'x-forwarded-for')).toBe(VISITOR)
  })

  test('that ends within the header is reported, one that only looked is not', async () => {
    const looked = await visit()
    looked.socket.end()
    await looked.closed()
    const error = next(server, 'error')
    const visitor = await visit(HEADER.subarray(0, 20))
    visitor.socket.end()
    expect((await error).message).toContain('ends within it')
    await visitor.closed()
    expect(errors.length).toBe(1)
  })
})

test('a header that does not come in time is cut, and reported when it had begun', async () => {
  await start({ limits: { headTimeoutMs: 250 } })
  const error = next(server, 'error')
  const silent = await visit()
  const slow = await visit(HEADER.subarray(0, 5))
  expect(await silent.end()).toBe('')
  expect(await slow.end()).toBe('')
  expect((await error).message).toContain('250 ms')
  expect(errors.length).toBe(1)
})

test('a client that came by the proxy has the address of its header', async () => {
  await start()
  const joined = next(server, 'connection')
  await client.connect()
  expect(await joined).toMatchObject({ subdomain: 'app', remoteAddress: '198.51.100.9' })
})

describe('a stranger', () => {
  beforeEach(async () => {
    await start({ trustedProxies: ['192.0.2.200'] })
    front.preface = undefined
    await client.connect()
  })

  test('is himself', async () => {
    expect(headerOf(await headBehind(get(HOST)), 'x-forwarded-for')).toBe('127.0.0.1')
  })

  test.each([
    ['version 1', encodeProxyV1(routeFrom(VISITOR))],
    ['version 2', HEADER],
  ])('may not send a header: %s', async (_, header) => {
    const visitor = await visit(Buffer.concat([header, Buffer.from(get(HOST))]))
    expect(statusOf((await readAnswer(visitor)).head)).toBe(400)
    await visitor.end()
    expect(origin.connections.length).toBe(0)
    expect(errors).toEqual([])
  })
})

test('without the option nobody may send one, trusted or not', async () => {
  await start({ acceptProxyProtocol: false })
  front.preface = undefined
  await client.connect()
  const visitor = await visit(Buffer.concat([encodeProxyV1(routeFrom(VISITOR)), Buffer.from(get(HOST))]))
  expect(statusOf((await readAnswer(visitor)).head)).toBe(400)
})

test('a front of raw bytes hears of everything that happens on the connection', async () => {
  await start()
  const deadlines = new Deadlines(error => errors.push(error.message))
  const heard: string[] = []
  const { promise: isFull, resolve: full } = Promise.withResolvers<number>()
  const { promise: isDrained, resolve: drained } = Promise.withResolvers<void>()
  const { promise: isClosed, resolve: closed } = Promise.withResolvers<void>()
  const host: ProxiedHost = {
    deadlines,
    headerTimeoutMs: 0,
    isTrusted: () => true,
    failed: error => errors.push(error.message),
    accept: (socket, header) => ({
      received(bytes) {
        heard.push(`${socket.remoteAddress} ${header?.version} ${Buffer.from(bytes).toString()}`)
        const piece = new Uint8Array(65_536)
        let sent = 0
        let taken = piece.length
        while (taken === piece.length) sent += taken = socket.write(piece)
        full(sent)
      },
      drained,
      ended() {
        heard.push('ended')
        socket.end()
      },
      closed: error => {
        heard.push(`closed ${error?.message}`)
        closed()
      },
    }),
  }
  const listening = listenBun({ hostname: '127.0.0.1', accept: socket => acceptProxied(socket, host) })
  try {
    const visitor = await rawDial(listening.port)
    visitor.socket.pause()
    await visitor.send(Buffer.concat([HEADER, Buffer.from('hello')]))
    const sent = await within(isFull, 'a full kernel')
    visitor.socket.resume()
    await within(isDrained, 'drained')
    await visitor.when(() => visitor.bytes.length === sent, 'all that was taken')
    visitor.socket.end()
    await within(isClosed, 'closed')
    expect(heard).toEqual([`${VISITOR} 2 hello`, 'ended', 'closed undefined'])
    expect(errors).toEqual([])
  } finally {
    listening.stop(true)
  }
})

test('with TLS the header comes first, then the hello; a reload cannot change that', async () => {
  const tls = { cert: TEST_CERT, key: TEST_KEY }
  const options = { tls, trustedProxies: ['127.0.0.1'], acceptProxyProtocol: true }
  await using server = await startServer(options)
  const proxy = new TcpProxy(server.port)
  proxy.preface = Buffer.from('PROXY TCP4 203.0.113.7 192.0.2.1 5000 443\r\n')
  const client = new TunnelClient({ server: `https://localhost:${proxy.port}`, verifyServer: false })
  await client.http({
    subdomain: 'app',
    fetch: request => new Response(request.headers.get('x-forwarded-for')),
  })
  const visit = fetch(`https://127.0.0.1:${proxy.port}/`, {
    headers: { host: 'app.localhost' },
    tls: { rejectUnauthorized: false },
  })
  expect(await visit.then(answer => answer.text())).toBe('203.0.113.7')
  expect(await server.reload({ tls }).catch((error: Error) => error.message)).toContain(
    'acceptProxyProtocol with tls cannot change',
  )
  await client.disconnect()
  proxy[Symbol.dispose]()
})

test('options that cannot be used together are refused', async () => {
  await start()
  for (const options of [{}, { trustedProxies: [] }]) {
    expect(() => new TunnelServer({ acceptProxyProtocol: true, ...options })).toThrow('acceptProxyProtocol')
  }
})
