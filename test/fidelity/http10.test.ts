// Visitors and apps that speak HTTP/1.0.

import { expect, test } from 'bun:test'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exchange, headerOf, ok, rawTunnel, readAnswer } from '../support/exchange.ts'
import { rawDial } from '../support/raw.ts'
import { startTunnel } from '../support/tunnel.ts'

const get10 = (host: string, lines = '') => `GET / HTTP/1.0\r\nHost: ${host}\r\n${lines}\r\n`

test.concurrent('a visitor of HTTP/1.0 gets its answer and FIN', async () => {
  await using raw = await rawTunnel()
  const { seen, got, visitor } = await exchange(raw, get10(raw.host), ok('hello'))
  expect(seen.head).toStartWith('GET / HTTP/1.0\r\n')
  expect(got.head).toBe('HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n')
  expect(await visitor.end()).toBe('')
})

test.concurrent('a visitor of HTTP/1.0 that wants to stay is told so and may go on', async () => {
  await using raw = await rawTunnel()
  const { got, visitor, app } = await exchange(raw, get10(raw.host, 'Connection: Keep-Alive\r\n'), ok('one'))
  expect(headerOf(got.head, 'connection')).toBe('keep-alive')
  await visitor.send(get10(raw.host))
  await app.until('\r\n\r\n')
  await app.send(ok('two'))
  expect((await readAnswer(visitor)).body).toBe('two')
  await visitor.end()
})

test.concurrent('an answer without length ends with the connection', async () => {
  await using raw = await rawTunnel()
  const visitor = await raw.visit(get10(raw.host, 'Connection: Keep-Alive\r\n'))
  const app = await raw.origin.accept()
  await app.until('\r\n\r\n')
  await app.send('HTTP/1.0 200 OK\r\n\r\nhello')
  app.socket.end()
  expect(await visitor.end()).toBe('HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello')
})

test.concurrent('chunks that an app sends to HTTP/1.0 arrive as plain bytes', async () => {
  await using raw = await rawTunnel()
  const visitor = await raw.visit(get10(raw.host, 'Connection: Keep-Alive\r\n'))
  const app = await raw.origin.accept()
  await app.until('\r\n\r\n')
  await app.send('HTTP/1.1 200 OK\r\nX: y\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1;x\r\n')
  await visitor.until('hello')
  await app.send(' \r\n5\r\nworld\r\n0\r\nX-Sum: 1\r\n\r\n')
  const rest = await visitor.end()
  expect(rest).toBe(' world')
  expect(visitor.error).toBeUndefined()
})

test.concurrent('chunks of HTTP/1.0 that break off do not look complete', async () => {
  await using raw = await rawTunnel()
  const visitor = await raw.visit(get10(raw.host))
  const app = await raw.origin.accept()
  await app.until('\r\n\r\n')
  await app.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n')
  await visitor.until('hello')
  app.socket.end()
  expect(await visitor.closed()).toBeInstanceOf(Error)
})

test.concurrent('a visitor of HTTP/1.0 and node:http understand each other', async () => {
  const server = createServer((_request, response) => {
    response.write('streamed, ')
    response.end('no length')
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  // It listens on a port.
  await using tunnel = await startTunnel({ port: (server.address() as AddressInfo).port })
  const visitor = await rawDial(tunnel.port)
  await visitor.send(get10(tunnel.host))
  expect((await visitor.end()).split('\r\n\r\n')[1]).toBe('streamed, no length')
  server.close()
})

test.concurrent('an app that answers as HTTP/1.0 is understood by a visitor of HTTP/1.1', async () => {
  await using raw = await rawTunnel()
  const { got, visitor } = await exchange(
    raw,
    `GET / HTTP/1.1\r\nHost: ${raw.host}\r\n\r\n`,
    'HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello',
  )
  expect(got.head).toBe('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n')
  await visitor.send(`GET / HTTP/1.1\r\nHost: ${raw.host}\r\n\r\n`)
  await (await raw.origin.accept()).until('\r\n\r\n')
})
