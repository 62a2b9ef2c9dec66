// Real WebSockets through the tunnel: `ws` and Bun's own as apps, `ws` and Bun's own as visitors.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createHash, randomBytes } from 'node:crypto'
import { type LiveTunnel, startTunnel } from '../support/tunnel.ts'
import { within } from '../support/within.ts'

/** `ws` proper, in Node: inside of Bun the package is a stand-in. */
const NODE_APP = `
  const { WebSocketServer } = require('ws')
  const server = new WebSocketServer({
    port: 0, host: '127.0.0.1', perMessageDeflate: { threshold: 0 },
    handleProtocols: offered => (offered.has('chat') ? 'chat' : false),
    verifyClient: (info, done) => info.req.url === '/refuse' ? done(false, 401, 'No', { 'X-Why': 'no' }) : done(true),
  })
  server.on('connection', (socket, request) => {
    if (request.url === '/first') socket.send('first')
    if (request.url === '/close') return socket.close(3001, 'a reason')
    socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }))
    socket.on('ping', data => socket.send('pinged with ' + data))
    socket.on('close', (code, reason) => console.log(JSON.stringify({ code, reason: String(reason), extensions: socket.extensions })))
  })
  server.on('listening', () => console.log(server.address().port))
`

let app: Bun.Subprocess<'ignore', 'pipe', 'inherit'>
let lines: AsyncGenerator<string>
let tunnel: LiveTunnel

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  let text = ''
  for await (const chunk of stream.pipeThrough(new TextDecoderStream() as never)) {
    // same bytes, other types
    text += chunk
    const parts = text.split('\n')
    text = parts.pop()!
    yield* parts
  }
}

beforeAll(async () => {
  app = Bun.spawn(['node', '-e', NODE_APP], {
    cwd: `${import.meta.dir}/../..`,
    stdout: 'pipe',
    stderr: 'inherit',
  })
  lines = linesOf(app.stdout)
  const { value: port } = await lines.next()
  tunnel = await startTunnel({ port: Number(port) })
})

afterAll(async () => {
  await tunnel[Symbol.asyncDispose]()
  app.kill()
  await app.exited
})

async function open(path = '/', protocols: string[] = []): Promise<WebSocket> {
  // Bun takes headers and protocols in one object; the DOM's type does not know.
  const socket = new WebSocket(`ws://127.0.0.1:${tunnel.port}${path}`, {
    headers: { host: tunnel.host },
    protocols,
  } as never)
  socket.binaryType = 'arraybuffer'
  return socket
}

const next = (socket: WebSocket): Promise<MessageEvent> =>
  within(new Promise(resolve => socket.addEventListener('message', resolve, { once: true })), 'a message')
const opened = (socket: WebSocket): Promise<unknown> =>
  within(new Promise(resolve => socket.addEventListener('open', resolve, { once: true })), 'open')
const closed = (socket: WebSocket): Promise<CloseEvent> =>
  within(new Promise(resolve => socket.addEventListener('close', resolve, { once: true })), 'close')

test('10,000 messages come back in order', async () => {
  const socket = await open()
  await opened(socket)
  let count = 0
  let isInOrder = true
  const done = new Promise<void>(resolve =>
    socket.addEventListener('message', ({ data }) => {
      isInOrder &&= data === `message ${count}`
      if (++count === 10_000) resolve()
    }),
  )
  for (let n = 0; n < 10_000; n++) socket.send(`message ${n}`)
  await within(done, '10,000 messages')
  expect(isInOrder).toBe(true)
  socket.close()
  await closed(socket)
})

test('the first message, sent as soon as the app can, arrives', async () => {
  for (let n = 0; n < 20; n++) {
    const socket = await open('/first')
    expect((await next(socket)).data).toBe('first')
    socket.close()
    await closed(socket)
  }
})

test('the subprotocol is the one that the app chose', async () => {
  const socket = await open('/', ['other', 'chat'])
  await opened(socket)
  expect(socket.protocol).toBe('chat')
  socket.close()
  await closed(socket)
})

