// After 101 there are bytes both ways and nothing else: none lost, none added, each end told from the other.

import { expect, test } from 'bun:test'
import { exchange, get, headerOf, ok, rawTunnel, readAnswer, statusOf } from '../support/exchange.ts'

const UPGRADE =
  'Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n' +
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: chat, superchat\r\n' +
  'Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\nOrigin: http://elsewhere.example\r\n'
const SWITCH =
  'HTTP/1.1 101 Switching Protocols\r\nupgrade: WebSocket\r\nConnection: upgrade\r\nSec-WebSocket-Protocol: chat\r\n' +
  'Sec-WebSocket-Extensions: permessage-deflate\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n'

async function switched() {
  const raw = await rawTunnel()
  const visitor = await raw.visit(get(raw.host, '/chat', UPGRADE))
  const app = await raw.origin.accept()
  const seen = await app.until('\r\n\r\n')
  await app.send(SWITCH)
  const got = await visitor.until('\r\n\r\n')
  return { visitor, app, seen, got, [Symbol.asyncDispose]: () => raw[Symbol.asyncDispose]() }
}

test('the upgrade reaches the app, and its answer the visitor, with every header of the protocol', async () => {
  await using both = await switched()
  for (const name of [
    'Sec-WebSocket-Version',
    'Sec-WebSocket-Key',
    'Sec-WebSocket-Protocol',
    'Sec-WebSocket-Extensions',
    'Origin',
    'Upgrade',
  ])
    expect(headerOf(both.seen, name)).toBe(headerOf(UPGRADE, name)!)
  expect(headerOf(both.seen, 'Connection')).toBe('Upgrade')
  expect(both.got).toBe(
    SWITCH.replace('Connection: upgrade\r\n', '').replace('\r\n\r\n', '\r\nConnection: Upgrade\r\n\r\n'),
  )
})

test('bytes pass both ways as they are, whatever they are', async () => {
  await using both = await switched()
  const all = Buffer.from(Array.from({ length: 256 }, (_, n) => n))
  for (let n = 0; n < 20; n++) {
    await both.visitor.send(all)
    expect(Buffer.from(await both.app.exactly(256), 'latin1').equals(all)).toBe(true)
    await both.app.send(all)
    expect(Buffer.from(await both.visitor.exactly(256), 'latin1').equals(all)).toBe(true)
  }
})

test('what the app sends together with its 101 is not lost', async () => {
  await using raw = await rawTunnel()
  const visitor = await raw.visit(get(raw.host, '/', UPGRADE))
  const app = await raw.origin.accept()
  await app.until('\r\n\r\n')
  await app.send(`${SWITCH}\x81\x05hello`)
  await visitor.until('\r\n\r\n')
  expect(await visitor.exactly(7)).toBe('\x81\x05hello')
})

test('what the visitor sends right behind its upgrade is not lost', async () => {
  await using raw = await rawTunnel()
  const visitor = await raw.visit(`${get(raw.host, '/', UPGRADE)}\x81\x85mask`)
  await visitor.send('hello')
  const app = await raw.origin.accept()
  await app.until('\r\n\r\n')
  expect(app.text).toBe('')
  await app.send(SWITCH)
  expect(await app.exactly(11)).toBe('\x81\x85maskhello')
})

for (const [status, lines] of [
  [401, 'WWW-Authenticate: Basic realm="x"\r\n'],
  [403, 'X-Why: no\r\n'],
  [426, 'Upgrade: websocket\r\n'],
  [200, ''],
] as const) {
  test(`an upgrade refused with ${status} is refused, and the connection goes on as HTTP`, async () => {
    await using raw = await rawTunnel()
    const { got, visitor } = await exchange(
      raw,
      get(raw.host, '/', UPGRADE),
      `HTTP/1.1 ${status} Whatever\r\n${lines}Content-Length: 2\r\n\r\nno`,
    )
    expect(statusOf(got.head)).toBe(status)
    expect(got.body).toBe('no')
    for (const line of lines.split('\r\n')) expect(got.head).toContain(line)
    await visitor.send(get(raw.host))
    const another = await raw.origin.accept()
    await another.until('\r\n\r\n')
    await another.send(ok('on'))
    expect((await readAnswer(visitor)).body).toBe('on')
  })
}

