// Every kind of exchange is a row with what belongs to it: messages of WebSockets, events, trailers, 1xx answers, raw connections.

import { afterAll, expect, test } from 'bun:test'
import { once } from 'node:events'
import { createServer, type IncomingMessage, request } from 'node:http'
import { type AddressInfo, connect, createServer as createRawServer } from 'node:net'
import { createServer as createTlsServer, connect as secure } from 'node:tls'
import { constants, deflateRawSync } from 'node:zlib'
import { WebSocketServer, WebSocket as WsSocket } from 'ws'
import type { ExchangeRow, Frame } from '../../../src/exchange.ts'
import { TunnelClient } from '../../../src/index.ts'
import { WebSocketReader } from '../../../src/parts/inspect/frames/websocket.ts'
import { makeCertificate } from '../../support/certificates.ts'
import { DatagramVisitor, datagramApp } from '../../support/datagrams.ts'
import { codeOf } from '../../support/events.ts'
import { InspectorApi } from '../../support/inspector.ts'
import { startServer, startTunnel } from '../../support/tunnel.ts'
import { joined, plainFrame } from '../../support/websocket.ts'

const HOST = '127.0.0.1'
const closing: (() => unknown)[] = []
afterAll(() => Promise.all(closing.map(close => close())))

async function listening(server: {
  listen(port: number, host: string): unknown
  address(): unknown
  close(): unknown
}): Promise<number> {
  closing.push(() => server.close())
  server.listen(0, HOST)
  await once(server as never, 'listening')
  // A TCP port.
  return (server.address() as AddressInfo).port
}

async function framesOf(api: InspectorApi, { id }: ExchangeRow): Promise<readonly Frame[]> {
  return (await api.ask(`exchanges/${id}/frames?limit=1000`)).json.frames
}

/** Without what differs from run to run. */
const shape = ({ atMs: _at, ...rest }: Frame) => rest

// ── WebSockets ─────────────────────────────────────────────────────────────────────────────────────────────────

for (const [name, perMessageDeflate] of [
  ['as they are', false],
  ['compressed, with a dictionary that goes on', { threshold: 0 }],
  [
    'compressed, each for itself',
    { threshold: 0, serverNoContextTakeover: true, clientNoContextTakeover: true },
  ],
] as const)
  test(`messages of a WebSocket, ${name}: direction, opcode, size and content`, async () => {
    const app = new WebSocketServer({
      port: 0,
      host: HOST,
      perMessageDeflate,
      handleProtocols: () => 'chat.v2',
    })
    closing.push(() => app.close())
    await once(app, 'listening')
    app.on('connection', socket =>
      socket.on('message', (message: Buffer, isBinary: boolean) =>
        socket.send(message, { binary: isBinary }),
      ),
    )
    await using tunnel = await startTunnel({ port: (app.address() as AddressInfo).port, inspect: true })
    const api = new InspectorApi(tunnel.client)
    const visitor = new WsSocket(`ws://${HOST}:${tunnel.port}/chat?room=1`, ['chat.v2'], {
      headers: { host: tunnel.host },
      perMessageDeflate: perMessageDeflate !== false && { threshold: 0 },
    })
    await once(visitor, 'open')
    const long = 'the same words again and again, '.repeat(50)
    const echoed = async (data: string | Uint8Array) => {
      visitor.send(data)
      await once(visitor, 'message')
    }
    await echoed(long)
    await echoed(long)
    await echoed(new Uint8Array([0, 255, 1]))
    await echoed('grünes')
    visitor.ping('are you there')
    await once(visitor, 'pong')
    visitor.close(4_001, 'enough')
    await once(visitor, 'close')

    const row = await api.ended('/chat')
    expect(row).toMatchObject({ kind: 'websocket', status: 101, state: 'done', isIncomplete: false })
    expect((await api.detail(row.id)).websocket).toEqual({
      protocol: 'chat.v2',
      isCompressed: perMessageDeflate !== false,
    })
    const all = await framesOf(api, row)
    expect(all.map(({ index }) => index)).toEqual(all.map((_, index) => index))
    const [fromVisitor, fromApp] = (['visitor', 'app'] as const).map(from =>
      all
        .filter(frame => frame.from === from)
        .map(({ index: _index, from: _from, ...rest }) => shape(rest as Frame)),
    )
    const compressed = perMessageDeflate === false ? {} : { isCompressed: true }
    const text = (content: string) => {
      const size = Buffer.byteLength(content)
      return { type: 'text', totalBytes: size, keptBytes: size, text: content, ...compressed }
    }
    const said = [
      text(long),
      text(long),
      { type: 'binary', totalBytes: 3, keptBytes: 3, base64: 'AP8B', ...compressed },
      text('grünes'),
    ]
    const ping = { totalBytes: 13, keptBytes: 13, base64: Buffer.from('are you there').toString('base64') }
    const close = { type: 'close', totalBytes: 8, keptBytes: 8, closeCode: 4_001, text: 'enough' }
    expect(fromVisitor).toEqual([...said, { type: 'ping', ...ping }, close] as never)
    expect(fromApp).toEqual([...said, { type: 'pong', ...ping }, close] as never)
    expect((await api.rows('?filter=frame:gr%C3%BCnes')).map(({ id }) => id)).toEqual([row.id])
  })

