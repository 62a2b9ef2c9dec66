// HTTP/2 through a whole tunnel, by a visitor and an app that write bytes: what is preserved, what is cancelled, what is bounded.

import { expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { TunnelError, TunnelServer } from '../../src/index.ts'
import { guarding } from '../../src/plugins/guarding.ts'
import { eventually, next } from '../support/events.ts'
import { frame, u32 } from '../support/h2-frames.ts'
import { get, H2Peer, head, post } from '../support/h2-peer.ts'
import { startApp, startHttp2Site } from '../support/http2-site.ts'
import { RawOrigin } from '../support/raw.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { TEST_CERT, TEST_KEY } from '../support/tls.ts'
import { startServer } from '../support/tunnel.ts'

const NO_ERROR = 0
const PROTOCOL_ERROR = 1
const REFUSED_STREAM = 7
const CANCEL = 8
const CALM = 11
const tls = { cert: TEST_CERT, key: TEST_KEY }

test('paths, repeated headers and cookies arrive as they were sent', async () => {
  using origin = new RawOrigin()
  await using site = await startHttp2Site(origin.port)
  await using peer = await H2Peer.connect(site.port)
  const path = '/a/../b//c%2f?x=1&x=%zz'
  peer.send(
    head(
      1,
      get(site.host, path, [
        ['x-one', '1'],
        ['cookie', 'a=1'],
        ['x-one', '2'],
        ['cookie', 'b=2'],
      ]),
    ),
  )
  const app = await origin.accept()
  const seen = await app.until('\r\n\r\n')
  expect(seen).toStartWith(
    `GET ${path} HTTP/1.1\r\nHost: ${site.host}\r\nx-one: 1\r\ncookie: a=1; b=2\r\nx-one: 2\r\n`,
  )
  expect(seen).toContain('X-Forwarded-Proto: https\r\n')
  await app.send('HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n')
  await peer.when(({ frames }) => frames.some(({ fields }) => fields?.[0]?.[1] === '103'), 'the early hints')
  await app.send(
    'HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nhi',
  )
  const answer = await peer.answered(1)
  expect(answer.of(1, 1)[1]?.fields).toEqual([
    [':status', '200'],
    ['set-cookie', 'a=1'],
    ['set-cookie', 'b=2'],
    ['content-length', '2'],
  ])
  expect(answer.body(1).toString()).toBe('hi')
  // Head, body and end are one frame each.
  expect(answer.of(0, 1)).toHaveLength(1)
})

test('bodies without a length and trailers go both ways', async () => {
  using origin = new RawOrigin()
  await using site = await startHttp2Site(origin.port)
  await using peer = await H2Peer.connect(site.port)
  peer.send(
    head(1, post(site.host, '/', [['te', 'trailers']]), false),
    frame(0, 8, 1, [3, ...Buffer.from('hello'), 0, 0, 0]),
    frame(0, 0, 1, []),
    head(1, [['x-sum', '5']]),
  )
  const app = await origin.accept()
  expect(await app.until('x-sum: 5\r\n\r\n')).toEndWith('\r\n\r\n5\r\nhello\r\n0\r\nx-sum: 5\r\n\r\n')
  await app.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n3\r\none\r\n')
  await peer.when(seen => seen.body(1).length === 3, 'the first chunk')
  await app.send('3\r\ntwo\r\n0\r\nX-Sum: 6\r\n\r\n')
  const answer = await peer.answered(1)
  expect(answer.body(1).toString()).toBe('onetwo')
  expect(answer.of(1, 1).at(-1)?.fields).toEqual([['x-sum', '6']])
  expect(answer.of(1, 1)[0]?.fields).toEqual([
    [':status', '200'],
    ['trailer', 'X-Sum'],
  ])
})

test('a stream that the visitor resets is a request that the app sees cancelled', async () => {
  using origin = new RawOrigin()
  await using site = await startHttp2Site(origin.port)
  await using peer = await H2Peer.connect(site.port)
  peer.send(head(1, get(site.host, '/slow')), head(3, get(site.host, '/other')))
  const first = await origin.accept()
  const second = await origin.accept()
  const [slow, other] = (await first.until('\r\n\r\n')).includes('/slow') ? [first, second] : [second, first]
  peer.send(frame(3, 0, 1, u32(CANCEL)))
  await slow.when(() => slow.isClosed, 'the end of the request')
  await other.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi')
  expect((await peer.answered(3)).body(3).toString()).toBe('hi')
})

test('an answer that breaks off never looks complete', async () => {
  using origin = new RawOrigin()
  await using site = await startHttp2Site(origin.port)
  await using peer = await H2Peer.connect(site.port)
  peer.send(head(1, get(site.host)))
  const app = await origin.accept()
  await app.until('\r\n\r\n')
  await app.send('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf')
  await peer.when(seen => seen.body(1).length === 4, 'half of the answer')
  app.socket.terminate()
  await peer.when(({ resets }) => 1 in resets, 'the reset')
  expect(peer.seen.hasEnded(1)).toBe(false)
  // The connection goes on.
  peer.send(head(3, get('nothing.localhost')))
  expect((await peer.answered(3)).field(3, ':status')).toBe('404')
})

test('an answer that comes before the end of the request ends the rest of it', async () => {
  using app = startApp()
  await using site = await startHttp2Site(app.port, { server: { limits: { maxBodyBytes: 1_000 } } })
  await using peer = await H2Peer.connect(site.port)
  peer.send(head(1, post(site.host, '/echo'), false), frame(0, 0, 1, new Uint8Array(2_000)))
  expect((await peer.answered(1)).field(1, ':status')).toBe('413')
  await peer.untilReset(1)
  expect(peer.seen.resets).toEqual({ 1: NO_ERROR })
  // What was on its way then is no fault.
  peer.send(frame(0, 1, 1, new Uint8Array(2_000)), head(3, get(site.host)))
  expect((await peer.answered(3)).body(3).toString()).toBe('hello\n')
})

test('a WebSocket by extended CONNECT: bytes both ways, and the end of each way', async () => {
  using origin = new RawOrigin()
  await using site = await startHttp2Site(origin.port)
  await using peer = await H2Peer.connect(site.port)
  const connect = [
    [':method', 'CONNECT'],
    [':protocol', 'websocket'],
    ...get(site.host, '/ws').slice(1),
  ] as const
  peer.send(
    head(1, [...connect, ['sec-websocket-version', '13']], false),
    frame(0, 0, 1, Buffer.from('early')),
  )
  const app = await origin.accept()
  const seen = await app.until('\r\n\r\n')
  expect(seen).toStartWith('GET /ws HTTP/1.1\r\n')
  const [, key] = /Sec-WebSocket-Key: (\S+)/.exec(seen) ?? []
  const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
  expect(app.text).toBe('')
  await app.send(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\nfirst`,
  )
  await app.until('early')
  await peer.when(seen => seen.body(1).toString() === 'first', 'what the app said')
  expect(peer.seen.of(1, 1)[0]?.fields).toEqual([[':status', '200']])
  peer.send(frame(0, 1, 1, Buffer.from('last')))
  await app.until('last')
  await app.when(() => app.hasEnded, 'the end')
  await app.send('bye')
  app.socket.end()
  expect((await peer.answered(1)).body(1).toString()).toBe('firstbye')
})

test('a WebSocket is none when the app says so, proves nothing, or another protocol is asked for', async () => {
  using origin = new RawOrigin()
  await using site = await startHttp2Site(origin.port)
  await using peer = await H2Peer.connect(site.port)
  const connect = (protocol: string) =>
    [[':method', 'CONNECT'], [':protocol', protocol], ...get(site.host, '/ws').slice(1)] as const
  const answers = [
    'HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno',
    'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi',
    'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: AAAA\r\n\r\n',
  ]
  for (const [index, answer] of answers.entries()) {
    const stream = 1 + 2 * index
    peer.send(head(stream, connect('websocket'), false))
    const app = await origin.accept()
    await app.until('\r\n\r\n')
    await app.send(answer)
    await peer.untilReset(stream)
  }
  expect(peer.seen.field(1, ':status')).toBe('403')
  for (const stream of [3, 5]) {
    expect(peer.seen.of(1, stream)).toHaveLength(1)
    expect(peer.seen.field(stream, ':status')).toBe('502')
    expect(peer.seen.field(stream, 'x-localtunnels-error')).toBe('ORIGIN_INVALID')
    expect(peer.seen.hasEnded(stream)).toBe(true)
  }
  peer.send(head(7, connect('connect-udp'), false))
  expect((await peer.answered(7)).field(7, ':status')).toBe('501')
  expect(peer.seen.field(7, 'x-localtunnels-error')).toBe('UPGRADE_UNSUPPORTED')
})

test('heads that HTTP/1.1 refuses get the same pages', async () => {
  using app = startApp()
  await using site = await startHttp2Site(app.port)
  await using peer = await H2Peer.connect(site.port)
  const cases: readonly (readonly [fields: Parameters<typeof head>[1], status: string])[] = [
    [get('bad host'), '400'],
    [get(site.host, `/${'x'.repeat(20_000)}`), '414'],
    [
      get(
        site.host,
        '/',
        Array.from({ length: 300 }, (_, index) => [`x-${index}`, ''] as const),
      ),
      '431',
    ],
    [
      [
        [':method', 'CONNECT'],
        [':authority', site.host],
      ],
      '405',
    ],
    [get('none.localhost'), '404'],
    [get('elsewhere.example'), '404'],
    [get('localhost', '/health'), '200'],
  ]
  for (const [index, [fields, status]] of cases.entries()) {
    const stream = 1 + 2 * index
    const block = head(stream, fields)
    // In CONTINUATION frames where one is too small.
    if (block.length < 16_000) peer.send(block)
    else {
      const payload = block.slice(9)
      peer.send(frame(1, 1, stream, payload.slice(0, 16_000)), frame(9, 4, stream, payload.slice(16_000)))
    }
    expect([index, (await peer.answered(stream)).field(stream, ':status')]).toEqual([index, status])
  }
})

test('what the visitor does not take holds the app back, and nothing else on the connection', async () => {
  using origin = new RawOrigin()
  await using site = await startHttp2Site(origin.port)
  // Windows of streams are 1,000 bytes.
  await using peer = await H2Peer.connect(site.port, frame(4, 0, 0, [0, 4, ...u32(1_000)]))
  peer.send(head(1, get(site.host, '/big')))
  const app = await origin.accept()
  await app.until('\r\n\r\n')
  const size = 64 * 1_048_576
  let sent = 0
  const sending = (async () => {
    await app.send(`HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n`)
    const piece = new Uint8Array(65_536)
    for (; sent < size && !app.isClosed; sent += piece.length) await app.send(piece)
  })()
  await peer.when(seen => seen.body(1).length === 1_000, 'as much as the window lets through')
  for (let stream = 3; stream < 23; stream += 2) {
    peer.send(head(stream, get('localhost', '/health')))
    await peer.answered(stream)
  }
  // The app has met backpressure: kernel buffers and credit, far from all of it.
  expect(sent).toBeLessThan(size / 2)
  peer.grow(size, 1)
  peer.grow(size)
  await sending
  expect((await peer.answered(1)).body(1)).toHaveLength(size)
})

test('a body that the app does not read is not taken from the visitor, and other uploads go on', async () => {
  using origin = new RawOrigin()
  await using site = await startHttp2Site(origin.port)
  await using peer = await H2Peer.connect(site.port)
  peer.send(head(1, post(site.host), false))
  const app = await origin.accept()
  await app.until('\r\n\r\n')
  app.socket.pause()
  let given = 262_144
  let sent = 0
  const window = () =>
    262_144 + peer.seen.of(8, 1).reduce((sum, { payload }) => sum + payload.readUInt32BE(0), 0)
  // As much as it may, until nothing comes back any more: 64 MB would never be kept.
  for (let quiet = 0; quiet < 20 && sent < 64 * 1_048_576; ) {
    if (sent + 16_384 <= given) {
      peer.send(frame(0, 0, 1, new Uint8Array(16_384)))
      sent += 16_384
      continue
    }
    // Another request goes around meanwhile.
    peer.send(frame(6, 0, 0, u32(sent).concat(u32(quiet))))
    const pongs = peer.seen.of(6).length
    await peer.when(seen => seen.of(6).length > pongs, 'an answer to PING')
    if (window() > given) quiet = 0
    else quiet++
    given = window()
  }
  expect(sent).toBeLessThan(32 * 1_048_576)
  peer.send(frame(3, 0, 1, u32(CANCEL)))
})

test('a request that is held until its client is back keeps its body, and the bound of it', async () => {
  using app = startApp()
  let proxy: TcpProxy | undefined
  await using site = await startHttp2Site(app.port, {
    server: { limits: { maxBodyBytes: 10 } },
    via: port => {
      proxy = new TcpProxy(port)
      return proxy.port
    },
  })
  using between = proxy
  await using peer = await H2Peer.connect(site.port)
  const gone = next(site.server, 'disconnection')
  if (between !== undefined) between.isDown = true
  between?.cutAll()
  await gone
  peer.send(
    head(1, post(site.host, '/echo'), false),
    frame(0, 1, 1, Buffer.from('kept')),
    head(3, post(site.host, '/echo'), false),
    frame(0, 1, 3, new Uint8Array(11)),
    head(5, get('localhost', '/health')),
  )
  await peer.answered(5)
  expect(peer.seen.frames.filter(({ stream }) => stream === 1 || stream === 3)).toEqual([])
  if (between !== undefined) between.isDown = false
  expect((await peer.answered(1)).body(1).toString()).toBe('kept')
  expect((await peer.answered(3)).field(3, ':status')).toBe('413')
})

test('the JSON wire answers, too', async () => {
  using app = startApp()
  await using site = await startHttp2Site(app.port, { client: { wire: 'json' } })
  await using peer = await H2Peer.connect(site.port)
  peer.send(
    head(1, post(site.host, '/echo'), false),
    frame(0, 0, 1, Buffer.from('one ')),
    frame(0, 1, 1, Buffer.from('two')),
  )
  peer.send(head(3, get(site.host)))
  expect((await peer.answered(1)).body(1).toString()).toBe('one two')
  expect((await peer.answered(3)).body(3).toString()).toBe('hello\n')
})

test('a trailer with the name of a line of the guard ends the request', async () => {
  using origin = new RawOrigin()
  await using site = await startHttp2Site(origin.port, {
    server: { guarding: guarding({}) },
    client: { guard: { requestHeaders: { 'X-Env': 'preview' } } },
  })
  await using peer = await H2Peer.connect(site.port)
  const send = (stream: number, trailer: string) =>
    peer.send(
      head(stream, post(site.host, '/', []), false),
      frame(0, 0, stream, Buffer.from('hi')),
      head(stream, [[trailer, '5']]),
    )
  send(1, 'x_env')
  expect((await peer.answered(1)).of(1, 1)[0]?.fields?.[0]).toEqual([':status', '400'])
  // The first stream was thrown away.
  const first = await origin.accept()
  await first.when(() => first.isClosed, 'the end of the request')
  expect(first.text).not.toContain('x_env')
  send(3, 'x-sum')
  const app = await origin.accept()
  expect(await app.until('x-sum: 5\r\n\r\n')).toContain('X-Env: preview\r\n')
  await app.send('HTTP/1.1 204 No Content\r\n\r\n')
  await peer.answered(3)
})

test('guards ask for a password, and let those in who have it', async () => {
  using app = startApp()
  await using site = await startHttp2Site(app.port, {
    server: { guarding: guarding({}) },
    client: { guard: { bearer: ['a-secret-of-16-bytes'] } },
  })
  await using peer = await H2Peer.connect(site.port)
  peer.send(head(1, get(site.host)))
  peer.send(head(3, get(site.host, '/', [['authorization', 'Bearer a-secret-of-16-bytes']])))
  expect((await peer.answered(1)).field(1, ':status')).toBe('401')
  expect((await peer.answered(3)).body(3).toString()).toBe('hello\n')
})

test('a stop lets requests on their way finish, and closes behind them', async () => {
  using origin = new RawOrigin()
  await using site = await startHttp2Site(origin.port)
  await using peer = await H2Peer.connect(site.port)
  peer.send(head(1, get(site.host, '/slow')))
  const app = await origin.accept()
  await app.until('\r\n\r\n')
  const stopped = site.server.stop()
  await peer.when(seen => seen.goaways.length === 1, 'the first GOAWAY')
  expect(peer.seen.goaways).toEqual([[0x7fff_ffff, NO_ERROR]])
  // It was on its way: it is still served.
  peer.send(head(3, get('localhost', '/health')), frame(6, 1, 0, new Uint8Array(8)))
  await peer.answered(3)
  await peer.when(seen => seen.goaways.length === 2, 'the second GOAWAY')
  expect(peer.seen.goaways[1]).toEqual([3, NO_ERROR])
  await app.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi')
  expect((await peer.answered(1)).body(1).toString()).toBe('hi')
  await peer.end()
  await stopped
})

test('a visitor that never answers the first GOAWAY is not waited for', async () => {
  await using server = await startServer({ tls })
  await using peer = await H2Peer.connect(server.port)
  await peer.when(({ frames }) => frames.length > 0, 'SETTINGS')
  const stopped = server.stop()
  expect(await peer.end()).toBe(NO_ERROR)
  await stopped
  expect(peer.seen.goaways).toHaveLength(2)
})

test('deadlines: for the preface, for a head that drips, for a connection without a request', async () => {
  await using server = await startServer({ tls, limits: { headTimeoutMs: 500, idleTimeoutMs: 1_000 } })
  await using silent = await H2Peer.connect(server.port, [])
  silent.send([])
  await using dripping = await H2Peer.connect(server.port)
  dripping.send(frame(1, 1, 1, [0x82]))
  await using idle = await H2Peer.connect(server.port)
  idle.send(head(1, get('localhost', '/health')))
  await idle.answered(1)
  expect(await dripping.end()).toBe(CALM)
  expect(await idle.end()).toBe(NO_ERROR)
  expect(idle.seen.goaways).toEqual([[1, NO_ERROR]])
  expect(await silent.end()).toBe(CALM)
})

test('an answer of which nothing is taken is given up', async () => {
  using app = startApp()
  await using site = await startHttp2Site(app.port, { server: { limits: { sendTimeoutMs: 300 } } })
  await using peer = await H2Peer.connect(site.port, frame(4, 0, 0, [0, 4, ...u32(10)]))
  peer.send(head(1, get(site.host, '/big')))
  await peer.when(({ resets }) => 1 in resets, 'the reset')
  expect(peer.seen.resets).toEqual({ 1: CANCEL })
})

test('floods end their connection, and visitors beside them are served meanwhile', async () => {
  using origin = new RawOrigin()
  await using site = await startHttp2Site(origin.port)
  const floods: readonly ((index: number) => readonly number[])[] = [
    index => [...head(1 + 2 * index, get(site.host)), ...frame(3, 0, 1 + 2 * index, u32(CANCEL))],
    index => [...head(1 + 2 * index, get(site.host)), ...frame(8, 0, 1 + 2 * index, u32(0))],
    () => frame(6, 0, 0, new Uint8Array(8)),
    () => frame(4, 0, 0, []),
    index => frame(2, 0, 1 + 2 * index, [0, 0, 0, 0, 1]),
  ]
  await using beside = await H2Peer.connect(site.port)
  for (const [index, one] of floods.entries()) {
    await using peer = await H2Peer.connect(site.port)
    peer.send(Array.from({ length: 5_000 }, (_, count) => one(count)).flat())
    const stream = 1 + 2 * index
    beside.send(head(stream, get('localhost', '/health')))
    await beside.answered(stream)
    expect([index, await peer.end()]).toEqual([index, CALM])
  }
})

test('requests of one address have the bound of its connections, however few connections they are on', async () => {
  using origin = new RawOrigin()
  const limits = { maxAddressVisitors: 10 }
  await using site = await startHttp2Site(origin.port, { server: { limits } })
  const peers = await Promise.all([1, 2].map(() => H2Peer.connect(site.port)))
  const uploads = Array.from({ length: 8 }, (_, index) => 2 * index + 1)
  for (const peer of peers) for (const stream of uploads) peer.send(head(stream, post(site.host), false))
  const refused = () =>
    peers.flatMap(({ seen }) => uploads.filter(one => seen.field(one, ':status') === '503'))
  await eventually(() => refused().length === 6, 'the refusals')
  expect(peers.flatMap(({ seen }) => uploads.map(one => seen.field(one, 'x-localtunnels-error')))).toContain(
    'ADDRESS_LIMIT',
  )
  // One that is over leaves its place to another.
  const [peer] = peers
  const held = uploads.find(one => peer!.seen.field(one, ':status') === undefined) ?? 0
  peer!.send(frame(3, 0, held, u32(CANCEL)), head(99, post(site.host), false))
  for (let taken = 0; taken < 11; taken++) await origin.accept()
  expect(refused()).toHaveLength(6)
  for (const one of peers) await one[Symbol.asyncDispose]()
})

test('streams, resets and frames that say nothing are bounded as the limits of the server say', async () => {
  using origin = new RawOrigin()
  const limits = { maxHttp2Streams: 2, maxHttp2Resets: 5, maxHttp2Noise: 20 }
  await using site = await startHttp2Site(origin.port, { server: { limits } })
  const calm = (peer: H2Peer) =>
    peer.when(seen => seen.goaways.some(([, code]) => code === CALM), 'the end of the connection')
  await using asking = await H2Peer.connect(site.port)
  asking.send(head(1, get(site.host)), head(3, get(site.host)), head(5, get(site.host)))
  await asking.when(seen => 5 in seen.resets, 'the refusal')
  expect(asking.seen.resets).toEqual({ 5: REFUSED_STREAM })
  await using resetting = await H2Peer.connect(site.port)
  for (let stream = 1; stream < 200; stream += 2)
    resetting.send(head(stream, get(site.host)), frame(3, 0, stream, u32(CANCEL)))
  await calm(resetting)
  await using pinging = await H2Peer.connect(site.port)
  for (let count = 0; count < 200; count++) pinging.send(frame(6, 0, 0, u32(1).concat(u32(1))))
  await calm(pinging)
})

test('resets count as connections of their address, on however many connections they come', async () => {
  using origin = new RawOrigin()
  // Fewer resets than one connection may make by itself, and more than an address in two seconds.
  const [perSecond, resets] = [20, 200]
  await using site = await startHttp2Site(origin.port, { server: { limits: { maxAddressRate: perSecond } } })
  const told = next(site.server, 'error')
  await using peer = await H2Peer.connect(site.port)
  for (let stream = 1; stream < 2 * resets; stream += 2)
    peer.send(head(stream, get(site.host)), frame(3, 0, stream, u32(CANCEL)))
  await peer.when(seen => seen.goaways.some(([, code]) => code === CALM), 'the end of the connection')
  expect(await told).toMatchObject({ code: 'ADDRESS_LIMIT' })
})

test('requests that are left with their connection count as connections of their address, too', async () => {
  // It accepts and never answers.
  using origin = new RawOrigin()
  const [perSecond, requests, most] = [100, 50, 40]
  await using site = await startHttp2Site(origin.port, { server: { limits: { maxAddressRate: perSecond } } })
  let isRefused = false
  site.server.on('error', error => {
    isRefused ||= error instanceof TunnelError && error.code === 'ADDRESS_LIMIT'
  })
  // The connections alone are fewer than an address may open.
  for (let round = 0; round < most && !isRefused; round++) {
    const peer = await H2Peer.connect(site.port).catch(() => undefined)
    for (let stream = 1; stream < 2 * requests; stream += 2) peer?.send(head(stream, get(site.host)))
    // A fault ends the connection at once.
    peer?.send(frame(6, 0, 1, u32(1)))
    await peer?.when(seen => seen.goaways.length > 0, 'the end of the connection')
    await peer?.[Symbol.asyncDispose]()
  }
  expect(isRefused).toBe(true)
})

test('one who asks and never reads is cut before much is kept for it', async () => {
  await using server = await startServer({ tls })
  await using peer = await H2Peer.connect(server.port, frame(4, 0, 0, [0, 4, ...u32(0)]))
  peer.socket.pause()
  // Each answer's head waits; no window lets a body through, so no stream ever ends.
  for (let round = 0; round < 400 && !peer.isClosed; round++)
    peer.send(head(1 + 2 * round, get('localhost', '/health')))
  peer.socket.resume()
  const refused = () => Object.values(peer.seen.resets).filter(code => code === 7).length
  await peer.when(() => refused() > 0 || peer.isClosed, 'the bound of requests')
  expect(peer.seen.of(1).length).toBeLessThanOrEqual(100)
})

test('malformed requests are reset, and their connection goes on', async () => {
  using app = startApp()
  await using site = await startHttp2Site(app.port)
  await using peer = await H2Peer.connect(site.port)
  peer.send(
    head(1, [...get(site.host), ['connection', 'close']]),
    head(3, [...get(site.host), ['X-Big', '1']]),
    head(5, post(site.host, '/echo', [['content-length', '5']]), false),
    frame(0, 1, 5, Buffer.from('four')),
    head(7, post(site.host, '/echo', [['content-length', '3']]), false),
    frame(0, 1, 7, Buffer.from('four')),
    head(9, get(site.host)),
  )
  expect((await peer.answered(9)).body(9).toString()).toBe('hello\n')
  expect(peer.seen.resets).toEqual({
    1: PROTOCOL_ERROR,
    3: PROTOCOL_ERROR,
    5: PROTOCOL_ERROR,
    7: PROTOCOL_ERROR,
  })
})

test('http2 is a boolean, and off it is not offered', async () => {
  // @ts-expect-error: a text
  expect(() => new TunnelServer({ tls, http2: 'no' })).toThrow('http2 must be true or false')
  await using server = await startServer({ tls, http2: false })
  await using peer = await H2Peer.connect(server.port)
  expect(peer.socket.alpnProtocol).toBeFalsy()
})
