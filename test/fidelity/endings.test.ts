// How an answer ends: one that is complete looks complete, one that was cut never does.

import { expect, test } from 'bun:test'
import { get, headerOf, ok, rawTunnel, readAnswer } from '../support/exchange.ts'

/** Sends `answer`, then leaves by FIN or RST. Returns the visitor's side when it is over. */
async function cut(answer: string, how: 'FIN' | 'RST') {
  const raw = await rawTunnel()
  const visitor = await raw.visit(get(raw.host, '/', 'Connection: close\r\n'))
  const app = await raw.origin.accept()
  await app.until('\r\n\r\n')
  // Trailers go on once they are complete.
  const marker = answer.replace(/(?<=\n0\r\n)X: y\r\n$/, '').slice(-3)
  await app.send(answer)
  if (answer.includes('\r\n\r\n') && marker !== '')
    await visitor.when(() => visitor.text.includes(marker), marker)
  if (how === 'FIN') app.socket.end()
  else app.socket.terminate()
  await visitor.end()
  return { text: visitor.text, visitor, [Symbol.asyncDispose]: () => raw[Symbol.asyncDispose]() }
}

test.concurrent('an answer that ends with the connection is complete by FIN, and the visitor gets FIN', async () => {
  await using seen = await cut('HTTP/1.1 200 OK\r\nX: y\r\n\r\nuntil the end', 'FIN')
  expect(seen.text).toBe('HTTP/1.1 200 OK\r\nX: y\r\nConnection: close\r\n\r\nuntil the end')
  expect(seen.visitor.hasEnded).toBe(true)
  expect(seen.visitor.error).toBeUndefined()
})

test.concurrent('an answer that ends with the connection is cut by RST', async () => {
  await using seen = await cut('HTTP/1.1 200 OK\r\n\r\nuntil the end', 'RST')
  expect(await seen.visitor.closed()).toBeInstanceOf(Error)
  expect(seen.visitor.hasEnded).toBe(false)
})

for (const how of ['FIN', 'RST'] as const) {
  test.concurrent(`an origin that leaves by ${how} before the head is 502 ORIGIN_CLOSED`, async () => {
    await using seen = await cut('', how)
    expect(seen.text).toStartWith('HTTP/1.1 502 ')
    expect(headerOf(seen.text, 'x-localtunnels-error')).toBe('ORIGIN_CLOSED')
  })

  test.concurrent(`an origin that leaves by ${how} in the middle of the head is 502 ORIGIN_CLOSED`, async () => {
    await using seen = await cut('HTTP/1.1 200 OK\r\nContent-Le', how)
    expect(headerOf(seen.text, 'x-localtunnels-error')).toBe('ORIGIN_CLOSED')
  })

  test.concurrent(`an origin that leaves by ${how} behind an interim answer is 502 ORIGIN_CLOSED`, async () => {
    await using seen = await cut('HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n', how)
    expect(seen.text).toStartWith('HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 502 ')
  })

  test.concurrent(`a body cut by ${how} before its length ends in RST`, async () => {
    await using seen = await cut('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello', how)
    expect(seen.text).toEndWith('hello')
    expect(await seen.visitor.closed()).toBeInstanceOf(Error)
    expect(seen.visitor.hasEnded).toBe(false)
  })

  for (const [where, body] of [
    ['in a chunk', '5\r\nhel'],
    ['between chunks', '5\r\nhello\r\n'],
    ['in a size', '5\r\nhello\r\n1'],
    ['behind the last chunk', '5\r\nhello\r\n0\r\n'],
    ['in a trailer', '5\r\nhello\r\n0\r\nX: y\r\n'],
  ] as const) {
    test.concurrent(`chunks cut by ${how} ${where} never get their end`, async () => {
      await using seen = await cut(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${body}`, how)
      expect(seen.text).not.toMatch(/\n0\r\n(?:X: y\r\n)?\r\n/)
      expect(await seen.visitor.closed()).toBeInstanceOf(Error)
      expect(seen.visitor.hasEnded).toBe(false)
    })
  }
}

test.concurrent('chunks that break in the middle end in RST', async () => {
  await using seen = await cut('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n', 'FIN')
  expect(await seen.visitor.closed()).toBeInstanceOf(Error)
  await using raw = await rawTunnel()
  const visitor = await raw.visit(get(raw.host))
  const app = await raw.origin.accept()
  await app.until('\r\n\r\n')
  await app.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n')
  await visitor.until('hello\r\n')
  await app.send('zz\r\n')
  expect(await visitor.closed()).toBeInstanceOf(Error)
})

test.concurrent('a client that vanishes in the middle of an answer cuts it, and answers what had not begun with 502', async () => {
  await using raw = await rawTunnel()
  const begun = await raw.visit(get(raw.host))
  const app = await raw.origin.accept()
  await app.until('\r\n\r\n')
  await app.send('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello')
  await begun.until('hello')
  const waiting = await raw.visit(get(raw.host))
  await (await raw.origin.accept()).until('\r\n\r\n')
  await raw.tunnel.client.disconnect()
  expect(await begun.closed()).toBeInstanceOf(Error)
  expect(headerOf((await readAnswer(waiting)).head, 'x-localtunnels-error')).toBe('CLIENT_GONE')
})

test.concurrent('bytes behind an answer never reach a visitor, neither this one nor the next', async () => {
  await using raw = await rawTunnel()
  const visitor = await raw.visit(get(raw.host))
  const app = await raw.origin.accept()
  await app.until('\r\n\r\n')
  await app.send(`${ok('one')}${ok('forged')}`)
  expect((await readAnswer(visitor)).body).toBe('one')
  await visitor.send(get(raw.host))
  const again = await raw.origin.accept()
  await again.until('\r\n\r\n')
  await again.send(ok('two'))
  expect((await readAnswer(visitor)).body).toBe('two')
  await app.end()
})

test.concurrent('what an origin sends unasked never reaches a visitor', async () => {
  await using raw = await rawTunnel()
  const visitor = await raw.visit(get(raw.host))
  const app = await raw.origin.accept()
  await app.until('\r\n\r\n')
  await app.send(ok('one'))
  expect((await readAnswer(visitor)).body).toBe('one')
  await app.send(ok('forged'))
  await app.closed()
  await visitor.send(get(raw.host))
  const again = await raw.origin.accept()
  await again.until('\r\n\r\n')
  await again.send(ok('two'))
  expect((await readAnswer(visitor)).body).toBe('two')
})
