// WebSockets to apps that speak HTTP/2: on a stream (RFC 8441) where the app takes them, by HTTP/1.1 where the port speaks that,
// too, and a clear refusal elsewhere.

import { expect, test } from 'bun:test'
import { createServer as createPlainServer } from 'node:http'
import { createSecureServer, createServer, type Http2Server, type ServerHttp2Stream } from 'node:http2'
import { type AddressInfo, createServer as createPort } from 'node:net'
import { ask } from '../support/ask.ts'
import { frame, u32 } from '../support/h2-frames.ts'
import { get, H2Peer, head } from '../support/h2-peer.ts'
import { startHttp2Site } from '../support/http2-site.ts'
import { type RawConnection, RawOrigin, rawDial } from '../support/raw.ts'
import { TEST_CERT, TEST_KEY } from '../support/tls.ts'
import { startTunnel } from '../support/tunnel.ts'
import { within } from '../support/within.ts'

/** SETTINGS with ENABLE_CONNECT_PROTOCOL. */
const TAKES_WEBSOCKETS = frame(4, 0, 0, [0, 8, ...u32(1)])
const OK = [0x88]
/** `:status: 403` as a literal. */
const FORBIDDEN = [0x08, 3, ...Buffer.from('403')]
const HANDSHAKE = {
  Connection: 'Upgrade',
  Upgrade: 'websocket',
  'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
  'Sec-WebSocket-Version': '13',
}
/** What RFC 6455 section 1.3 answers to that key. */
const ACCEPT = 's3pPLMBiTxaQ9kYGzzhZRbK+xOo='

const upgradeOf = (host: string) =>
  `GET /ws HTTP/1.1\r\nHost: ${host}\r\n${Object.entries(HANDSHAKE)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')}\r\n`

const portOf = (app: { address(): AddressInfo | string | null }) => (app.address() as AddressInfo).port

async function listening<T extends { listen(port: number, host: string, then: () => void): unknown }>(
  app: T,
) {
  await new Promise<void>(resolve => app.listen(0, '127.0.0.1', resolve))
  return app
}

/** An app that echoes on the stream of each WebSocket, and says how many connections it has. */
async function startEcho(settings: object): Promise<{ app: Http2Server; sessions: { count: number } }> {
  const app = createServer({ settings })
  const sessions = { count: 0 }
  app.on('session', () => sessions.count++)
  app.on('stream', (stream: ServerHttp2Stream, headers) => {
    stream.on('error', () => {})
    stream.respond({ ':status': 200 })
    if (headers[':method'] === 'CONNECT' && headers[':protocol'] === 'websocket') stream.pipe(stream)
    else stream.end('page')
  })
  return { app: await listening(app), sessions }
}

