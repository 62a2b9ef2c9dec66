// The time that an app has for the head of a response, as its client chose it: shorter and longer than that of the server.

import { expect, test } from 'bun:test'
import { TunnelClient } from '../../src/index.ts'
import { ask } from '../support/ask.ts'
import { TestCluster } from '../support/clusters.ts'
import { codeOf } from '../support/events.ts'
import { closedAfterEach } from '../support/opened.ts'
import { rejection } from '../support/rejection.ts'
import { startServer, startTunnel } from '../support/tunnel.ts'

const { open, defer } = closedAfterEach()

/** Responds after the milliseconds that the path says, or when it is told. */
const app = () => {
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch(request) {
      await Bun.sleep(Number(new URL(request.url).pathname.replaceAll('/', '')))
      return new Response('late')
    },
  })
  defer(() => server.stop(true))
  return server.port
}

test('a shorter time than that of the server', async () => {
  await using tunnel = await startTunnel({ port: app(), responseTimeoutMs: 500 })
  const { port, host } = tunnel
  expect(await ask(port, host, { path: '/0' })).toMatchObject({ status: 200, body: 'late' })
  expect(await ask(port, host, { path: '/60000' })).toMatchObject({ status: 504, code: 'ORIGIN_TIMEOUT' })
})

test('a longer one, within the bound of the operator, and on a connection whose requests are served by a lane', async () => {
  const server = { limits: { originTimeoutMs: 500, maxResponseTimeoutMs: 20_000 } }
  await using tunnel = await startTunnel({ port: app(), responseTimeoutMs: 20_000 }, { server })
  const { port, host } = tunnel
  const { Agent } = await import('node:http')
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  for (let count = 0; count < 20; count++)
    expect((await ask(port, host, { path: '/0', agent })).status).toBe(200)
  expect(await ask(port, host, { path: '/2500', agent })).toMatchObject({ status: 200, body: 'late' })
  agent.destroy()
})

test('with middlewares it is the same time', async () => {
  const server = {
    middlewares: [
      {
        name: 'none',
        handle: (request: Request, next: (request: Request) => Promise<Response>) => next(request),
      },
    ],
    limits: { originTimeoutMs: 500, guardTimeoutMs: 500, maxResponseTimeoutMs: 20_000 },
  }
  await using tunnel = await startTunnel({ port: app(), responseTimeoutMs: 20_000 }, { server })
  expect((await ask(tunnel.port, tunnel.host, { path: '/2500' })).status).toBe(200)
})

test('with names or paths of the app it is the same time', async () => {
  const server = { limits: { originTimeoutMs: 500, maxResponseTimeoutMs: 20_000 } }
  const ways = { addPrefix: '/1', hostHeader: 'app.lan', responseTimeoutMs: 20_000 }
  await using tunnel = await startTunnel({ port: app(), ...ways }, { server })
  expect((await ask(tunnel.port, tunnel.host, { path: '/500' })).status).toBe(200)
})

test('in a cluster it is the time of the service, and of the server of its client, wherever the visitor comes', async () => {
  await using cluster = new TestCluster()
  const own = await cluster.server({ limits: { originTimeoutMs: 1_000, maxResponseTimeoutMs: 20_000 } })
  const other = await cluster.server({ limits: { originTimeoutMs: 500, maxResponseTimeoutMs: 20_000 } })
  const shared = { server: `http://127.0.0.1:${own.port}`, port: app() }
  await cluster.client({ ...shared, subdomain: 'slow', responseTimeoutMs: 20_000 })
  await cluster.client({ ...shared, subdomain: 'plain' })
  expect((await ask(other.port, 'slow.localhost', { path: '/2000' })).status).toBe(200)
  expect((await ask(other.port, 'plain.localhost', { path: '/600' })).status).toBe(200)
  expect(await ask(other.port, 'plain.localhost', { path: '/60000' })).toMatchObject({
    code: 'ORIGIN_TIMEOUT',
  })
})

test('more than the bound is refused, with the bound in words, and a bound of 0 is none', async () => {
  const server = open(await startServer({ limits: { originTimeoutMs: 500, maxResponseTimeoutMs: 2_000 } }))
  const wish = (responseTimeoutMs: number) =>
    new TunnelClient({ server: `http://127.0.0.1:${server.port}`, port: 1, responseTimeoutMs })
  const client = open(wish(2_001))
  const error = (await rejection(client.connect())) as Error
  expect(error).toMatchObject({ code: 'FEATURE_UNSUPPORTED' })
  expect(error.message).toStartWith('An app has at most 2 s for a response on this server')
  expect(error.message).toEndWith(' asks for 2.001 s. Change the option, or ask the operator.')
  await open(wish(2_000)).connect()
  await server.reload({ limits: { maxResponseTimeoutMs: 0 } })
  await open(wish(1e9)).connect()
})

test('what is no time is refused at once, and so is the JSON wire', async () => {
  expect(() => new TunnelClient({ port: 1, responseTimeoutMs: 0.5 })).toThrow('responseTimeoutMs')
  const wish = startTunnel({ port: 1, responseTimeoutMs: 500 }, { wire: 'json' })
  expect(await codeOf(wish)).toBe('FEATURE_UNSUPPORTED')
})
