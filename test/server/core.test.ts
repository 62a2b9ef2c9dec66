// The core of a server, without any of its parts: requests, connections and datagrams reach the app all the same.

import { expect, test } from 'bun:test'
import { once } from 'node:events'
import { Agent } from 'node:http'
import { createConnection, createServer } from 'node:net'
import { TunnelClient as CoreClient } from '../../src/client/client.ts'
import { TunnelClient } from '../../src/index.ts'
import type { Install, Part } from '../../src/server/contracts/part.ts'
import { TunnelServer } from '../../src/server/server.ts'
import { ask } from '../support/ask.ts'
import { DatagramVisitor, datagramApp } from '../support/datagrams.ts'
import { codeOf } from '../support/events.ts'
import { NaiveJsonServer } from '../support/json-server.ts'
import { startServer } from '../support/tunnel.ts'

async function start(): Promise<{ server: TunnelServer; client: TunnelClient }> {
  const server = new TunnelServer({
    port: 0,
    host: '127.0.0.1',
    limits: { startupHoldMs: 0, drainIdleMs: 0 },
  })
  await server.start()
  const client = new TunnelClient({
    server: `http://127.0.0.1:${server.port}`,
    host: '127.0.0.1',
    subdomain: 'app',
    fetch: () => new Response('hello'),
  })
  return { server, client }
}

test('a server without parts answers HTTP', async () => {
  const { server, client } = await start()
  await using _server = server
  await using _client = client
  await client.connect()
  expect((await ask(server.port, 'app.localhost', { path: '/' })).body).toBe('hello')
})

test('a client without parts serves a server with all of them: many requests of one visitor, and none captured', async () => {
  await using server = await startServer()
  using app = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('hello') })
  const where = { port: app.port ?? 0, host: '127.0.0.1' }
  await using client = new CoreClient({ server: server.url, subdomain: 'app', ...where })
  await client.connect()
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  for (let count = 0; count < 30; count++)
    expect((await ask(server.port, 'app.localhost', { agent })).body).toBe('hello')
  agent.destroy()
  expect(() => client.exchanges).toThrow('captures nothing')
  const refusal = await client.http({ fetch: () => new Response('') }).catch((error: Error) => error.message)
  expect(refusal).toContain('no part for fetch')
})

test('a server without parts joins TCP connections', async () => {
  const { server, client } = await start()
  await using _server = server
  await using _client = client
  const app = createServer(socket => socket.pipe(socket)).listen(0, '127.0.0.1')
  await once(app, 'listening')
  const tunnel = await client.tcp({ port: (app.address() as { port: number }).port })
  const visitor = createConnection(tunnel.port ?? 0, '127.0.0.1')
  visitor.write('hello')
  const [answer] = await once(visitor, 'data')
  expect(String(answer)).toBe('hello')
  visitor.destroy()
  app.close()
})

test('a server without parts carries datagrams', async () => {
  const { server, client } = await start()
  await using _server = server
  await using _client = client
  await using app = await datagramApp()
  const tunnel = await client.udp({ port: app.port })
  await using visitor = await DatagramVisitor.to(tunnel.port ?? 0)
  await visitor.send(Buffer.from('hello'))
  await visitor.received(1)
  expect(String(Buffer.from(visitor.got[0] ?? []))).toBe('hello')
})

test('a server without the JSON wire refuses its clients', async () => {
  const { server } = await start()
  await using _server = server
  const { port } = server
  const client = new TunnelClient({ server: `http://127.0.0.1:${port}`, wire: 'json', port: 1 })
  expect(await codeOf(client.connect())).toBe('WIRE_UNSUPPORTED')
})

test('a server without HTTP/2 opens no tunnel to an app that speaks it', async () => {
  const { server, client } = await start()
  await using _server = server
  await using _client = client
  expect(await codeOf(client.http({ port: 1, protocol: 'h2c' }))).toBe('KIND_REFUSED')
})

test('a server without HTTP/2 refuses a visitor that begins with it', async () => {
  const { server } = await start()
  await using _server = server
  const visitor = createConnection(server.port, '127.0.0.1')
  visitor.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
  const [answer] = await once(visitor, 'data')
  expect(String(answer)).toStartWith('HTTP/1.1 505 ')
  visitor.destroy()
})

test('a client without the JSON wire leaves a server that agrees on no other', async () => {
  using server = new NaiveJsonServer()
  const client = new CoreClient({ server: `http://127.0.0.1:${server.port}`, port: 1 })
  expect(await codeOf(client.connect())).toBe('SERVER_REFUSED')
})

test('a server without guards opens no tunnel whose client wants one', async () => {
  const { server, client } = await start()
  await using _server = server
  await using _client = client
  expect(await codeOf(client.http({ port: 1, guard: { links: true } }))).toBe('GUARD_UNAVAILABLE')
})

test('parts start before the server listens, in their order, and stop behind its end, last first', async () => {
  const calls: string[] = []
  const installs = ['one', 'two'].map(
    (name): Install =>
      () => ({
        name,
        async start({ port }) {
          calls.push(`${name} starts, ${port === 0 ? 'before' : 'behind'} the listener`)
        },
        drain: code => void calls.push(`${name} drains: ${code}`),
        stop: () => void calls.push(`${name} stops`),
      }),
  )
  const server = new TunnelServer({ port: 0, host: '127.0.0.1', limits: { drainIdleMs: 0 } }, installs)
  server.on('start', () => calls.push('started'))
  server.on('stop', () => calls.push('stopped'))
  await server.start()
  await server.stop()
  expect(calls).toEqual([
    'one starts, before the listener',
    'two starts, before the listener',
    'started',
    'one drains: SERVER_DRAINING',
    'two drains: SERVER_DRAINING',
    'two stops',
    'one stops',
    'stopped',
  ])
})

test('a part that cannot start keeps its server from listening, and all parts stop', async () => {
  const calls: string[] = []
  const part = (name: string, start: Part['start']): Install => {
    return () => ({ name, start, stop: () => void calls.push(`${name} stops`) })
  }
  const server = new TunnelServer({ port: 0, host: '127.0.0.1' }, [
    part('one', () => Promise.reject(new Error('no'))),
    part('two', () => Promise.resolve()),
  ])
  expect(await server.start().catch(String)).toBe('Error: no')
  expect([server.port, ...calls]).toEqual([0, 'two stops', 'one stops'])
})