test('either end may end its half and still hear the other', async () => {
  {
    await using both = await switched()
    both.visitor.socket.end()
    expect(await both.app.end()).toBe('')
    await both.app.send('still here')
    expect(await both.visitor.exactly(10)).toBe('still here')
    both.app.socket.end()
    expect(await both.visitor.closed()).toBeUndefined()
    expect(await both.app.closed()).toBeUndefined()
  }
  {
    await using both = await switched()
    both.app.socket.end()
    expect(await both.visitor.end()).toBe('')
    await both.visitor.send('still here')
    expect(await both.app.exactly(10)).toBe('still here')
    both.visitor.socket.end()
    expect(await both.app.closed()).toBeUndefined()
    expect(await both.visitor.closed()).toBeUndefined()
  }
})

test('an app that ends while the visitor is slow to read still hears the visitor', async () => {
  await using both = await switched()
  both.visitor.socket.pause()
  const size = 12_000_000
  await Promise.all([
    both.app.send(Buffer.alloc(size, 'x')).then(() => both.app.socket.end()),
    (async () => {
      await Bun.sleep(300)
      both.visitor.socket.resume()
    })(),
    both.visitor.when(() => both.visitor.bytes.length > size / 2, 'half of it'),
  ])
  await both.visitor.send('I still have something to say')
  await both.app.until('to say')
  await both.visitor.exactly(size)
  both.visitor.socket.end()
  expect(await both.visitor.closed()).toBeUndefined()
}, 60_000)

test('the tail of a WebSocket that the visitor has not taken does not shut it up', async () => {
  await using both = await switched()
  both.visitor.socket.pause()
  const body = Buffer.alloc(3_500_000, 'x')
  await both.app.send(body)
  both.app.socket.end()
  await Bun.sleep(300)
  await both.visitor.send('heard?')
  await both.app.until('heard?')
  both.visitor.socket.resume()
  await both.visitor.exactly(body.length)
  both.visitor.socket.end()
  expect(await both.visitor.closed()).toBeUndefined()
  expect(await both.app.closed()).toBeUndefined()
})

for (const who of ['visitor', 'app'] as const) {
  test(`a ${who} that is gone by RST cuts the other side by RST`, async () => {
    await using both = await switched()
    both[who].socket.terminate()
    const other = who === 'app' ? both.visitor : both.app
    expect(await other.closed()).toBeInstanceOf(Error)
  })
}

test('a switch that nobody asked for, or to something else, is 502', async () => {
  for (const [lines, answer] of [
    ['', SWITCH],
    [
      'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAA\r\n',
      'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n',
    ],
    [UPGRADE, 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n'],
  ] as const) {
    await using raw = await rawTunnel()
    const { got } = await exchange(raw, get(raw.host, '/', lines), answer).catch(error => error)
    expect(statusOf(got.head)).toBe(502)
  }
})

test('a stream that was switched is never used for another visitor', async () => {
  await using raw = await rawTunnel()
  const visitor = await raw.visit(get(raw.host, '/', UPGRADE))
  const app = await raw.origin.accept()
  await app.until('\r\n\r\n')
  await app.send(SWITCH)
  await visitor.until('\r\n\r\n')
  visitor.socket.end()
  await app.end()
  app.socket.end()
  await visitor.closed()
  await raw.visit(get(raw.host, '/next'))
  const next = await raw.origin.accept()
  expect(await next.until('\r\n\r\n')).toStartWith('GET /next')
  expect(app.text).toBe('')
})
