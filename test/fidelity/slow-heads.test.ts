// Heads that do not arrive in time, and what must not be left of them.

import { expect, test } from 'bun:test'
import { get, headerOf, ok, rawTunnel, readAnswer, statusOf } from '../support/exchange.ts'

test.concurrent('a head that drips in gets 408 and a closed connection, however it drips', async () => {
  await using raw = await rawTunnel({ server: { limits: { headTimeoutMs: 500 } } })
  const visitor = await raw.visit('POST /dripping HTTP/1.1\r\n')
  const dripping = (async () => {
    while (!visitor.isClosed && !visitor.hasEnded) {
      await visitor.send('X: y\r\n')
      await Bun.sleep(50)
    }
  })()
  const { head } = await readAnswer(visitor)
  expect(statusOf(head)).toBe(408)
  expect(headerOf(head, 'x-localtunnels-error')).toBe('REQUEST_TIMEOUT')
  await visitor.end()
  await dripping
  expect(raw.origin.connections.length).toBe(0)
})

test.concurrent('nothing of a head that timed out is left for the next connection', async () => {
  await using raw = await rawTunnel({ server: { limits: { headTimeoutMs: 250 } } })
  const slow = await raw.visit('DELETE /of-another HTTP/1.1\r\nX-Secret: yes\r\n')
  expect(statusOf((await readAnswer(slow)).head)).toBe(408)
  slow.socket.end()
  await slow.closed()
  const visitor = await raw.visit(get(raw.host, '/mine'))
  const app = await raw.origin.accept()
  const seen = await app.until('\r\n\r\n')
  expect(seen).toStartWith('GET /mine HTTP/1.1\r\n')
  expect(seen).not.toContain('X-Secret')
  await app.send(ok('mine'))
  expect((await readAnswer(visitor)).body).toBe('mine')
})

test.concurrent('nothing of a head that was left in the middle is left for the next connection', async () => {
  await using raw = await rawTunnel()
  for (const leave of ['end', 'terminate'] as const) {
    const slow = await raw.visit('DELETE /of-another HTTP/1.1\r\nX-Secret: yes\r\n')
    // It is here once the server answers a later one.
    const later = await raw.visit(get('localhost', '/health', 'Connection: close\r\n'))
    await later.end()
    slow.socket[leave]()
    await slow.closed()
  }
  const visitor = await raw.visit(get(raw.host, '/mine', 'Connection: close\r\n'))
  const app = await raw.origin.accept()
  expect(await app.until('\r\n\r\n')).toStartWith('GET /mine HTTP/1.1\r\n')
  await app.send(ok(''))
  await visitor.end()
})

test.concurrent('a connection that never says anything is closed without a word', async () => {
  await using raw = await rawTunnel({ server: { limits: { idleTimeoutMs: 250 } } })
  const visitor = await raw.visit()
  expect(await visitor.end()).toBe('')
})

test.concurrent('an idle connection is closed after its time, one that is used is not', async () => {
  await using raw = await rawTunnel({ server: { limits: { idleTimeoutMs: 500 } } })
  const visitor = await raw.visit(get(raw.host))
  const app = await raw.origin.accept()
  await app.until('\r\n\r\n')
  // An exchange is under way, while a connection that came later and is idle reaches the idle time.
  const idle = await raw.visit(get('localhost', '/health'))
  expect(statusOf((await readAnswer(idle)).head)).toBe(200)
  expect(await idle.end()).toBe('')
  await app.send(ok('one'))
  expect((await readAnswer(visitor)).body).toBe('one')
  expect(await visitor.end()).toBe('')
})
