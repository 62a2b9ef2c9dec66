// Where an app may be: on either address family, behind a unix socket, or nowhere but in a function.

import { expect, test } from 'bun:test'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import type { TunnelClientOptions } from '../../src/client/options.ts'
import { startTunnel } from '../support/tunnel.ts'

async function listening(host: string): Promise<Server & AsyncDisposable> {
  const server = createServer((request, response) => response.end(`${host} ${request.headers.host}`))
  await new Promise<void>(resolve =>
    server.listen(host.startsWith('/') ? { path: host } : { port: 0, host }, resolve),
  )
  return Object.assign(server, {
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
    },
  })
}

async function through(origin: TunnelClientOptions, path = '/', init: RequestInit = {}): Promise<Response> {
  await using tunnel = await startTunnel(origin)
  tunnel.client.on('error', () => {})
  const answer = await fetch(`http://127.0.0.1:${tunnel.port}${path}`, {
    ...init,
    headers: { host: tunnel.host },
  })
  const body = await answer.bytes()
  return new Response(body as never, { status: answer.status, headers: answer.headers }) // plain bytes
}

const portOf = (server: Server): number => (server.address() as AddressInfo).port // it listens on a port

for (const address of ['127.0.0.1', '::1']) {
  test(`localhost reaches an app that listens on ${address} only`, async () => {
    await using app = await listening(address)
    expect(await (await through({ host: 'localhost', port: portOf(app) })).text()).toBe(
      `${address} app.localhost`,
    )
  })
}

test('an IPv6 address in a URL', async () => {
  await using app = await listening('::1')
  expect(await (await through({ host: undefined as never, url: `http://[::1]:${portOf(app)}` })).text()).toBe(
    '::1 app.localhost',
  ) // no host
})

test('a unix socket', async () => {
  const path = `${tmpdir()}/localtunnels-${process.pid}.sock`
  await using _app = await listening(path)
  expect(await (await through({ unix: path })).text()).toBe(`${path} app.localhost`)
})

test('a unix socket that is not there is ORIGIN_REFUSED', async () => {
  const answer = await through({ unix: `${tmpdir()}/localtunnels-nobody.sock` })
  expect(answer.headers.get('x-localtunnels-error')).toBe('ORIGIN_REFUSED')
})

test('a host that does not exist is ORIGIN_UNREACHABLE', async () => {
  const answer = await through({ host: 'nobody.invalid', port: 80 })
  expect(answer.headers.get('x-localtunnels-error')).toBe('ORIGIN_UNREACHABLE')
})

test('a fetch handler: method, path, query, headers, body', async () => {
  const answer = await through(
    {
      fetch: async request =>
        new Response(`${request.method} ${request.url} ${await request.text()}`, {
          status: 201,
          headers: [
            ['Set-Cookie', 'a=1'],
            ['Set-Cookie', 'b=2'],
          ],
        }),
    },
    '/a/b?c=d',
    { method: 'POST', body: 'hello' },
  )
  expect(answer.status).toBe(201)
  expect(answer.headers.getSetCookie()).toEqual(['a=1', 'b=2'])
  expect(await answer.text()).toBe('POST http://app.localhost/a/b?c=d hello')
})

test('a fetch handler streams both ways', async () => {
  const answer = await through({ fetch: request => new Response(request.body) }, '/', {
    method: 'POST',
    body: Buffer.alloc(3_000_000, 'stream'),
  })
  expect((await answer.bytes()).length).toBe(3_000_000)
})

test('a fetch handler that throws is 500 HANDLER_FAILED', async () => {
  const answer = await through({
    fetch: () => {
      throw new Error('secret')
    },
  })
  expect(answer.status).toBe(500)
  expect(await answer.text()).not.toContain('secret')
})

test('a fetch handler hears that its visitor left', async () => {
  const left = Promise.withResolvers<void>()
  const asked = Promise.withResolvers<void>()
  await using tunnel = await startTunnel({
    fetch: request => {
      request.signal.addEventListener('abort', () => left.resolve())
      asked.resolve()
      return new Promise<Response>(() => {})
    },
  })
  const leaving = new AbortController()
  const visit = fetch(`http://127.0.0.1:${tunnel.port}/`, {
    headers: { host: tunnel.host },
    signal: leaving.signal,
  })
  await asked.promise
  leaving.abort()
  await visit.catch(() => {})
  await left.promise
})
