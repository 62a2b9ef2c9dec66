// Apps that speak HTTP/2, written frame by frame: what visitors of HTTP/1.1 get of them, and what such an app may not do.

import { afterAll, expect, test } from 'bun:test'
import { createSecureServer, createServer, type Http2Server, type ServerHttp2Stream } from 'node:http2'
import { createServer as createTlsServer } from 'node:https'
import { TunnelClient } from '../../src/index.ts'
import { MAX_NOISE } from '../../src/parts/http2/app.ts'
import { ask } from '../support/ask.ts'
import { next } from '../support/events.ts'
import { frame, SETTINGS, u32 } from '../support/h2-frames.ts'
import { type RawConnection, RawOrigin, rawDial } from '../support/raw.ts'
import { rejection } from '../support/rejection.ts'
import { TEST_CERT, TEST_KEY } from '../support/tls.ts'
import { startServer, startTunnel } from '../support/tunnel.ts'
import { within } from '../support/within.ts'

const OK = [0x88]
/** `:status: 103` */
const INTERIM = [0x08, 3, 0x31, 0x30, 0x33]
const END_HEADERS = 4
const END_STREAM = 1
const closing: Http2Server[] = []
afterAll(() => {
  for (const app of closing) app.close()
})

async function startApp(answer: (stream: ServerHttp2Stream, path: string) => void, settings = {}) {
  const app = createServer({ settings })
  closing.push(app)
  const sessions = { count: 0 }
  app.on('session', () => sessions.count++)
  app.on('stream', (stream, headers) => {
    stream.on('error', () => {})
    // A server has no other streams.
    answer(stream as ServerHttp2Stream, String(headers[':path']))
  })
  await new Promise<void>(resolve => app.listen(0, '127.0.0.1', resolve))
  const address = app.address()
  return { port: typeof address === 'object' && address !== null ? address.port : 0, sessions }
}

const tunnelTo = (port: number) => startTunnel({ port, protocol: 'h2c' })