test('close codes and reasons pass both ways', async () => {
  const refused = await open('/close')
  expect(await closed(refused)).toMatchObject({ code: 3001, reason: 'a reason' })
  const socket = await open()
  await opened(socket)
  socket.close(4321, 'enough')
  await closed(socket)
  for (;;) {
    const { value } = await within(lines.next(), 'the close code')
    const seen = JSON.parse(value!)
    if (seen.code !== 4321) continue
    expect(seen.reason).toBe('enough')
    break
  }
})

test('messages from nothing to 5 MB come back byte for byte, text and binary', async () => {
  const socket = await open()
  await opened(socket)
  for (const size of [0, 1, 125, 126, 65_535, 65_536, 1_000_000, 5_000_000]) {
    const bytes = randomBytes(size)
    socket.send(bytes)
    const { data } = await next(socket)
    expect(createHash('sha256').update(Buffer.from(data)).digest('hex')).toBe(
      createHash('sha256').update(bytes).digest('hex'),
    )
  }
  socket.send('žluťoučký kůň 🐎')
  expect((await next(socket)).data).toBe('žluťoučký kůň 🐎')
  socket.close()
  await closed(socket)
})

test('a refused handshake is an error, not a connection', async () => {
  const socket = await open('/refuse')
  expect((await closed(socket)).wasClean).toBe(false)
})

test('ws in Node: compression, fragments, pings, refusals with status and headers', async () => {
  const script = `
    const WebSocket = require('ws')
    const url = process.argv[1], headers = { host: process.argv[2] }
    const open = path => new WebSocket(url + path, 'chat', { headers, perMessageDeflate: { threshold: 0 } })
    const once = (socket, event) => new Promise(resolve => socket.once(event, (...all) => resolve(all)))
    ;(async () => {
      const seen = {}
      const socket = open('/')
      await once(socket, 'open')
      seen.extensions = socket.extensions
      seen.protocol = socket.protocol
      socket.send('frag', { fin: false }); socket.send('men', { fin: false }); socket.send('ted', { fin: true })
      seen.fragments = String((await once(socket, 'message'))[0])
      const long = 'z'.repeat(300000)
      socket.send(long)
      seen.isLongSame = String((await once(socket, 'message'))[0]) === long
      socket.ping('payload')
      const [pong, message] = await Promise.all([once(socket, 'pong'), once(socket, 'message')])
      seen.pong = String(pong[0]); seen.ping = String(message[0])
      socket.close(1000)
      seen.close = (await once(socket, 'close'))[0]
      const refused = open('/refuse')
      refused.on('error', () => {})
      const [, response] = await once(refused, 'unexpected-response')
      seen.refusal = response.statusCode + ' ' + response.headers['x-why']
      console.log(JSON.stringify(seen))
      process.exit(0)
    })()
  `
  const child = Bun.spawn(['node', '-e', script, `ws://127.0.0.1:${tunnel.port}`, tunnel.host], {
    cwd: `${import.meta.dir}/../..`,
    stdout: 'pipe',
    stderr: 'inherit',
  })
  expect(JSON.parse(await new Response(child.stdout).text())).toEqual({
    extensions: 'permessage-deflate',
    protocol: 'chat',
    fragments: 'fragmented',
    isLongSame: true,
    pong: 'payload',
    ping: 'pinged with payload',
    close: 1000,
    refusal: '401 no',
  })
})

test('Bun.serve as the app', async () => {
  using server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: (request, self) => (self.upgrade(request) ? undefined : new Response('no', { status: 400 })),
    websocket: {
      open: socket => void socket.send('welcome'),
      message: (socket, message) => void socket.send(message),
    },
  })
  await using other = await startTunnel({ port: server.port! })
  const socket = new WebSocket(`ws://127.0.0.1:${other.port}/`, { headers: { host: other.host } } as never) // as above
  expect((await next(socket)).data).toBe('welcome')
  socket.send('echo')
  expect((await next(socket)).data).toBe('echo')
  socket.close()
  await closed(socket)
})
