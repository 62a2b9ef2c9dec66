// Whoever stops reading while bytes wait for it is cut after `sendTimeoutMs`, and only then.

import { expect, test } from 'bun:test'
import { get, ok, type RawTunnel, rawTunnel } from '../support/exchange.ts'
import type { RawConnection } from '../support/raw.ts'
import { within } from '../support/within.ts'

const SEND_TIMEOUT_MS = 600
/** More than kernels and windows on the way hold. */
const ENDLESS = `HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n`
const BURST = `: ${'x'.repeat(8_000_000)}\n\n`
const piece = Buffer.alloc(1_000_000, 'stalled')

const limitedTunnel = (): Promise<RawTunnel> =>
  rawTunnel({ server: { limits: { sendTimeoutMs: SEND_TIMEOUT_MS } } })

/** The codes of exchanges, as they end. */
function endOf({ tunnel }: RawTunnel, path: string): Promise<string | undefined> {
  return within(
    new Promise(resolve => {
      tunnel.server.on('request', request => request.path === path && resolve(request.error))
    }),
    `the end of ${path}`,
  )
}

async function answerOf(raw: RawTunnel, visitor: RawConnection, request: string): Promise<RawConnection> {
  await visitor.send(request)
  const app = await raw.origin.accept()
  await app.until('\r\n\r\n')
  return app
}

/** Sends for as long as somebody takes it. */
async function sendAll(from: RawConnection): Promise<void> {
  while (!from.isClosed) await from.send(piece)
}

test.concurrent('a visitor that stops reading its answer is cut, and the app learns of it', async () => {
  await using raw = await limitedTunnel()
  // Both have less to do than the one that stalls, for longer.
  const events = await raw.visit()
  const feed = await answerOf(raw, events, get(raw.host, '/events'))
  // It had to wait once, and caught up.
  events.socket.pause()
  const burst = feed.send(`HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n${BURST}data: 1\n\n`)
  await Bun.sleep(SEND_TIMEOUT_MS / 4)
  events.socket.resume()
  await events.until('data: 1\n\n')
  await burst
  const socket = await raw.visit()
  const chat = await answerOf(
    raw,
    socket,
    get(raw.host, '/chat', 'Connection: Upgrade\r\nUpgrade: websocket\r\n'),
  )
  await chat.send('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
  await socket.until('\r\n\r\n')

  const stalled = await raw.visit()
  stalled.socket.pause()
  const ended = endOf(raw, '/stalled')
  const app = await answerOf(raw, stalled, get(raw.host, '/stalled'))
  await app.send(ENDLESS)
  const sending = sendAll(app)
  expect(await ended).toBe('VISITOR_STALLED')
  expect(await app.closed()).toBeDefined()
  await sending
  stalled.socket.resume()
  expect(await stalled.closed()).toBeDefined()

  await feed.send('data: 2\n\n')
  await events.until('data: 2\n\n')
  await socket.send('ping')
  await chat.until('ping')
  await chat.send('pong')
  await socket.until('pong')
})

test.concurrent('a visitor that stops reading its WebSocket is cut', async () => {
  await using raw = await limitedTunnel()
  const visitor = await raw.visit()
  const ended = endOf(raw, '/chat')
  const app = await answerOf(
    raw,
    visitor,
    get(raw.host, '/chat', 'Connection: Upgrade\r\nUpgrade: websocket\r\n'),
  )
  await app.send('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
  await visitor.until('\r\n\r\n')
  visitor.socket.pause()
  const sending = sendAll(app)
  expect(await ended).toBe('VISITOR_STALLED')
  expect(await app.closed()).toBeDefined()
  await sending
})

test.concurrent('the rest of a complete answer does not wait for ever either', async () => {
  await using raw = await limitedTunnel()
  const visitor = await raw.visit()
  visitor.socket.pause()
  const app = await answerOf(raw, visitor, get(raw.host, '/'))
  // Fits what is on the way: for the server the exchange is over when the visitor has not read a byte.
  await app.send(ok('x'.repeat(4_500_000)))
  // The next request waits for the answer before it.
  await visitor.send(get(raw.host, '/next'))
  expect(await visitor.closed()).toBeDefined()
})

test.concurrent('a visitor that reads slowly is not cut', async () => {
  await using raw = await limitedTunnel()
  const visitor = await raw.visit()
  visitor.socket.pause()
  const body = Buffer.alloc(8_000_000, 'slow').toString('latin1')
  const app = await answerOf(raw, visitor, get(raw.host, '/'))
  const sending = app.send(ok(body))
  const began = performance.now()
  let got = 0
  while (got < body.length) {
    await Bun.sleep(SEND_TIMEOUT_MS / 4)
    const before = visitor.bytes.length
    visitor.socket.resume()
    await visitor.when(() => visitor.bytes.length > before, 'more')
    visitor.socket.pause()
    got += visitor.take(visitor.bytes.length).length
  }
  expect(performance.now() - began).toBeGreaterThan(2 * SEND_TIMEOUT_MS)
  await sending
}, 60_000)

test.concurrent('an app that stops reading a request is cut, and the visitor learns of it', async () => {
  await using raw = await limitedTunnel()
  const visitor = await raw.visit()
  const ended = endOf(raw, '/upload')
  const upload = `POST /upload HTTP/1.1\r\nHost: ${raw.host}\r\nContent-Length: 1000000000\r\n\r\n`
  const app = await answerOf(raw, visitor, upload)
  app.socket.pause()
  const sending = sendAll(visitor)
  await visitor.until('HTTP/1.1 504 ')
  expect(await ended).toBe('ORIGIN_TIMEOUT')
  app.socket.resume()
  expect(await app.closed()).toBeDefined()
  visitor.socket.terminate()
  await sending
})

test.concurrent('an app that answers and stops reading is cut as well', async () => {
  await using raw = await limitedTunnel()
  const visitor = await raw.visit()
  const ended = endOf(raw, '/both')
  const upload = `POST /both HTTP/1.1\r\nHost: ${raw.host}\r\nContent-Length: 1000000000\r\n\r\n`
  const app = await answerOf(raw, visitor, upload)
  await app.send('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nbegin')
  await visitor.until('begin')
  app.socket.pause()
  const sending = sendAll(visitor)
  expect(await ended).toBe('ORIGIN_TIMEOUT')
  expect(await visitor.closed()).toBeDefined()
  await sending
})

test.concurrent('an app that reads slowly is not cut', async () => {
  await using raw = await limitedTunnel()
  const visitor = await raw.visit()
  const size = 8_000_000
  const upload = `POST / HTTP/1.1\r\nHost: ${raw.host}\r\nContent-Length: ${size}\r\n\r\n`
  const app = await answerOf(raw, visitor, upload)
  app.socket.pause()
  const sending = visitor.send(Buffer.alloc(size))
  let got = 0
  while (got < size) {
    await Bun.sleep(SEND_TIMEOUT_MS / 4)
    const before = app.bytes.length
    app.socket.resume()
    await app.when(() => app.bytes.length > before, 'more')
    app.socket.pause()
    got += app.take(app.bytes.length).length
  }
  await app.send(ok('all of it'))
  await visitor.until('all of it')
  await sending
}, 60_000)
