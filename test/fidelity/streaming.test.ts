// Answers that take their time: events as they happen, long polls, silence in the middle.

import { expect, test } from 'bun:test'
import { get, ok, post, rawTunnel, readAnswer } from '../support/exchange.ts'
import { startTunnel } from '../support/tunnel.ts'

test.concurrent('each event of a stream arrives when it was sent, not when the answer ends', async () => {
  await using raw = await rawTunnel()
  const visitor = await raw.visit(get(raw.host, '/events', 'Accept: text/event-stream\r\n'))
  const app = await raw.origin.accept()
  await app.until('\r\n\r\n')
  await app.send('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n')
  await visitor.until('\r\n\r\n')
  for (let n = 0; n < 20; n++) {
    const event = `data: ${n}\n\n`
    const chunk = `${event.length.toString(16)}\r\n${event}\r\n`
    await app.send(chunk)
    expect(await visitor.exactly(chunk.length)).toBe(chunk)
  }
  expect(visitor.hasEnded).toBe(false)
})

test.concurrent('a stream may be silent for longer than every timeout', async () => {
  const limits = {
    originTimeoutMs: 300,
    headTimeoutMs: 300,
    idleTimeoutMs: 300,
    streamIdleMs: 300,
    registerTimeoutMs: 300,
  }
  await using raw = await rawTunnel({ server: { limits } })
  const visitor = await raw.visit(get(raw.host))
  const app = await raw.origin.accept()
  await app.until('\r\n\r\n')
  await app.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
  await visitor.until('\r\n\r\n')
  await Bun.sleep(1_500)
  await app.send('5\r\nhello\r\n')
  expect(await visitor.until('hello\r\n')).toBe('5\r\nhello\r\n')
})

test.concurrent('an upload may be silent for longer than every timeout', async () => {
  const limits = { originTimeoutMs: 300, headTimeoutMs: 300, idleTimeoutMs: 300, streamIdleMs: 300 }
  await using raw = await rawTunnel({ server: { limits } })
  const visitor = await raw.visit(post(raw.host, 'begin').replace('Length: 5', 'Length: 8'))
  const app = await raw.origin.accept()
  await app.until('begin')
  await Bun.sleep(1_500)
  await visitor.send('end')
  await app.until('end')
  await app.send(ok('both'))
  expect((await readAnswer(visitor)).body).toBe('both')
})

test.concurrent('the first piece of an upload reaches the app before the rest is sent', async () => {
  await using raw = await rawTunnel()
  const visitor = await raw.visit(
    `POST / HTTP/1.1\r\nHost: ${raw.host}\r\nTransfer-Encoding: chunked\r\n\r\n`,
  )
  const app = await raw.origin.accept()
  await app.until('\r\n\r\n')
  for (const piece of ['1\r\na\r\n', '2\r\nbc\r\n', '0\r\nX-Sum: 1\r\n\r\n']) {
    await visitor.send(piece)
    expect(await app.exactly(piece.length)).toBe(piece)
  }
})

test.concurrent('a long poll waits as long as the app takes, up to the origin timeout', async () => {
  await using raw = await rawTunnel({ server: { limits: { originTimeoutMs: 3_000 } } })
  const visitor = await raw.visit(get(raw.host))
  const app = await raw.origin.accept()
  await app.until('\r\n\r\n')
  await Bun.sleep(1_500)
  await app.send(ok('at last'))
  expect((await readAnswer(visitor)).body).toBe('at last')
})

test.concurrent('Bun.serve streams through the tunnel piece by piece', async () => {
  const gate = Promise.withResolvers<void>()
  using app = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: () =>
      new Response(
        (async function* () {
          yield 'first'
          await gate.promise
          yield 'second'
        })() as never, // Bun takes an async generator for a body; its types do not say so.
      ),
  })
  await using tunnel = await startTunnel({ port: app.port! })
  const answer = await fetch(`http://127.0.0.1:${tunnel.port}/`, { headers: { host: tunnel.host } })
  const reader = answer.body!.getReader()
  expect(Buffer.from((await reader.read()).value!).toString()).toBe('first')
  gate.resolve()
  expect(Buffer.from((await reader.read()).value!).toString()).toBe('second')
})