/** The app's side of one connection, whose first request has come. */
async function firstRequest(origin: RawOrigin): Promise<RawConnection> {
  const app = await origin.accept()
  await app.until('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
  await app.send(Uint8Array.from(SETTINGS))
  return app
}

const answerOf = (stream: number, text: string) => [
  ...frame(1, END_HEADERS, stream, OK),
  ...frame(0, END_STREAM, stream, text),
]

test('bodies both ways, answers without a body, and many requests share one connection', async () => {
  const app = await startApp((stream, path) => {
    let bytes = 0
    stream.on('data', (piece: Buffer) => {
      bytes += piece.length
    })
    stream.on('end', () => {
      if (path === '/none') return stream.respond({ ':status': 204 }, { endStream: true })
      stream.respond({ ':status': path === '/early' ? 404 : 200 })
      stream.end(path === '/big' ? 'x'.repeat(2_000_000) : `${bytes}`)
    })
  })
  await using tunnel = await tunnelTo(app.port)
  const { port, host } = tunnel
  expect(await ask(port, host, { method: 'POST', body: 'y'.repeat(1_000_000) })).toMatchObject({
    status: 200,
    body: '1000000',
  })
  expect((await ask(port, host, { path: '/big' })).body).toHaveLength(2_000_000)
  expect(await ask(port, host, { path: '/none' })).toMatchObject({ status: 204, body: '' })
  expect(await ask(port, host, { method: 'HEAD' })).toMatchObject({ status: 200, body: '' })
  const all = await Promise.all(Array.from({ length: 60 }, () => ask(port, host)))
  expect(all.every(({ body }) => body === '0')).toBe(true)
  expect(app.sessions.count).toBe(1)
})

test('an app that allows one exchange at a time gets more connections, and no more exchanges', async () => {
  let [now, most] = [0, 0]
  const app = await startApp(
    stream => {
      most = Math.max(most, ++now)
      stream.on('close', () => now--)
      stream.respond({ ':status': 200 })
      stream.end('one')
    },
    { maxConcurrentStreams: 1 },
  )
  await using tunnel = await tunnelTo(app.port)
  expect(await ask(tunnel.port, tunnel.host)).toMatchObject({ body: 'one' })
  const all = await Promise.all(Array.from({ length: 20 }, () => ask(tunnel.port, tunnel.host)))
  expect(all.every(({ status }) => status === 200)).toBe(true)
  expect(app.sessions.count).toBeLessThanOrEqual(21)
  expect(most).toBeLessThanOrEqual(app.sessions.count)
})

test('after GOAWAY what the app did not look at goes to another connection', async () => {
  using origin = new RawOrigin()
  await using tunnel = await tunnelTo(origin.port)
  const first = ask(tunnel.port, tunnel.host)
  const app = await firstRequest(origin)
  await app.send(Uint8Array.from(answerOf(1, 'one')))
  expect(await first).toMatchObject({ body: 'one' })
  await app.send(Uint8Array.from(frame(7, 0, 0, [...u32(1), ...u32(0)])))
  const second = ask(tunnel.port, tunnel.host)
  const again = await firstRequest(origin)
  await again.send(Uint8Array.from(answerOf(1, 'two')))
  expect(await second).toMatchObject({ body: 'two' })
})

for (const [what, refusal, again] of [
  ['REFUSED_STREAM', frame(3, 0, 1, u32(7)), 3],
  ['GOAWAY below its stream', frame(7, 0, 0, [...u32(0), ...u32(0)]), 1],
] as const)
  test(`a request that the app answered with ${what} is sent once more, whatever its method, and no more than once`, async () => {
    using origin = new RawOrigin()
    await using tunnel = await tunnelTo(origin.port)
    const post = () => ask(tunnel.port, tunnel.host, { method: 'POST', body: 'body' })
    const one = post()
    let app = await firstRequest(origin)
    await app.until('body')
    await app.send(Uint8Array.from(refusal))
    if (again === 1) app = await firstRequest(origin)
    await app.until('body')
    await app.send(Uint8Array.from(answerOf(again, 'good')))
    expect(await within(one, 'the answer')).toMatchObject({ status: 200, body: 'good' })
    // Refused each time it fails.
    const refused = post()
    for (const stream of [again + 2, again + 4]) {
      await app.until('body')
      await app.send(Uint8Array.from(frame(3, 0, stream, u32(7))))
    }
    expect(await within(refused, 'the refusal')).toMatchObject({ status: 502, code: 'ORIGIN_CLOSED' })
  })

test('a POST that the app reset for another reason is not sent again', async () => {
  using origin = new RawOrigin()
  await using tunnel = await tunnelTo(origin.port)
  const one = ask(tunnel.port, tunnel.host, { method: 'POST', body: 'body' })
  const app = await firstRequest(origin)
  await app.until('body')
  await app.send(Uint8Array.from(frame(3, 0, 1, u32(2))))
  expect(await within(one, 'the answer')).toMatchObject({ status: 502, code: 'ORIGIN_CLOSED' })
})

/** The head of this request came, which has no body. */
const asked = (app: RawConnection, id: number) =>
  app.when(() => app.text.includes(`\x01\x05\0\0\0${String.fromCharCode(id)}`), `request ${id}`)

test('an answer in DATA frames of a byte arrives whole, whatever is behind it', async () => {
  using origin = new RawOrigin()
  await using tunnel = await tunnelTo(origin.port)
  // As much as the window of a stream lets through.
  const text = Array.from({ length: 260_000 }, (_, index) =>
    String.fromCharCode(0x61 + ((index * 7) % 26)),
  ).join('')
  const inFrames = (stream: number) =>
    Buffer.concat([
      Uint8Array.from(frame(1, END_HEADERS, stream, OK)),
      ...Array.from(text, letter => Uint8Array.from(frame(0, 0, stream, letter))),
      Uint8Array.from(frame(0, END_STREAM, stream)),
    ])
  const one = ask(tunnel.port, tunnel.host)
  const app = await firstRequest(origin)
  await app.send(inFrames(1))
  const first = await within(one, 'the first answer')
  expect(first.status).toBe(200)
  expect(first.body === text).toBe(true)
  const other = ask(tunnel.port, tunnel.host)
  await asked(app, 3)
  await app.send(Uint8Array.from(answerOf(3, 'fine')))
  expect(await within(other, 'the other answer')).toMatchObject({ status: 200, body: 'fine' })
  const last = ask(tunnel.port, tunnel.host)
  await asked(app, 5)
  await app.send(inFrames(5))
  app.socket.end()
  // The end of the connection does not overtake it.
  expect((await within(last, 'the last answer')).body === text).toBe(true)
})

/** What an app sends that is no answer, and what its visitor gets. */
const FAULTS: readonly [string, readonly number[]][] = [
  [
    'a flood of PING',
    Array.from({ length: 2 * MAX_NOISE }, () => frame(6, 0, 0, u32(1).concat(u32(1)))).flat(),
  ],
  ['a flood of SETTINGS', Array.from({ length: MAX_NOISE }, () => frame(4, 0, 0)).flat()],
  ['a flood of empty DATA', Array.from({ length: 2 * MAX_NOISE }, () => frame(0, 0, 1)).flat()],
  [
    'a head that never ends',
    [frame(1, 0, 1, OK), ...Array.from({ length: 40 }, () => frame(9, 0, 1, OK))].flat(),
  ],
  ['a promise', frame(5, END_HEADERS, 1, [...u32(2), ...OK])],
  ['DATA before a head', frame(0, END_STREAM, 1, 'x')],
  ['a window that passes 2^31 - 1', frame(8, 0, 0, u32(0x7fff_ffff))],
  ['an answer to no request', frame(1, END_HEADERS | END_STREAM, 7, OK)],
  ['a block that cannot be decoded', frame(1, END_HEADERS, 1, [0xff, 0xff, 0xff, 0xff, 0xff, 0xff])],
  ['a frame that is too large', frame(0, 0, 1, [], 0xffffff)],
  [
    'a length that is not kept',
    [...frame(1, END_HEADERS, 1, [...OK, 0x0f, 0x0d, 1, 0x35]), ...frame(0, END_STREAM, 1, 'abc')],
  ],
  [
    'heads above the bounds, again and again',
    [
      // A field of 3,900 bytes for the table, and then heads that name it 1,000 times.
      ...frame(1, END_HEADERS, 1, [...INTERIM, 0x40, 1, 0x62, 127, 0xbd, 0x1d, ...Buffer.alloc(3_900, 'x')]),
      ...Array.from({ length: 40 }, () =>
        frame(1, END_HEADERS, 1, [...INTERIM, ...Buffer.alloc(1_000, 0x80 | 62)]),
      ).flat(),
    ],
  ],
  [
    'heads on a stream that is over, without end',
    [
      ...frame(3, 0, 1, u32(2)),
      ...Array.from({ length: 2 * MAX_NOISE }, () => frame(1, END_HEADERS, 1, OK)).flat(),
    ],
  ],
  ['HTTP/1.1', [...Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi')]],
]

for (const [what, bytes] of FAULTS)
  test(`an app that sends ${what}: its visitor gets 502 or a cut answer, the next one a good one`, async () => {
    using origin = new RawOrigin()
    await using tunnel = await tunnelTo(origin.port)
    const answer = ask(tunnel.port, tunnel.host).then(
      ({ status, code }) => (status === 502 ? code : status),
      () => 'cut',
    )
    const report = next(tunnel.server, 'request')
    const app = await firstRequest(origin)
    await app.send(Uint8Array.from(bytes))
    expect(['ORIGIN_INVALID', 'ORIGIN_CLOSED', 'cut']).toContain(String(await within(answer, 'the answer')))
    const { error, reason = '' } = await report
    if (error === 'ORIGIN_INVALID') expect(reason).toMatch(/ /)
    const another = ask(tunnel.port, tunnel.host)
    if (what === 'DATA before a head' || what === 'a length that is not kept') {
      // The connection goes on: only its stream was wrong.
      await app.send(Uint8Array.from(answerOf(3, 'fine')))
    } else await (await firstRequest(origin)).send(Uint8Array.from(answerOf(1, 'fine')))
    expect(await within(another, 'the next answer')).toMatchObject({ status: 200, body: 'fine' })
  })

test('a field that some take for framing is left out, and any status passes', async () => {
  using origin = new RawOrigin()
  await using tunnel = await tunnelTo(origin.port)
  const literal = (name: string, value: string) => [
    ...[0, name.length, ...Buffer.from(name)],
    ...[value.length, ...Buffer.from(value)],
  ]
  const visitor = await rawDial(tunnel.port)
  await visitor.send(`GET / HTTP/1.1\r\nHost: ${tunnel.host}\r\n\r\n`)
  const app = await firstRequest(origin)
  await app.send(
    Uint8Array.from([
      ...frame(1, END_HEADERS, 1, [0x08, 3, ...Buffer.from('999'), ...literal('content_length', '7')]),
      ...frame(0, 0, 1, 'hello'),
      ...frame(1, END_HEADERS | END_STREAM, 1, [...literal('content-length', '5'), ...literal('x-sum', '1')]),
    ]),
  )
  expect(await visitor.until('1\r\n\r\n')).toBe(
    'HTTP/1.1 999 \r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nx-sum: 1\r\n\r\n',
  )
})

test('a visitor that leaves cancels its exchange and nothing else', async () => {
  const cancelled = Promise.withResolvers<number>()
  const app = await startApp((stream, path) => {
    if (path === '/slow') stream.on('aborted', () => cancelled.resolve(stream.rstCode ?? 0))
    else {
      stream.respond({ ':status': 200 })
      stream.end('fine')
    }
  })
  await using tunnel = await tunnelTo(app.port)
  await ask(tunnel.port, tunnel.host)
  const leaving = new AbortController()
  const slow = rejection(ask(tunnel.port, tunnel.host, { path: '/slow', signal: leaving.signal }))
  const others = Promise.all(Array.from({ length: 10 }, () => ask(tunnel.port, tunnel.host)))
  expect((await others).every(({ body }) => body === 'fine')).toBe(true)
  leaving.abort()
  await slow
  expect(await within(cancelled.promise, 'the reset')).toBe(8)
  expect(app.sessions.count).toBe(1)
})

test('what cannot be combined with h2c is refused before anything is asked', async () => {
  await using server = await startServer()
  const client = new TunnelClient({ server: server.url })
  const text = () => new Response('')
  for (const options of [{ fetch: text }, { folder: '.' }, { url: 'https://localhost:1' }] as const)
    expect(await rejection(client.http({ ...options, protocol: 'h2c' }))).toMatchObject({
      code: 'OPTION_INVALID',
    })
  await client.disconnect()
})

test('an https app is spoken to in HTTP/2 where ALPN chooses it, and refused where it does not', async () => {
  for (const [isHttp2, outcome] of [
    [true, { status: 200, body: 'h2' }],
    [false, { status: 502, code: 'ORIGIN_TLS' }],
  ] as const) {
    const keys = { cert: TEST_CERT, key: TEST_KEY }
    const app = isHttp2
      ? createSecureServer(keys, (request, response) =>
          response.end(request.httpVersion === '2.0' ? 'h2' : 'h1'),
        )
      : createTlsServer(keys, (_request, response) => response.end('h1'))
    await new Promise<void>(resolve => app.listen(0, '127.0.0.1', resolve))
    const address = app.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    {
      await using tunnel = await startTunnel({
        url: `https://127.0.0.1:${port}`,
        host: undefined,
        appInsecure: true,
        protocol: 'h2',
      } as never)
      expect(await ask(tunnel.port, tunnel.host)).toMatchObject(outcome)
    }
    app.close()
  }
})