test('of messages above the bounds the beginning is kept, the oldest go first, and it says so', async () => {
  const app = new WebSocketServer({ port: 0, host: HOST })
  closing.push(() => app.close())
  await once(app, 'listening')
  app.on('connection', socket => socket.on('message', () => socket.send('taken')))
  await using tunnel = await startTunnel({
    port: (app.address() as AddressInfo).port,
    inspect: { maxBody: 100, maxFrames: 20 },
  })
  const api = new InspectorApi(tunnel.client)
  const visitor = new WsSocket(`ws://${HOST}:${tunnel.port}/many`, { headers: { host: tunnel.host } })
  await once(visitor, 'open')
  for (let n = 0; n < 25; n++) {
    visitor.send(`${n} `.padEnd(1_000, '.'))
    await once(visitor, 'message')
  }
  visitor.close()
  await once(visitor, 'close')
  const { frames, id } = await api.ended('/many')
  // 50 messages and two closes.
  expect(frames.total).toBe(52)
  expect(frames.kept).toBeLessThanOrEqual(20)
  const { json } = await api.ask(`exchanges/${id}/frames`)
  expect(json.total).toBe(52)
  expect(json.frames.length).toBe(frames.kept)
  expect(json.frames[0].index).toBe(52 - frames.kept)
  const last = json.frames.findLast(({ from, type }: Frame) => from === 'visitor' && type === 'text')
  expect(last).toMatchObject({ totalBytes: 1_000, keptBytes: 100, text: '24 '.padEnd(100, '.') })
})

test.each([true, false])(
  'frames of a message in pieces, cut anywhere, with another one in between; masked: %p',
  isMasked => {
    const text = 'grüne Äpfel, grüne Birnen'
    const packed = deflateRawSync(text, { finishFlush: constants.Z_SYNC_FLUSH }).subarray(0, -4)
    const mask = isMasked ? { mask: [7, 0, 255, 1] as const } : {}
    const bytes = joined([
      plainFrame({ opcode: 1, payload: packed.subarray(0, 5), fin: false, rsv: 4, ...mask }),
      plainFrame({ opcode: 9, payload: 'hm', ...mask }),
      plainFrame({ opcode: 0, payload: '', fin: false, ...mask }),
      plainFrame({ opcode: 0, payload: packed.subarray(5), ...mask }),
      plainFrame({ opcode: 8, payload: '', ...mask }),
    ])
    const size = Buffer.byteLength(text)
    for (let cut = 0; cut <= bytes.length; cut++) {
      const found: unknown[] = []
      const reader = new WebSocketReader(1_000, { noContextTakeover: false }, frame => found.push(frame))
      reader.take(bytes.subarray(0, cut))
      reader.take(bytes.subarray(cut))
      expect(found).toEqual([
        { type: 'ping', totalBytes: 2, keptBytes: 2, base64: 'aG0=' },
        { type: 'text', totalBytes: size, keptBytes: size, text, isCompressed: true },
        { type: 'close', totalBytes: 0, keptBytes: 0 },
      ])
      expect(reader.isBroken).toBe(false)
    }
  },
)

test('what is no WebSocket frame ends the looking, and what cannot be inflated is shown as it came', () => {
  const found: Partial<Frame>[] = []
  const reader = new WebSocketReader(1_000, { noContextTakeover: false }, frame => found.push(frame))
  reader.take(plainFrame({ opcode: 1, payload: 'no deflate', rsv: 4 }))
  expect(found).toMatchObject([{ type: 'text', base64: btoa('no deflate'), isCompressed: true }])
  reader.take(plainFrame({ opcode: 0, payload: 'goes on with nothing' }))
  expect(reader.isBroken).toBe(true)
  reader.take(plainFrame({ opcode: 1, payload: 'unseen' }))
  expect(found.length).toBe(1)
})

