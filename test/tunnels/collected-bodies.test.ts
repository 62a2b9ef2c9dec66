// Request bodies without a length, for apps that cannot read chunked ones: collected at the client, on both wires.

import { describe, expect, test } from 'bun:test'
import { connect } from 'node:http2'
import { TunnelClient } from '../../src/index.ts'
import { closedAfterEach } from '../support/opened.ts'
import { RawOrigin, rawDial } from '../support/raw.ts'
import { startTunnel } from '../support/tunnel.ts'

const { defer } = closedAfterEach()
const CHUNKED = 'Transfer-Encoding: chunked\r\nTrailer: X-Trailer\r\n'
const CHUNKS = '5\r\nhello\r\n1;x=y\r\n \r\n5\r\nworld\r\n0\r\nX-Trailer: 1\r\n\r\n'

/** An app that reads as many bytes as Content-Length says, and responds with what it got. */
function app(): RawOrigin {
  const origin = new RawOrigin()
  defer(() => origin[Symbol.dispose]())
  void (async () => {
    for (;;) {
      const connection = await origin.accept()
      void (async () => {
        for (;;) {
          const head = await connection.until('\r\n\r\n')
          const length = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0)
          const seen = head + (await connection.exactly(length))
          await connection.send(`HTTP/1.1 200 OK\r\nContent-Length: ${seen.length}\r\n\r\n${seen}`)
        }
      })().catch(() => {})
    }
  })().catch(() => {})
  return origin
}

describe.each(['streams', 'json'] as const)('on the wire %s', wire => {
  test('a chunked body arrives with its length, in whatever pieces it came, and the next request behind it', async () => {
    await using tunnel = await startTunnel({ port: app().port, collectBodyBytes: 11 }, { wire })
    const visitor = await rawDial(tunnel.port)
    for (const size of [1, 7, 1_000]) {
      const request = `POST /${size} HTTP/1.1\r\nHost: ${tunnel.host}\r\n${CHUNKED}\r\n${CHUNKS}`
      for (let at = 0; at < request.length; at += size) await visitor.send(request.slice(at, at + size))
      const seen = await visitor.until('hello world')
      expect(seen).toMatch(/\r\ncontent-length: 11\r\n/i)
      expect(seen.slice(seen.indexOf(`POST /${size}`))).not.toMatch(/chunked|trailer/i)
    }
    await visitor.send(`GET /next HTTP/1.1\r\nHost: ${tunnel.host}\r\n\r\n`)
    expect(await visitor.until('GET /next')).toContain('200 OK')
    visitor.socket.terminate()
  })
})

test('a longer body is 413, and one with a length passes, however long it is', async () => {
  await using tunnel = await startTunnel({ port: app().port, collectBodyBytes: 10 })
  const visitor = await rawDial(tunnel.port)
  await visitor.send(`POST / HTTP/1.1\r\nHost: ${tunnel.host}\r\nContent-Length: 11\r\n\r\nhello world`)
  await visitor.until('hello world')
  await visitor.send(`POST / HTTP/1.1\r\nHost: ${tunnel.host}\r\n${CHUNKED}\r\n${CHUNKS}`)
  expect(await visitor.until('BODY_TOO_LARGE')).toContain('413 Content Too Large')
  visitor.socket.terminate()
})

test('a visitor with HTTP/2, whose bodies have no length', async () => {
  await using tunnel = await startTunnel({ port: app().port, collectBodyBytes: 1_000 })
  const session = connect(`http://127.0.0.1:${tunnel.port}`)
  const stream = session.request({ ':method': 'POST', ':authority': tunnel.host })
  stream.write('hello ')
  stream.end('world')
  let seen = ''
  for await (const piece of stream) seen += String(piece)
  session.destroy()
  expect(seen).toMatch(/content-length: 11\r\n[\s\S]*\r\nhello world$/i)
})

test('what cannot be used is refused at once', () => {
  expect(() => new TunnelClient({ port: 1, collectBodyBytes: 0 })).toThrow('collectBodyBytes')
  expect(() => new TunnelClient({ port: 1, collectBodyBytes: 1, protocol: 'h2c' })).toThrow(
    'exclude each other',
  )
})
