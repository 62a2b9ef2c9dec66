// Interim answers and Expect: 100-continue, end to end: the app decides, nobody in between.

import { expect, test } from 'bun:test'
import { get, headerOf, ok, rawTunnel, readAnswer, statusOf } from '../support/exchange.ts'

test.concurrent('100 Continue comes from the app, and the body only then', async () => {
  await using raw = await rawTunnel()
  const visitor = await raw.visit(
    `POST / HTTP/1.1\r\nHost: ${raw.host}\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n`,
  )
  const app = await raw.origin.accept()
  expect(headerOf(await app.until('\r\n\r\n'), 'Expect')).toBe('100-continue')
  expect(visitor.text).toBe('')
  await app.send('HTTP/1.1 100 Continue\r\n\r\n')
  expect(await visitor.until('\r\n\r\n')).toBe('HTTP/1.1 100 Continue\r\n\r\n')
  await visitor.send('hello')
  expect(await app.exactly(5)).toBe('hello')
  await app.send(ok('thanks'))
  expect((await readAnswer(visitor)).body).toBe('thanks')
  await visitor.send(get(raw.host))
  await app.until('\r\n\r\n')
  await app.send(ok('next'))
  expect((await readAnswer(visitor)).body).toBe('next')
})

test.concurrent('an app that refuses the expectation is heard, and the body never asked for', async () => {
  await using raw = await rawTunnel()
  const visitor = await raw.visit(
    `POST / HTTP/1.1\r\nHost: ${raw.host}\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n`,
  )
  const app = await raw.origin.accept()
  await app.until('\r\n\r\n')
  await app.send('HTTP/1.1 417 Expectation Failed\r\nContent-Length: 2\r\n\r\nno')
  const { head, body } = await readAnswer(visitor)
  expect(statusOf(head)).toBe(417)
  expect(body).toBe('no')
  await visitor.end()
})

test.concurrent('an app that never says 100 is a silent one', async () => {
  await using raw = await rawTunnel({ server: { limits: { originTimeoutMs: 250 } } })
  const visitor = await raw.visit(
    `POST / HTTP/1.1\r\nHost: ${raw.host}\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n`,
  )
  const { head } = await readAnswer(visitor)
  expect(headerOf(head, 'x-localtunnels-error')).toBe('ORIGIN_TIMEOUT')
})

test.concurrent('an upload that takes long is not a silent app', async () => {
  await using raw = await rawTunnel({ server: { limits: { originTimeoutMs: 250 } } })
  const visitor = await raw.visit(
    `POST / HTTP/1.1\r\nHost: ${raw.host}\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n`,
  )
  const app = await raw.origin.accept()
  await app.until('\r\n\r\n')
  await app.send('HTTP/1.1 100 Continue\r\n\r\n')
  await visitor.until('\r\n\r\n')
  for (const byte of 'slow') {
    await Bun.sleep(400)
    await visitor.send(byte)
  }
  expect(await app.exactly(4)).toBe('slow')
  await app.send(ok('got it'))
  expect((await readAnswer(visitor)).body).toBe('got it')
})

test.concurrent('103 and 102 pass with their headers, before the answer', async () => {
  await using raw = await rawTunnel()
  const visitor = await raw.visit(get(raw.host))
  const app = await raw.origin.accept()
  await app.until('\r\n\r\n')
  const hints = 'HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nlink: </b.js>\r\n\r\n'
  await app.send(hints)
  expect(await visitor.until('\r\n\r\n')).toBe(hints)
  await app.send('HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 199 Odd\r\n\r\n')
  expect(await visitor.until('199 Odd\r\n\r\n')).toBe(
    'HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 199 Odd\r\n\r\n',
  )
  await app.send(ok('done'))
  expect((await readAnswer(visitor)).body).toBe('done')
})

test.concurrent('an app that says it is still at work gets its time anew', async () => {
  await using raw = await rawTunnel({ server: { limits: { originTimeoutMs: 2_000 } } })
  const visitor = await raw.visit(get(raw.host))
  const app = await raw.origin.accept()
  await app.until('\r\n\r\n')
  // Longer than its time in all, and each pause a quarter of it: a machine that stands still for a second is no failure.
  for (let n = 0; n < 5; n++) {
    await Bun.sleep(500)
    await app.send('HTTP/1.1 102 Processing\r\n\r\n')
    await visitor.until('\r\n\r\n')
  }
  await app.send(ok('done'))
  expect((await readAnswer(visitor)).body).toBe('done')
})

test.concurrent('a visitor of HTTP/1.0 is spared interim answers', async () => {
  await using raw = await rawTunnel()
  const visitor = await raw.visit(`GET / HTTP/1.0\r\nHost: ${raw.host}\r\n\r\n`)
  const app = await raw.origin.accept()
  await app.until('\r\n\r\n')
  await app.send(`HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n${ok('done')}`)
  const { head, body } = await readAnswer(visitor)
  expect(statusOf(head)).toBe(200)
  expect(body).toBe('done')
})

test.concurrent('an app that sends interim answers without end is stopped by a visitor that does not read', async () => {
  // So many that only the visitor's pace stops it.
  await using raw = await rawTunnel({ server: { limits: { maxInterimAnswers: 1_000_000 } } })
  const visitor = await raw.visit()
  visitor.socket.pause()
  await visitor.send(get(raw.host))
  const app = await raw.origin.accept()
  await app.until('\r\n\r\n')
  const interim = Buffer.from(`HTTP/1.1 103 Early Hints\r\nX: ${'x'.repeat(50_000)}\r\n\r\n`)
  let sent = 0
  let isOver = false
  void (async () => {
    while (!isOver && sent < 300_000_000) {
      await app.send(interim)
      sent += interim.length
    }
  })()
  let before = -1
  while (before !== sent) {
    before = sent
    await Bun.sleep(300)
  }
  isOver = true
  expect(sent).toBeLessThan(64_000_000)
}, 60_000)
