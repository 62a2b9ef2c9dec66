// What the inspector shows of apps that speak HTTP/2: one row for each exchange of the connections that all visitors share.

import { expect, test } from 'bun:test'
import { createServer, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { ask } from '../../support/ask.ts'
import { InspectorApi } from '../../support/inspector.ts'
import { rawDial } from '../../support/raw.ts'
import { startTunnel } from '../../support/tunnel.ts'
import { within } from '../../support/within.ts'

async function startInspected() {
  const app = createServer({ settings: { enableConnectProtocol: true } })
  app.on('stream', (stream: ServerHttp2Stream, headers) => {
    stream.on('error', () => {})
    if (headers[':method'] === 'CONNECT') {
      stream.respond({ ':status': 200 })
      return void stream.pipe(stream)
    }
    if (headers[':path'] === '/cut') return stream.close(2)
    const pieces: Buffer[] = []
    stream.on('data', (piece: Buffer) => pieces.push(piece))
    stream.on('end', () => {
      stream.respond({ ':status': 200, 'x-app': 'h2' }, { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
      stream.end(Buffer.concat([Buffer.from(`${headers[':path']} `), ...pieces]))
    })
  })
  await new Promise<void>(resolve => app.listen(0, '127.0.0.1', resolve))
  const { port } = app.address() as AddressInfo
  const tunnel = await startTunnel({ port, protocol: 'h2c', inspect: { port: 0, rate: 0 } })
  return {
    tunnel,
    client: tunnel.client,
    api: new InspectorApi(tunnel.client),
    async [Symbol.asyncDispose]() {
      await tunnel[Symbol.asyncDispose]()
      app.close()
    },
  }
}

test('requests and answers of one connection, each with its own content', async () => {
  await using one = await startInspected()
  const { port, host } = one.tunnel
  const paths = Array.from({ length: 20 }, (_, index) => `/many?${index}`)
  await Promise.all(paths.map(path => ask(port, host, { path, method: 'POST', body: `body of ${path}` })))
  for (const path of paths) {
    const seen = await one.client.waitFor(`POST ${path}`)
    expect(seen.request?.text()).toBe(`body of ${path}`)
    expect(seen.response?.text()).toBe(`${path} body of ${path}`)
    expect(seen.response?.headers.get('x-app')).toBe('h2')
    expect(seen.status).toBe(200)
  }
})

test('trailers, and what the app broke off; it is said that none can be sent again', async () => {
  await using one = await startInspected()
  const { port, host } = one.tunnel
  await ask(port, host, { path: '/good' })
  const row = await one.api.ended('/good')
  const detail = await one.api.detail(row.id)
  expect(detail.replayable).toBe('REPLAY_IMPOSSIBLE')
  expect(JSON.stringify(detail.response)).toContain('grpc-status')
  expect((await one.api.send('POST', `exchanges/${row.id}/replay`, {})).status).toBe(409)
  const { status, code } = await ask(port, host, { path: '/cut' })
  expect(status).toBe(502)
  expect(await one.api.ended('/cut')).toMatchObject({ state: 'failed', code })
})

test('messages of a WebSocket on a stream', async () => {
  await using one = await startInspected()
  const { port, host } = one.tunnel
  const visitor = await rawDial(port)
  await visitor.send(
    `GET /ws HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n`,
  )
  await visitor.until('\r\n\r\n')
  // "hi", masked with zeros.
  await visitor.send(Uint8Array.from([0x81, 0x82, 0, 0, 0, 0, 0x68, 0x69]))
  await within(visitor.exactly(8), 'the echo')
  visitor.socket.end()
  await visitor.end()
  const row = await one.api.ended('/ws')
  expect(row.kind).toBe('websocket')
  const { json } = await one.api.ask(`exchanges/${row.id}/frames`)
  expect(json.frames.map((frame: { from: string; text: string }) => [frame.from, frame.text])).toContainEqual(
    ['visitor', 'hi'],
  )
})
