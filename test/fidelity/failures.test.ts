// What a visitor gets instead of an answer: the right status, a stable code, a page or JSON, and whose fault it is.

import { expect, test } from 'bun:test'
import { get, headerOf, ok, rawTunnel, readAnswer, statusOf } from '../support/exchange.ts'
import { rawDial } from '../support/raw.ts'
import { startServer, startTunnel } from '../support/tunnel.ts'

async function ask(port: number, host: string, lines = '', method = 'GET') {
  const visitor = await rawDial(port)
  await visitor.send(`${method} /some/path HTTP/1.1\r\nHost: ${host}\r\n${lines}Connection: close\r\n\r\n`)
  const { head, payload } = await readAnswer(visitor, method)
  await visitor.end()
  visitor.socket.end()
  return { status: statusOf(head), code: headerOf(head, 'x-localtunnels-error'), head, payload }
}

test.concurrent('no tunnel of this name is 404 TUNNEL_NOT_FOUND', async () => {
  await using server = await startServer()
  expect(await ask(server.port, 'nobody.localhost')).toMatchObject({ status: 404, code: 'TUNNEL_NOT_FOUND' })
})

test.concurrent('a browser gets a page, everything else JSON, HEAD neither', async () => {
  await using server = await startServer()
  const page = await ask(server.port, 'nobody.localhost', 'Accept: text/html,*/*;q=0.8\r\n')
  expect(headerOf(page.head, 'content-type')).toBe('text/html; charset=utf-8')
  expect(page.payload).toContain('TUNNEL_NOT_FOUND')
  expect(page.payload).toContain('location.reload()')
  const json = await ask(server.port, 'nobody.localhost', 'Accept: */*\r\n')
  expect(JSON.parse(json.payload)).toMatchObject({
    error: { code: 'TUNNEL_NOT_FOUND', fault: 'client', retryable: true },
  })
  const head = await ask(server.port, 'nobody.localhost', '', 'HEAD')
  expect(Number(headerOf(head.head, 'content-length'))).toBeGreaterThan(0)
})

test.concurrent('the control host shows a browser a page, and a program a line', async () => {
  await using server = await startServer()
  const visit = async (accept: string) => {
    const visitor = await rawDial(server.port)
    await visitor.send(`GET / HTTP/1.1\r\nHost: localhost\r\nAccept: ${accept}\r\nConnection: close\r\n\r\n`)
    return readAnswer(visitor)
  }
  const page = await visit('text/html,*/*;q=0.8')
  expect(headerOf(page.head, 'content-type')).toBe('text/html; charset=utf-8')
  expect(headerOf(page.head, 'content-security-policy')).toStartWith("default-src 'none'")
  expect(page.payload).toContain('<h1>This server gives apps a public address</h1>')
  expect((await visit('*/*')).payload).toMatch(/^localtunnels [\d.]+\n$/)
})

test.concurrent('an origin that refuses is 502 ORIGIN_REFUSED, and heals when it starts', async () => {
  const closed = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('hi') })
  const port = closed.port!
  await closed.stop(true)
  await using tunnel = await startTunnel({ port })
  tunnel.client.on('error', () => {})
  expect(await ask(tunnel.port, tunnel.host)).toMatchObject({ status: 502, code: 'ORIGIN_REFUSED' })
  using _app = Bun.serve({ port, hostname: '127.0.0.1', fetch: () => new Response('hi') })
  expect(await ask(tunnel.port, tunnel.host)).toMatchObject({ status: 200, payload: 'hi' })
})

test.concurrent('a silent origin is 504 ORIGIN_TIMEOUT after the time given, and is told to stop', async () => {
  await using raw = await rawTunnel({ server: { limits: { originTimeoutMs: 300 } } })
  const visitor = await raw.visit(get(raw.host))
  const app = await raw.origin.accept()
  await app.until('\r\n\r\n')
  const { head } = await readAnswer(visitor)
  expect(statusOf(head)).toBe(504)
  expect(headerOf(head, 'x-localtunnels-error')).toBe('ORIGIN_TIMEOUT')
  expect(await app.closed()).toBeInstanceOf(Error)
  // The visitor's connection is as good as before.
  await visitor.send(get(raw.host))
  const again = await raw.origin.accept()
  await again.until('\r\n\r\n')
  await again.send(ok('awake'))
  expect((await readAnswer(visitor)).body).toBe('awake')
})