/** The app's side of a connection that has sent its first frames. */
async function accepted(origin: RawOrigin, settings = TAKES_WEBSOCKETS): Promise<RawConnection> {
  const app = await origin.accept()
  await app.until('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
  await app.send(Uint8Array.from(settings))
  return app
}

test('a WebSocket of HTTP/1.1 is a stream of the connection that requests share; bytes and ends go both ways', async () => {
  const { app, sessions } = await startEcho({ enableConnectProtocol: true })
  await using tunnel = await startTunnel({ port: portOf(app), protocol: 'h2c' })
  const visitor = await rawDial(tunnel.port)
  await visitor.send(upgradeOf(tunnel.host))
  const answer = await visitor.until('\r\n\r\n')
  expect(answer).toStartWith('HTTP/1.1 101 Switching Protocols\r\n')
  expect(answer).toContain(`Sec-WebSocket-Accept: ${ACCEPT}\r\n`)
  const big = 'abcdefgh'.repeat(131_072)
  await visitor.send(`hello${big}`)
  expect(await within(visitor.exactly(5 + big.length), 'the echo')).toBe(`hello${big}`)
  expect(await ask(tunnel.port, tunnel.host)).toMatchObject({ body: 'page' })
  expect(sessions.count).toBe(1)
  visitor.socket.end()
  await within(visitor.end(), 'the end of the echo')
  app.close()
})

test('a WebSocket of HTTP/2 is one at the app, too', async () => {
  const { app } = await startEcho({ enableConnectProtocol: true })
  await using site = await startHttp2Site(portOf(app), { client: { protocol: 'h2c' } })
  await using peer = await H2Peer.connect(site.port)
  const fields = [
    [':method', 'CONNECT'],
    [':protocol', 'websocket'],
    ...get(site.host, '/ws').slice(1),
    ['sec-websocket-version', '13'],
  ] as const
  peer.send(head(1, fields, false))
  await peer.when(({ frames }) => frames.some(({ type, stream }) => type === 1 && stream === 1), 'the answer')
  expect(peer.seen.field(1, ':status')).toBe('200')
  peer.send(frame(0, 1, 1, 'ping'))
  expect((await peer.answered(1)).body(1).toString()).toBe('ping')
  app.close()
})

test('what the app sees of a WebSocket, and what it may answer', async () => {
  using origin = new RawOrigin()
  await using tunnel = await startTunnel({ port: origin.port, protocol: 'h2c' })
  const refused = ask(tunnel.port, tunnel.host, { headers: HANDSHAKE })
  const app = await accepted(origin)
  await app.when(() => app.bytes.includes(Buffer.from([1, 4, 0, 0, 0, 1])), 'the WebSocket')
  await app.send(Uint8Array.from([...frame(1, 4, 1, FORBIDDEN), ...frame(0, 1, 1, 'no')]))
  expect(await within(refused, 'the refusal')).toMatchObject({ status: 403, body: 'no' })
  // The connection, and the way to it, serve the next request.
  const next = ask(tunnel.port, tunnel.host)
  await app.when(() => app.bytes.includes(Buffer.from([1, 5, 0, 0, 0, 3])), 'the next request')
  await app.send(Uint8Array.from([...frame(1, 4, 3, OK), ...frame(0, 1, 3, 'yes')]))
  expect(await within(next, 'the next answer')).toMatchObject({ status: 200, body: 'yes' })
  // Reset in the middle: the visitor's connection is cut.
  const visitor = await rawDial(tunnel.port)
  await visitor.send(upgradeOf(tunnel.host))
  await app.when(() => app.bytes.includes(Buffer.from([1, 4, 0, 0, 0, 5])), 'the WebSocket')
  await app.send(Uint8Array.from([...frame(1, 4, 5, OK), ...frame(0, 0, 5, 'x')]))
  await visitor.until('\r\n\r\nx')
  await app.send(Uint8Array.from(frame(3, 0, 5, u32(8))))
  await within(visitor.closed(), 'the cut')
})

test('a WebSocket that waits for the settings of the app fails with its connection, and leaves with its visitor', async () => {
  using origin = new RawOrigin()
  await using tunnel = await startTunnel({ port: origin.port, protocol: 'h2c' })
  const leaving = new AbortController()
  const left = ask(tunnel.port, tunnel.host, { headers: HANDSHAKE, signal: leaving.signal }).catch(
    () => 'left',
  )
  const stays = ask(tunnel.port, tunnel.host, { headers: HANDSHAKE })
  const app = await origin.accept()
  await app.until('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
  leaving.abort()
  expect(await left).toBe('left')
  app.socket.end()
  expect(await within(stays, 'the answer')).toMatchObject({ status: 502, code: 'ORIGIN_CLOSED' })
})

test('an app that takes none on HTTP/2 gets it by HTTP/1.1 where its port speaks that, too', async () => {
  const { app: http2 } = await startEcho({})
  const http1 = await listening(
    createPlainServer().on('upgrade', (request, socket) => {
      socket.write(
        request.url === '/no'
          ? 'HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno'
          : `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${ACCEPT}\r\n\r\n`,
      )
      socket.pipe(socket)
    }),
  )
  // As net/http of Go does: the first bytes of a connection decide.
  const both = await listening(
    createPort(socket =>
      socket.once('data', first => {
        const inner = first.toString('latin1').startsWith('PRI ') ? http2 : http1
        socket.unshift(first)
        inner.emit('connection', socket)
      }),
    ),
  )
  await using tunnel = await startTunnel({ port: portOf(both), protocol: 'h2c' })
  for (const _ of ['not known yet', 'known']) {
    const visitor = await rawDial(tunnel.port)
    await visitor.send(upgradeOf(tunnel.host))
    expect(await within(visitor.until('\r\n\r\n'), 'the answer')).toContain(
      `Sec-WebSocket-Accept: ${ACCEPT}\r\n`,
    )
    await visitor.send('hello')
    await within(visitor.until('hello'), 'the echo')
    visitor.socket.terminate()
    // Streams of one kind never serve requests of the other.
    expect(await ask(tunnel.port, tunnel.host, { path: '/no', headers: HANDSHAKE })).toMatchObject({
      status: 403,
    })
    expect(await ask(tunnel.port, tunnel.host)).toMatchObject({ status: 200, body: 'page' })
  }
  for (const one of [both, http1, http2]) one.close()
})

test('an app that takes none at all: 501 with a code, and its requests go on', async () => {
  const { app: plain } = await startEcho({})
  const secure = await listening(
    createSecureServer({ cert: TEST_CERT, key: TEST_KEY }, (_request, response) => response.end('page')),
  )
  const ways = [
    { port: portOf(plain), protocol: 'h2c' },
    { url: `https://127.0.0.1:${portOf(secure)}`, host: undefined, appInsecure: true, protocol: 'h2' },
  ] as const
  for (const way of ways) {
    await using tunnel = await startTunnel(way as never)
    for (const _ of ['not known yet', 'known']) {
      expect(
        await within(ask(tunnel.port, tunnel.host, { headers: HANDSHAKE }), 'the refusal'),
      ).toMatchObject({
        status: 501,
        code: 'ORIGIN_NO_WEBSOCKET',
      })
      expect(await ask(tunnel.port, tunnel.host)).toMatchObject({ status: 200, body: 'page' })
    }
  }
  plain.close()
  secure.close()
})
