// What the app answers reaches the visitor as it was answered: status, reason, headers, lengths, endings.

import { expect, test } from 'bun:test'
import { exchange, get, headerOf, ok, rawTunnel, readAnswer } from '../support/exchange.ts'

/** The head as the visitor gets it when the connection goes on. */
async function through(answer: string, request?: (host: string) => string): Promise<string> {
  await using raw = await rawTunnel()
  const { got } = await exchange(raw, (request ?? get)(raw.host), answer)
  return got.head + got.body
}

test('status and reason pass, whatever they are', async () => {
  for (const line of ['200 OK', '299 Very Fine', "418 I'm a teapot", '599 ', '600 Beyond', '999 \xe9t\xe9']) {
    const answer = `HTTP/1.1 ${line}\r\nContent-Length: 2\r\n\r\nhi`
    expect(await through(answer)).toBe(answer)
  }
})

test('headers keep their case, order, repeats, spacing and bytes', async () => {
  const answer =
    'HTTP/1.1 200 OK\r\nx-ONE: 1\r\nSet-Cookie: a=1; Path=/\r\nX-One: 2\r\nset-cookie: b=2\r\nSET-COOKIE: a=1; Path=/\r\n' +
    'X-Empty:\r\nX-Wide:  \t padded \t \r\nX-Bytes: \xe9\xff\r\n__proto__: x\r\ncontent-LENGTH: 0\r\n\r\n'
  expect(await through(answer)).toBe(answer)
})

test('nothing is added to an answer', async () => {
  expect(await through('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')).toBe(
    'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n',
  )
})

test("a redirect is the visitor's to follow", async () => {
  for (const status of [
    '301 Moved Permanently',
    '302 Found',
    '303 See Other',
    '307 Temporary Redirect',
    '308 Permanent Redirect',
  ]) {
    const answer = `HTTP/1.1 ${status}\r\nLocation: http://elsewhere.example/a/../b\r\nContent-Length: 0\r\n\r\n`
    expect(await through(answer)).toBe(answer)
  }
})

test('content encodings are not touched', async () => {
  const body = Buffer.from(Bun.gzipSync(Buffer.from('hello '.repeat(100)))).toString('latin1')
  const answer = ok(body, 'Content-Encoding: gzip\r\nVary: Accept-Encoding\r\n')
  expect(await through(answer)).toBe(answer)
  const broken = ok('not gzip at all', 'Content-Encoding: gzip, br, x-own\r\n')
  expect(await through(broken)).toBe(broken)
})

test('HEAD gets the head with its length and no body, and the connection goes on', async () => {
  await using raw = await rawTunnel()
  const head = 'HTTP/1.1 200 OK\r\nContent-Length: 123456\r\nETag: "x"\r\n\r\n'
  const { got, visitor, app } = await exchange(raw, `HEAD / HTTP/1.1\r\nHost: ${raw.host}\r\n\r\n`, head)
  expect(got.head).toBe(head)
  await visitor.send(get(raw.host))
  await app.until('\r\n\r\n')
  await app.send(ok('next'))
  expect((await readAnswer(visitor)).body).toBe('next')
})

test('a HEAD answer announced as chunked has no chunks', async () => {
  const head = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
  expect(await through(head, host => `HEAD / HTTP/1.1\r\nHost: ${host}\r\n\r\n`)).toBe(head)
})

test('204, 205 and 304 pass as they are, and the connection goes on', async () => {
  for (const answer of [
    'HTTP/1.1 204 No Content\r\nX: y\r\n\r\n',
    'HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n',
    'HTTP/1.1 304 Not Modified\r\nETag: "x"\r\nContent-Length: 500\r\n\r\n',
    'HTTP/1.1 304 Not Modified\r\nETag: "x"\r\n\r\n',
  ]) {
    await using raw = await rawTunnel()
    const visitor = await raw.visit(get(raw.host))
    const app = await raw.origin.accept()
    await app.until('\r\n\r\n')
    await app.send(answer)
    expect(await visitor.until('\r\n\r\n')).toBe(answer)
    await visitor.send(get(raw.host))
    await app.until('\r\n\r\n')
    await app.send(ok('next'))
    expect((await readAnswer(visitor)).body).toBe('next')
  }
})

test('a range passes both ways', async () => {
  await using raw = await rawTunnel()
  const answer =
    'HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 5-9/100\r\nContent-Length: 5\r\n\r\n56789'
  const { seen, got } = await exchange(
    raw,
    get(raw.host, '/', 'Range: bytes=5-9\r\nIf-Range: "x"\r\n'),
    answer,
  )
  expect(headerOf(seen.head, 'Range')).toBe('bytes=5-9')
  expect(got.head + got.body).toBe(answer)
})

test('the length of a body that is streamed is kept', async () => {
  await using raw = await rawTunnel()
  const visitor = await raw.visit(get(raw.host))
  const app = await raw.origin.accept()
  await app.until('\r\n\r\n')
  await app.send('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n')
  expect(await visitor.until('\r\n\r\n')).toBe('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n')
  for (const piece of ['ab', 'cd', 'ef']) {
    await app.send(piece)
    expect(await visitor.exactly(2)).toBe(piece)
  }
})

test('chunks and trailers pass byte for byte, without extensions, which nobody reads', async () => {
  const answer =
    'HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n' +
    '5\r\nhello\r\n00a\r\n0123456789\r\n0\r\nX-Sum: 1\r\nX-Sum: 2\r\n\r\n'
  expect(await through(answer)).toBe(answer)
  expect(await through(answer.replace('5\r\n', '5;a=b\r\n'))).toBe(answer)
})

test('hop-by-hop headers of an answer stay on their hop', async () => {
  const got = await through(
    'HTTP/1.1 200 OK\r\nConnection: keep-alive, X-Mine\r\nKeep-Alive: timeout=5\r\nX-Mine: 1\r\nX-Kept: 2\r\n' +
      'Upgrade: h2c\r\nContent-Length: 0\r\n\r\n',
  )
  expect(got).toBe('HTTP/1.1 200 OK\r\nX-Kept: 2\r\nContent-Length: 0\r\n\r\n')
})

test("an origin that closes its connection does not close the visitor's", async () => {
  await using raw = await rawTunnel()
  const { got, visitor, app } = await exchange(raw, get(raw.host), ok('one', 'Connection: close\r\n'))
  app.socket.end()
  expect(got.head).not.toContain('close')
  await visitor.send(get(raw.host))
  const again = await raw.origin.accept()
  await again.until('\r\n\r\n')
  await again.send(ok('two'))
  expect((await readAnswer(visitor)).body).toBe('two')
})

test('a visitor that says Connection: close gets it back, and FIN behind the answer', async () => {
  await using raw = await rawTunnel()
  const { got, visitor } = await exchange(raw, get(raw.host, '/', 'Connection: close\r\n'), ok('bye'))
  expect(headerOf(got.head, 'Connection')).toBe('close')
  await visitor.end()
  expect(visitor.isClosed && visitor.error !== undefined).toBe(false)
})

test('an answer in any pieces is the same answer', async () => {
  await using raw = await rawTunnel()
  const answer =
    'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n'
  const visitor = await raw.visit(get(raw.host))
  const app = await raw.origin.accept()
  await app.until('\r\n\r\n')
  for (const byte of answer) {
    await app.send(byte)
    await new Promise(setImmediate)
  }
  expect(await visitor.until('0\r\nX: y\r\n\r\n')).toBe(answer)
})
