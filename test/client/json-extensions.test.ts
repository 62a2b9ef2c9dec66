// What our two ends add to the JSON wire: the client gets a message when a visitor leaves, and a path keeps its bytes.

import { describe, expect, test } from 'bun:test'
import { TunnelClient } from '../../src/index.ts'
import { ask } from '../support/ask.ts'
import { next } from '../support/events.ts'
import { NaiveJsonClient } from '../support/json-client.ts'
import { NaiveJsonServer } from '../support/json-server.ts'
import { RawOrigin, rawDial } from '../support/raw.ts'
import { startServer, startTunnel } from '../support/tunnel.ts'
import { within } from '../support/within.ts'

describe('a visitor that leaves', () => {
  test('aborts the request of a fetch handler, and is no answer', async () => {
    const aborted = Promise.withResolvers<void>()
    const asked = Promise.withResolvers<void>()
    const fetch = (request: Request) => {
      if (new URL(request.url).pathname === '/next') return new Response('next')
      request.signal.addEventListener('abort', () => aborted.resolve())
      asked.resolve()
      return new Promise<Response>(() => {})
    }
    await using tunnel = await startTunnel({ fetch }, { wire: 'json' })
    const response = next(tunnel.client, 'response')
    const leaving = new AbortController()
    const visit = ask(tunnel.port, tunnel.host, { signal: leaving.signal }).catch(() => {})
    await asked.promise
    leaving.abort()
    await visit
    await within(aborted.promise, 'the signal of the request')
    expect(await response).toMatchObject({ status: 0, error: 'CANCELLED' })
    expect(await ask(tunnel.port, tunnel.host, { path: '/next' })).toMatchObject({ body: 'next' })
  })

  test('closes the connection to the app', async () => {
    using origin = new RawOrigin()
    await using tunnel = await startTunnel({ port: origin.port }, { wire: 'json' })
    const visitor = await rawDial(tunnel.port)
    await visitor.send(`GET /slow HTTP/1.1\r\nHost: ${tunnel.host}\r\n\r\n`)
    const app = await origin.accept()
    await app.until('\r\n\r\n')
    visitor.socket.terminate()
    await within(app.closed(), 'the app to be left')
  })

  test('is not told to a client that did not ask for it', async () => {
    await using server = await startServer()
    const leave = Promise.withResolvers<void>()
    using client = new NaiveJsonClient(server.port, request => {
      if (request.path === '/') leave.resolve()
      return request.path === '/' ? undefined : { status: 200, body: 'ok' }
    })
    await client.register('app')
    const visitor = await rawDial(server.port)
    await visitor.send('GET / HTTP/1.1\r\nHost: app.localhost\r\n\r\n')
    await leave.promise
    visitor.socket.terminate()
    expect((await ask(server.port, 'app.localhost', { path: '/second' })).body).toBe('ok')
    expect(client.received.map(({ type }) => type)).not.toContain('cancel')
  })

  test('a cancel for an unknown request, or that is answered, is ignored', async () => {
    using server = new NaiveJsonServer()
    await using client = new TunnelClient({
      server: `ws://127.0.0.1:${server.port}`,
      fetch: () => new Response('ok'),
    })
    await client.connect()
    for (const id of [99, -1, 'x', null, {}]) server.send({ type: 'cancel', id })
    expect((await server.ask({ id: 5 })).status).toBe(200)
    server.send({ type: 'cancel', id: 5 })
    expect((await server.ask({ id: 6 })).status).toBe(200)
  })
})

test('a path of raw UTF-8 bytes arrives as it was sent', async () => {
  using origin = new RawOrigin()
  await using tunnel = await startTunnel({ port: origin.port }, { wire: 'json' })
  const visitor = await rawDial(tunnel.port)
  await visitor.send(Buffer.from(`GET /caf\u00e9?q=\u20ac HTTP/1.1\r\nHost: ${tunnel.host}\r\n\r\n`, 'utf8'))
  const app = await origin.accept()
  const head = Buffer.from(await app.until('\r\n\r\n'), 'latin1').toString('utf8')
  expect(head).toStartWith('GET /caf\u00e9?q=\u20ac HTTP/1.1\r\n')
  visitor.socket.terminate()
})

test('a header that Connection of an answer names stays on that hop', async () => {
  using origin = new RawOrigin()
  await using tunnel = await startTunnel({ port: origin.port }, { wire: 'json' })
  const visitor = await rawDial(tunnel.port)
  await visitor.send(`GET / HTTP/1.1\r\nHost: ${tunnel.host}\r\n\r\n`)
  const app = await origin.accept()
  await app.until('\r\n\r\n')
  await app.send(
    'HTTP/1.1 200 OK\r\nConnection: X-Hop, close\r\nX-Hop: 1\r\nX-End: 2\r\nContent-Length: 2\r\n\r\nok',
  )
  const head = await visitor.until('\r\n\r\n')
  expect(head.toLowerCase()).toContain('x-end: 2')
  expect(head.toLowerCase()).not.toContain('x-hop')
  visitor.socket.terminate()
})
