// Answers that come before the request is complete: heard by the visitor, and the rest of the request is not wanted.

import { expect, test } from 'bun:test'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { headerOf, rawTunnel, readAnswer, statusOf } from '../support/exchange.ts'
import { rawDial } from '../support/raw.ts'
import { startTunnel } from '../support/tunnel.ts'

const head = (host: string, length = 1_000_000) =>
  `POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: ${length}\r\n\r\n`

test.concurrent('an answer in the middle of an upload reaches the visitor and ends the connection', async () => {
  await using raw = await rawTunnel()
  const visitor = await raw.visit(`${head(raw.host)}some`)
  const app = await raw.origin.accept()
  await app.until('some')
  await app.send('HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig')
  const answer = await readAnswer(visitor)
  expect(statusOf(answer.head)).toBe(413)
  expect(answer.body).toBe('big')
  expect(headerOf(answer.head, 'connection')).toBe('close')
  await visitor.end()
  // The origin is not left with an upload that never ends.
  expect(await app.closed()).toBeInstanceOf(Error)
})

test.concurrent('an origin that answers, closes and cuts the upload is heard all the same', async () => {
  await using raw = await rawTunnel()
  for (let n = 0; n < 20; n++) {
    const visitor = await raw.visit(`${head(raw.host, 50_000_000)}${'x'.repeat(200_000)}`)
    let isUploading = true
    const uploading = (async () => {
      const piece = Buffer.alloc(65_536)
      while (isUploading && !visitor.isClosed) {
        await visitor.send(piece)
        await new Promise(setImmediate)
      }
    })()
    const app = await raw.origin.accept()
    await app.until('xxx')
    app.socket.pause()
    await app.send('HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 3\r\n\r\nbig')
    app.socket.end()
    setTimeout(() => app.socket.terminate(), 5)
    const answer = await readAnswer(visitor)
    expect(answer.head + answer.body).toBe(
      'HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig',
    )
    isUploading = false
    await uploading
  }
}, 60_000)

test.concurrent('an answer may begin while the upload goes on, and both end well', async () => {
  await using raw = await rawTunnel()
  const visitor = await raw.visit(`${head(raw.host, 10)}12345`)
  const app = await raw.origin.accept()
  await app.until('12345')
  await app.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n')
  await visitor.until('12345\r\n')
  await visitor.send('67890')
  await app.until('67890')
  await app.send('5\r\n67890\r\n0\r\n\r\n')
  expect(await visitor.until('0\r\n\r\n')).toBe('5\r\n67890\r\n0\r\n\r\n')
  await visitor.send(`GET / HTTP/1.1\r\nHost: ${raw.host}\r\n\r\n`)
  await app.until('GET / HTTP/1.1')
})

test.concurrent('node:http refusing an upload is heard', async () => {
  const server = createServer((request, response) => {
    request.once('data', () => {
      response.writeHead(413, { connection: 'close' })
      response.end('too much')
      request.destroy()
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  // It listens on a port.
  await using tunnel = await startTunnel({ port: (server.address() as AddressInfo).port })
  const visitor = await rawDial(tunnel.port)
  await visitor.send(`${head(tunnel.host)}${'x'.repeat(500_000)}`)
  const { head: answer } = await readAnswer(visitor)
  expect([413, 502]).toContain(statusOf(answer))
  visitor.socket.terminate()
  server.closeAllConnections()
  server.close()
})

test.concurrent('a body over the limit is 413, by its length at once and by its chunks as they come', async () => {
  await using raw = await rawTunnel({ server: { limits: { maxBodyBytes: 1_000 } } })
  const announced = await raw.visit(head(raw.host, 1_001))
  expect(statusOf((await readAnswer(announced)).head)).toBe(413)
  expect(raw.origin.connections.length).toBe(0)
  const counted = await raw.visit(
    `POST / HTTP/1.1\r\nHost: ${raw.host}\r\nTransfer-Encoding: chunked\r\n\r\n3e8\r\n${'x'.repeat(1_000)}\r\n`,
  )
  const app = await raw.origin.accept()
  await app.until('xxx')
  await counted.send('1\r\nx\r\n')
  const { head: answer } = await readAnswer(counted)
  expect(headerOf(answer, 'x-localtunnels-error')).toBe('BODY_TOO_LARGE')
  expect(await app.closed()).toBeInstanceOf(Error)
})
