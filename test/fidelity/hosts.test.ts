// Which Host leads where: one label to its tunnel, the server's own pages on the control host and nowhere else.

import { expect, test } from 'bun:test'
import { TunnelClient } from '../../src/index.ts'
import { get, headerOf, ok, rawTunnel, readAnswer, readRequest, statusOf } from '../support/exchange.ts'
import { rawDial } from '../support/raw.ts'
import { startServer } from '../support/tunnel.ts'

async function ask(port: number, host: string, path = '/', lines = '', method = 'GET') {
  const visitor = await rawDial(port)
  await visitor.send(`${method} ${path} HTTP/1.1\r\nHost: ${host}\r\n${lines}Connection: close\r\n\r\n`)
  const { head, payload } = await readAnswer(visitor, method)
  await visitor.end()
  visitor.socket.end()
  return { status: statusOf(head), code: headerOf(head, 'x-localtunnels-error'), payload }
}

test.concurrent('one label under the domain is a tunnel, in any case, with any port, with a dot behind', async () => {
  await using raw = await rawTunnel()
  for (const host of [
    'app.localhost',
    'APP.LocalHost',
    'app.localhost:80',
    'App.localhost:65535',
    'app.localhost.',
    'app.localhost.:8080',
  ]) {
    const visitor = await raw.visit(get(host))
    const app = raw.origin.connections[0] ?? (await raw.origin.accept())
    const seen = await readRequest(app)
    expect(headerOf(seen.head, 'host')).toBe(host)
    await app.send(ok(''))
    expect(statusOf((await readAnswer(visitor)).head)).toBe(200)
  }
})

test.concurrent('the app has every path of its own host, also those that the server uses on its own', async () => {
  await using raw = await rawTunnel()
  const paths = [
    '/status',
    '/_status',
    '/health',
    '/_health',
    '/metrics',
    '/_metrics',
    '/tls-check',
    '/_tls-check?domain=x',
    '/',
    '/api/tunnels',
  ]
  const visitor = await raw.visit(get(raw.host, '/first'))
  const app = await raw.origin.accept()
  await readRequest(app)
  await app.send(ok('first'))
  await readAnswer(visitor)
  for (const path of paths) {
    await visitor.send(get(raw.host, path))
    expect((await readRequest(app)).head).toStartWith(`GET ${path} HTTP/1.1\r\n`)
    await app.send(ok('of the app'))
    expect((await readAnswer(visitor)).body).toBe('of the app')
  }
})

test.concurrent("the server's own pages are on the control host", async () => {
  await using server = await startServer({ domains: ['tunnel.test'] })
  for (const host of [
    'tunnel.test',
    'api.tunnel.test',
    'TUNNEL.test:1',
    '127.0.0.1',
    'localhost',
    '[::1]:80',
  ]) {
    expect(await ask(server.port, host, '/health')).toMatchObject({ status: 200, payload: 'OK' })
    // What the server counts is for the operator alone, at a listener of its own.
    for (const path of ['/status', '/_status', '/metrics', '/_metrics'])
      expect((await ask(server.port, host, path)).status).toBe(404)
  }
  expect((await ask(server.port, 'tunnel.test', '/nothing')).status).toBe(404)
  expect((await ask(server.port, 'tunnel.test', '/health', '', 'HEAD')).status).toBe(200)
  expect((await ask(server.port, 'tunnel.test', '/health', '', 'DELETE')).status).toBe(404)
})

test.concurrent('a nested label, a foreign domain and a lookalike are refused', async () => {
  await using raw = await rawTunnel({ server: { domains: ['localhost', 'tunnel.test'] } })
  for (const host of [
    'x.app.localhost',
    'app.localhost.evil.example',
    'applocalhost',
    'evil.example',
    'app.localhost.tunnel.test',
    'app.other.test',
    'app',
    '.localhost',
    'app..localhost',
    'app.localhost:99999',
    'app.localhost:x',
    'app.localhost@evil',
    'app.localhost, evil',
    'app.localhost/evil',
    '*.localhost',
    'a%70p.localhost',
    '',
  ] /* prettier-ignore */) {
    const { status } = await ask(raw.tunnel.port, host)
    expect([host, status === 404 || status === 400]).toEqual([host, true])
  }
  expect(raw.origin.connections.length).toBe(0)
})

test.concurrent('reserved labels cannot be taken', async () => {
  await using server = await startServer({ reservedNames: ['mine'] })
  for (const subdomain of ['api', 'www', 'admin', 'mine']) {
    const client = new TunnelClient({ server: server.url, port: 1, subdomain })
    expect(await client.connect().catch(error => error.code)).toBe('NAME_RESERVED')
  }
})

test.concurrent('CONNECT is refused', async () => {
  await using raw = await rawTunnel()
  const visitor = await raw.visit('CONNECT app.localhost:80 HTTP/1.1\r\nHost: app.localhost:80\r\n\r\n')
  const { head } = await readAnswer(visitor)
  expect(statusOf(head)).toBe(405)
  expect(headerOf(head, 'x-localtunnels-error')).toBe('METHOD_REFUSED')
  await visitor.end()
  expect(raw.origin.connections.length).toBe(0)
})

test.concurrent("an upgrade on a tunnel's host belongs to the app, also with the server's own subprotocol", async () => {
  await using raw = await rawTunnel()
  const lines =
    'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n' +
    'Sec-WebSocket-Protocol: localtunnels.v1, localtunnels\r\n'
  const visitor = await raw.visit(get(raw.host, '/?subdomain=other', lines))
  const app = await raw.origin.accept()
  const seen = await app.until('\r\n\r\n')
  expect(headerOf(seen, 'upgrade')).toBe('websocket')
  expect(headerOf(seen, 'sec-websocket-protocol')).toBe('localtunnels.v1, localtunnels')
  await app.send('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n')
  expect(statusOf((await readAnswer(visitor)).head)).toBe(403)
})

test.concurrent('an upgrade on a host without a tunnel is 404, not a control connection', async () => {
  await using server = await startServer()
  const lines =
    'Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'
  const visitor = await rawDial(server.port)
  await visitor.send(get('nobody.localhost', '/', `Connection: Upgrade\r\n${lines}`))
  expect(statusOf((await readAnswer(visitor)).head)).toBe(404)
  expect(server.getStats().connections).toBe(0)
  visitor.socket.terminate()
})
