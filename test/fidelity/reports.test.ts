// What the server and the client report about exchanges: the status the visitor got, its bytes, the code.

import { expect, test } from 'bun:test'
import type { TunnelServerEvents } from '../../src/server/settings/options.ts'
import { ask } from '../support/ask.ts'
import { next } from '../support/events.ts'
import { get, ok, rawTunnel, readAnswer } from '../support/exchange.ts'
import { rawDial } from '../support/raw.ts'
import { startTunnel } from '../support/tunnel.ts'

test('an exchange is reported with the status that the visitor got', async () => {
  await using raw = await rawTunnel()
  const reports: TunnelServerEvents['request'][] = []
  raw.tunnel.server.on('request', report => void reports.push(report))
  const visitor = await raw.visit(get(raw.host, '/fine'))
  const app = await raw.origin.accept()
  await app.until('\r\n\r\n')
  await app.send(ok('fine'))
  await readAnswer(visitor)
  await visitor.send(get(raw.host, '/broken'))
  await app.until('\r\n\r\n')
  await app.send('nonsense')
  await readAnswer(visitor)
  expect(reports.map(({ method, path, status, error }) => [method, path, status, error])).toEqual([
    ['GET', '/fine', 200, undefined],
    ['GET', '/broken', 502, 'ORIGIN_INVALID'],
  ])
})

test.each(['streams', 'json'] as const)('%s: the server says why an answer was not valid', async wire => {
  await using raw = await rawTunnel({ client: { wire } })
  const report = next(raw.tunnel.server, 'request')
  const visitor = await raw.visit(get(raw.host, '/broken'))
  const app = await raw.origin.accept()
  await app.until('\r\n\r\n')
  await app.send('HTTP/1.1 200 OK\r\nno colon here\r\n\r\n')
  expect(JSON.stringify(await readAnswer(visitor))).not.toContain('no colon')
  expect(await report).toMatchObject({ error: 'ORIGIN_INVALID', reason: 'line 2 of its head has no colon' })
})

test('the client hears of a refused origin with 502 and its code', async () => {
  await using tunnel = await startTunnel({ port: 1 })
  const { promise, resolve } = Promise.withResolvers<{ status: number; error?: string }>()
  tunnel.client.on('error', () => {})
  tunnel.client.on('response', resolve)
  const visitor = await rawDial(tunnel.port)
  await visitor.send(get(tunnel.host))
  await readAnswer(visitor)
  expect(await promise).toMatchObject({ status: 502, error: 'ORIGIN_REFUSED' })
  visitor.socket.terminate()
})

test('a WebSocket is reported when it opens, and its response when it is closed', async () => {
  using app = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: (request, server) => (server.upgrade(request) ? undefined : new Response('no', { status: 400 })),
    websocket: { message: (socket, text) => void socket.send(text) },
  })
  await using tunnel = await startTunnel({ port: app.port! })
  const seen: unknown[] = []
  for (const event of ['request', 'upgraded', 'response'] as const)
    tunnel.client.on(event, report => void seen.push([event, report]))
  const upgraded = next(tunnel.client, 'upgraded')
  const response = next(tunnel.client, 'response')
  const options = { headers: { host: tunnel.host } }
  const visitor = new WebSocket(`ws://127.0.0.1:${tunnel.port}/chat`, options)
  expect(await upgraded).toEqual({ id: expect.any(Number), tunnel: 'app', method: 'GET', path: '/chat' })
  visitor.close()
  expect(await response).toMatchObject({ status: 101, path: '/chat' })
  expect(seen.map(one => (one as [string])[0])).toEqual(['request', 'upgraded', 'response'])
})

test('a response event has the documented fields and no others', async () => {
  await using tunnel = await startTunnel({ fetch: () => new Response('hi') })
  const response = next(tunnel.client, 'response')
  await ask(tunnel.port, tunnel.host)
  expect(Object.keys(await response).sort()).toEqual(
    ['bytes', 'durationMs', 'id', 'method', 'path', 'status', 'tunnel'].sort(),
  )
})
