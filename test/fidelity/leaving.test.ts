// Visitors that leave: the app learns of it within two seconds, however they leave and wherever the exchange is.

import { expect, test } from 'bun:test'
import { get, rawTunnel } from '../support/exchange.ts'
import type { RawConnection } from '../support/raw.ts'

const LEAVE_BY = {
  FIN: (visitor: RawConnection) => visitor.socket.end(),
  RST: (visitor: RawConnection) => visitor.socket.terminate(),
}

async function toldWithin2s(app: RawConnection): Promise<void> {
  const since = performance.now()
  await app.end()
  expect(performance.now() - since).toBeLessThan(2_000)
}

for (const [how, leave] of Object.entries(LEAVE_BY)) {
  test.concurrent(`by ${how} before the answer`, async () => {
    await using raw = await rawTunnel()
    const visitor = await raw.visit(get(raw.host))
    const app = await raw.origin.accept()
    await app.until('\r\n\r\n')
    leave(visitor)
    await toldWithin2s(app)
  })

  test.concurrent(`by ${how} in the middle of an answer that flows`, async () => {
    await using raw = await rawTunnel()
    const visitor = await raw.visit(get(raw.host))
    const app = await raw.origin.accept()
    await app.until('\r\n\r\n')
    await app.send('HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n')
    await visitor.until('\r\n\r\n')
    visitor.socket.pause()
    leave(visitor)
    visitor.socket.terminate()
    const since = performance.now()
    const piece = Buffer.alloc(65_536)
    void (async () => {
      while (!app.isClosed) await app.send(piece)
    })()
    await app.closed()
    expect(performance.now() - since).toBeLessThan(2_000)
  })

  test.concurrent(`by ${how} while a stream of events is quiet`, async () => {
    await using raw = await rawTunnel()
    const visitor = await raw.visit(get(raw.host))
    const app = await raw.origin.accept()
    await app.until('\r\n\r\n')
    await app.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n')
    await visitor.until('x\r\n')
    leave(visitor)
    await toldWithin2s(app)
  })

  test.concurrent(`by ${how} in the middle of an upload`, async () => {
    await using raw = await rawTunnel()
    const visitor = await raw.visit(`POST / HTTP/1.1\r\nHost: ${raw.host}\r\nContent-Length: 100\r\n\r\nsome`)
    const app = await raw.origin.accept()
    await app.until('some')
    leave(visitor)
    await toldWithin2s(app)
    // Not a clean end: half an upload must not look like a whole one.
    expect(await app.closed()).toBeInstanceOf(Error)
  })

  test.concurrent(`by ${how} from a WebSocket`, async () => {
    await using raw = await rawTunnel()
    const visitor = await raw.visit(get(raw.host, '/', 'Connection: Upgrade\r\nUpgrade: websocket\r\n'))
    const app = await raw.origin.accept()
    await app.until('\r\n\r\n')
    await app.send('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
    await visitor.until('\r\n\r\n')
    leave(visitor)
    await toldWithin2s(app)
    expect(app.hasEnded).toBe(how === 'FIN')
  })
}

test.concurrent('a visitor that leaves while requests of its own wait behind takes them along', async () => {
  await using raw = await rawTunnel()
  const visitor = await raw.visit(get(raw.host, '/1') + get(raw.host, '/2'))
  const app = await raw.origin.accept()
  await app.until('\r\n\r\n')
  visitor.socket.terminate()
  await toldWithin2s(app)
  expect(app.text).toBe('')
  expect(raw.origin.connections.length).toBe(1)
})

test.concurrent('a visitor that reads on after its FIN keeps an answer that makes progress', async () => {
  await using raw = await rawTunnel()
  const visitor = await raw.visit(get(raw.host))
  const app = await raw.origin.accept()
  await app.until('\r\n\r\n')
  visitor.socket.end()
  await app.send('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n')
  for (const byte of 'steady') {
    await Bun.sleep(400)
    await app.send(byte)
  }
  expect((await visitor.end()).slice(-6)).toBe('steady')
  expect(await visitor.closed()).toBeUndefined()
})

// A FIN stands behind the bytes that are not read yet, and may be the honest end of a whole upload: it has to wait.
test.concurrent('by RST in the middle of an upload that the app does not take', async () => {
  await using raw = await rawTunnel()
  const visitor = await raw.visit(`POST / HTTP/1.1\r\nHost: ${raw.host}\r\nContent-Length: 100000000\r\n\r\n`)
  const app = await raw.origin.accept()
  await app.until('\r\n\r\n')
  app.socket.pause()
  const piece = Buffer.alloc(65_536)
  let sent = 0
  while (visitor.socket.write(piece) === piece.length && sent < 90_000_000) {
    sent += piece.length
    await new Promise(setImmediate)
  }
  await Bun.sleep(200)
  visitor.socket.terminate()
  // The app does not read, so it cannot know yet; but nothing waits for it any more.
  await Bun.sleep(1_900)
  expect(raw.tunnel.server.getStats().pendingResponses).toBe(0)
  app.socket.resume()
  expect(await app.closed()).toBeInstanceOf(Error)
}, 60_000)
