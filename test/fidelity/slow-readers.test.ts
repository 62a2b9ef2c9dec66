// Visitors that read slowly get all of it in the end, however the answer ends.

import { expect, test } from 'bun:test'
import { get, ok, rawTunnel, readRequest } from '../support/exchange.ts'

const BODY = Buffer.alloc(12_000_000, 'slow').toString('latin1')

for (const [name, lines] of [
  ['whose connection goes on', ''],
  ['whose connection ends behind it', 'Connection: close\r\n'],
] as const) {
  test.concurrent(`an answer ${name} waits for a visitor that pauses for longer than any lingering`, async () => {
    await using raw = await rawTunnel()
    const visitor = await raw.visit()
    visitor.socket.pause()
    await visitor.send(get(raw.host, '/', lines))
    const app = await raw.origin.accept()
    await readRequest(app)
    const sending = app.send(ok(BODY))
    await Bun.sleep(3_000)
    visitor.socket.resume()
    await visitor.until('\r\n\r\n')
    expect((await visitor.exactly(BODY.length)) === BODY).toBe(true)
    await sending
  }, 60_000)
}

test.concurrent('the tail of an answer waits as well', async () => {
  await using raw = await rawTunnel()
  const visitor = await raw.visit()
  visitor.socket.pause()
  await visitor.send(get(raw.host, '/', 'Connection: close\r\n'))
  const app = await raw.origin.accept()
  await readRequest(app)
  // Small enough for the buffers on the way: for the server the exchange is over long before the visitor reads.
  const body = BODY.slice(0, 3_000_000)
  await app.send(ok(body))
  await Bun.sleep(3_000)
  visitor.socket.resume()
  await visitor.until('\r\n\r\n')
  expect((await visitor.exactly(body.length)) === body).toBe(true)
}, 60_000)