test('a message that inflates to more than four times the bound is shown as it came, and costs no memory', () => {
  const found: Partial<Frame>[] = []
  const reader = new WebSocketReader(60_000, { noContextTakeover: true }, frame => found.push(frame))
  const bomb = deflateRawSync(new Uint8Array(50_000_000)).subarray(0, 50_000)
  const small = deflateRawSync('small')
  reader.take(plainFrame({ opcode: 1, payload: bomb, rsv: 4 }))
  reader.take(plainFrame({ opcode: 1, payload: small, rsv: 4 }))
  expect(found).toMatchObject([
    { base64: bomb.toString('base64'), totalBytes: bomb.length },
    { text: 'small', totalBytes: 5 },
  ])
})

// ── HTTP ───────────────────────────────────────────────────────────────────────────────────────────────────────

test('server-sent events, one by one, while the stream goes on', async () => {
  const { promise: mayGoOn, resolve: goOn } = Promise.withResolvers<void>()
  const port = await listening(
    createServer(async (_, answer) => {
      answer.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' })
      answer.write(': a comment\n\nid: 7\nevent: price\ndata: one\ndata: two\n\nda')
      await mayGoOn
      answer.end('ta: grün\r\n\r\ndata: without an end')
    }),
  )
  await using tunnel = await startTunnel({ port, inspect: true })
  const api = new InspectorApi(tunnel.client)
  const events = await api.events('?frames=1')
  const visiting = fetch(`http://${HOST}:${tunnel.port}/prices`, { headers: { host: tunnel.host } })
  let first = await events.next()
  while (first.type !== 'frame') first = await events.next()
  events.stop()
  expect(first.frame).toMatchObject({
    index: 0,
    from: 'app',
    type: 'event',
    event: 'price',
    eventId: '7',
    text: 'one\ntwo',
  })
  expect((await api.rows())[0]).toMatchObject({ kind: 'sse', state: 'open', status: 200 })
  goOn()
  await (await visiting).text()
  const row = await api.ended('/prices')
  expect(row.frames.total).toBe(2)
  const [, second] = await framesOf(api, row)
  expect(second).toMatchObject({ index: 1, type: 'event', text: 'grün' })
  expect(second?.atMs).toBeGreaterThanOrEqual(first.frame.atMs)
})

test('1xx answers and trailers of both ways', async () => {
  const port = await listening(
    createServer((request, answer) => {
      answer.writeEarlyHints({ link: '</style.css>; rel=preload' })
      answer.writeProcessing()
      request.resume().on('end', () => {
        answer.writeHead(200, { trailer: 'X-Sum' })
        answer.write('body')
        answer.addTrailers({ 'X-Sum': request.trailers['x-count'] ?? 'none', 'Set-Cookie': 's=1' })
        answer.end()
      })
    }),
  )
  await using tunnel = await startTunnel({ port, inspect: true })
  const api = new InspectorApi(tunnel.client)
  const asking = request({
    host: HOST,
    port: tunnel.port,
    path: '/trailers',
    method: 'POST',
    headers: { host: tunnel.host, trailer: 'X-Count', expect: '100-continue' },
  })
  asking.on('continue', () => {
    asking.addTrailers({ 'X-Count': '42' })
    asking.end('some')
  })
  asking.flushHeaders()
  const [answer] = (await once(asking, 'response')) as [IncomingMessage]
  await once(answer.resume(), 'end')
  const { id } = await api.ended('/trailers')
  const detail = await api.detail(id)
  expect(detail.interim.map(head => head.split('\r\n', 1)[0])).toEqual([
    'HTTP/1.1 100 Continue',
    'HTTP/1.1 103 Early Hints',
    'HTTP/1.1 102 Processing',
  ])
  expect(detail.interim[1]).toContain('Link: </style.css>; rel=preload\r\n')
  expect(detail.request?.trailers).toEqual([{ name: 'X-Count', value: '42' }])
  expect(detail.response?.trailers).toMatchObject([
    { name: 'X-Sum', value: '42' },
    { name: 'Set-Cookie', value: '••••••', isSecret: true },
  ])
  expect(detail.response?.body).toMatchObject({ totalBytes: 4, isComplete: true })
})

// ── Raw connections ────────────────────────────────────────────────────────────────────────────────────────────