test.concurrent('an origin that drips its head is silent all the same', async () => {
  await using raw = await rawTunnel({ server: { limits: { originTimeoutMs: 500 } } })
  const visitor = await raw.visit(get(raw.host))
  const app = await raw.origin.accept()
  await app.until('\r\n\r\n')
  void (async () => {
    for (const byte of 'HTTP/1.1 200 OK\r\nX: and so on and on') {
      await Bun.sleep(100)
      await app.send(byte)
    }
  })()
  expect(statusOf((await readAnswer(visitor)).head)).toBe(504)
})

test.concurrent('an origin that speaks no HTTP is 502 ORIGIN_INVALID', async () => {
  for (const nonsense of ['SSH-2.0-OpenSSH_9.9\r\n', 'HTTP/1.1 200 OK\nX y\n\n']) {
    await using raw = await rawTunnel()
    const visitor = await raw.visit(get(raw.host))
    const app = await raw.origin.accept()
    await app.until('\r\n\r\n')
    await app.send(nonsense)
    const { head } = await readAnswer(visitor)
    expect(headerOf(head, 'x-localtunnels-error')).toBe('ORIGIN_INVALID')
    expect(await app.closed()).toBeInstanceOf(Error)
  }
})

test.concurrent('a head without end from an origin is 502 ORIGIN_INVALID', async () => {
  await using raw = await rawTunnel()
  const visitor = await raw.visit(get(raw.host))
  const app = await raw.origin.accept()
  await app.until('\r\n\r\n')
  await app.send(`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(70_000)}`)
  expect(headerOf((await readAnswer(visitor)).head, 'x-localtunnels-error')).toBe('ORIGIN_INVALID')
})

test.concurrent('a client that leaves is 502 CLIENT_GONE at once for what is under way, 404 after', async () => {
  await using raw = await rawTunnel()
  const visitor = await raw.visit(get(raw.host))
  await (await raw.origin.accept()).until('\r\n\r\n')
  const since = performance.now()
  await raw.tunnel.client.disconnect()
  const { head } = await readAnswer(visitor)
  expect(statusOf(head)).toBe(502)
  expect(headerOf(head, 'x-localtunnels-error')).toBe('CLIENT_GONE')
  // A request without its client would wait for `holdTimeoutMs`.
  expect(performance.now() - since).toBeLessThan(9_000)
  expect(await ask(raw.tunnel.port, raw.host)).toMatchObject({ status: 404, code: 'TUNNEL_NOT_FOUND' })
})

test.concurrent('too many streams are 503 TUNNEL_BUSY', async () => {
  await using raw = await rawTunnel({ server: { limits: { maxStreams: 2, drainTimeoutMs: 0 } } })
  await raw.visit(get(raw.host))
  await raw.visit(get(raw.host))
  await raw.origin.accept()
  await raw.origin.accept()
  expect(await ask(raw.tunnel.port, raw.host)).toMatchObject({ status: 503, code: 'TUNNEL_BUSY' })
})

test.concurrent('too many streams of one client are 503 TUNNEL_BUSY, by its server or by itself', async () => {
  for (const options of [
    { server: { limits: { maxClientStreams: 1, drainTimeoutMs: 0 } } },
    { client: { limits: { maxStreams: 1 } }, server: { limits: { drainTimeoutMs: 0 } } },
  ]) {
    await using raw = await rawTunnel(options)
    await raw.visit(get(raw.host))
    await raw.origin.accept()
    expect(await ask(raw.tunnel.port, raw.host)).toMatchObject({ status: 503 })
  }
})

test.concurrent('a host of nobody here is 404 HOST_UNKNOWN', async () => {
  await using server = await startServer({ domains: ['tunnel.test'] })
  for (const host of [
    'example.com',
    'a.b.tunnel.test',
    'tunnel.test.evil.example',
    'eviltunnel.test',
    'app.localhost',
  ])
    expect(await ask(server.port, host)).toMatchObject({ status: 404, code: 'HOST_UNKNOWN' })
})