test('connections of TCP and TLS tunnels and flows of UDP ones are rows: who, how long, how many bytes', async () => {
  const pem = await makeCertificate(['db.localhost'])
  const tcpPort = await listening(createRawServer(socket => socket.pipe(socket)))
  const tlsPort = await listening(createTlsServer(pem, socket => socket.pipe(socket)))
  await using datagrams = await datagramApp()
  const server = await startServer({ tlsPort: 0 })
  const client = new TunnelClient({ server: `http://${HOST}:${server.port}`, inspect: true })
  closing.push(
    () => server.stop(),
    () => client.disconnect(),
  )
  const { port = 0 } = await client.tcp({ port: tcpPort, host: HOST })
  await client.tls({ port: tlsPort, host: HOST, subdomain: 'db' })
  const { port: udpPort = 0 } = await client.udp({ port: datagrams.port, idleTimeoutMs: 1_000 })
  const api = new InspectorApi(client)

  const plain = connect({ port, host: HOST })
  plain.write('x'.repeat(1_000))
  let got = 0
  plain.on('data', piece => {
    got += piece.length
    if (got === 1_000) plain.end()
  })
  await once(plain, 'close')
  const tcp = await api.ended('is:tcp')
  expect(tcp).toMatchObject({ kind: 'tcp', state: 'done', method: '', path: '', status: 0, visitor: HOST })
  expect([tcp.bytesIn, tcp.bytesOut, tcp.tunnel]).toEqual([1_000, 1_000, `tcp-${port}`])
  expect(tcp.times.totalMs).toBeGreaterThan(0)
  expect((await api.send('POST', `exchanges/${tcp.id}/replay`)).json.error.code).toBe('REPLAY_IMPOSSIBLE')

  const sealed = secure({ port: server.tlsPort ?? 0, host: HOST, servername: 'db.localhost', ca: pem.cert })
  await once(sealed, 'secureConnect')
  sealed.write('hello')
  await once(sealed, 'data')
  sealed.end()
  await once(sealed, 'close')
  const tls = await api.ended('is:tls')
  expect(tls).toMatchObject({ kind: 'tls', tunnel: 'db', visitor: HOST })
  // More than what was said: the handshake, which nobody here can read.
  expect(tls.bytesIn).toBeGreaterThan(300)

  await using visitor = await DatagramVisitor.to(udpPort)
  await visitor.send('ping')
  await visitor.received(1)
  const udp = await api.ended('is:udp')
  // With the length that stands in front of a datagram on its way here.
  expect(udp).toMatchObject({ kind: 'udp', tunnel: `udp-${udpPort}`, state: 'done', bytesIn: 6 })
})

test('a connection that nobody took is not taken for the next one', async () => {
  const server = await startServer()
  const client = new TunnelClient({ server: `http://${HOST}:${server.port}`, inspect: true })
  client.on('error', () => {})
  closing.push(
    () => server.stop(),
    () => client.disconnect(),
  )
  let app = createRawServer(socket => socket.end('hello'))
  const appPort = await listening(app)
  const { port = 0 } = await client.tcp({ port: appPort, host: HOST })
  const api = new InspectorApi(client)
  const visit = async (localAddress: string) => {
    const socket = connect({ port, host: HOST, localAddress })
    socket.on('error', () => {})
    await new Promise(resolve => socket.resume().once('close', resolve))
  }
  await visit('127.0.0.2')
  await new Promise(resolve => app.close(resolve))
  await visit('127.0.0.3')
  app = createRawServer(socket => socket.end('hello'))
  app.listen(appPort, HOST)
  await once(app, 'listening')
  await visit('127.0.0.4')
  app.close()
  await api.ended('visitor:127.0.0.4')
  expect((await api.rows()).map(({ visitor, state, code }) => [visitor, state, code])).toEqual([
    ['127.0.0.4', 'done', undefined],
    ['127.0.0.3', 'failed', 'ORIGIN_REFUSED'],
    ['127.0.0.2', 'done', undefined],
  ])
})

test('a tunnel that the server refused is none of the inspector', async () => {
  const server = await startServer()
  const client = new TunnelClient({ server: server.url, inspect: true })
  const share = (subdomain: string) =>
    client.http({ fetch: () => new Response('ok'), subdomain, exact: true })
  try {
    await share('shop')
    expect(await codeOf(share('shop'))).toBe('NAME_TAKEN')
    const { json } = await new InspectorApi(client).ask('session')
    expect(json.tunnels.map(({ name }: { name: string }) => name)).toEqual(['shop'])
  } finally {
    await client.disconnect()
    await server.stop()
  }
})
