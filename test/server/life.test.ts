// A server from start to stop: what it listens on, how it drains, what it counts and tells.

import { expect, spyOn, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { TunnelClient, type TunnelError, TunnelServer } from '../../src/index.ts'
import { ask } from '../support/ask.ts'
import { startBehindProxy } from '../support/behind-proxy.ts'
import { codeOf, eventually, next } from '../support/events.ts'
import { closedAfterEach } from '../support/opened.ts'
import { type RawConnection, RawOrigin, rawDial } from '../support/raw.ts'
import { TEST_CERT } from '../support/tls.ts'
import { startServer, startTunnel } from '../support/tunnel.ts'
import { within } from '../support/within.ts'

const OTHER_KEY = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  .privateKey.export({ type: 'pkcs8', format: 'pem' })
  .toString()

const { open } = closedAfterEach()

// ── Start ────────────────────────────────────────────────────────────────────────────────────────────────────────

test('port 0 takes a free port, and says which in port, url and the start event', async () => {
  const server = open(new TunnelServer({ port: 0, host: '127.0.0.1' }))
  const started = next(server, 'start')
  await server.start()
  expect(server.port).toBeGreaterThan(0)
  expect(server.url).toBe(`http://localhost:${server.port}`)
  expect(await started).toEqual({ port: server.port, url: server.url })
  expect((await ask(server.port, 'localhost', { path: '/health' })).body).toBe('OK')
})

test('without tokens, on every address, a warning event says so, once for each time it comes to be', async () => {
  const warnings: string[] = []
  const server = open(new TunnelServer({ port: 0 }))
  server.on('warning', ({ code }) => warnings.push(code))
  await server.start()
  expect(warnings).toEqual(['OPEN_SERVER'])
  await server.reload({ reservedNames: ['mine'] })
  await server.reload({ tokens: ['one'] })
  expect(warnings).toEqual(['OPEN_SERVER'])
  await server.reload({})
  expect(warnings).toEqual(['OPEN_SERVER', 'OPEN_SERVER'])
})

test.each([
  { publicUrl: 'https://tunnel.example' },
  { basePath: '/tunnel' },
  { trustedProxies: ['127.0.0.1'] },
  { domains: ['tunnel.example'] },
])('behind a proxy the loopback is not enough: %j', async options => {
  const warnings: TunnelError[] = []
  const server = open(new TunnelServer({ port: 0, host: '127.0.0.1', ...options }))
  server.on('warning', warning => warnings.push(warning))
  await server.start()
  expect(warnings.map(({ code }) => code)).toEqual(['OPEN_SERVER'])
  expect(warnings[0]?.message).toContain('proxy')
  expect(warnings[0]?.message).not.toContain('--host')
})

test.each([
  ['a token', { tokens: ['one'], publicUrl: 'https://tunnel.example', basePath: '/tunnel' }],
  ['the loopback', { host: '127.0.0.1', basePath: '/' }],
])('with %s there is no warning', async (_, options) => {
  const warnings: string[] = []
  const server = open(new TunnelServer({ port: 0, ...options }))
  server.on('warning', ({ code }) => warnings.push(code))
  await server.start()
  expect(warnings).toEqual([])
})

test('a port in use is PORT_IN_USE, and the server may be started again once it is free', async () => {
  const first = await startServer()
  const second = open(new TunnelServer({ port: first.port, host: '127.0.0.1' }))
  expect(await codeOf(second.start())).toBe('PORT_IN_USE')
  await first.stop()
  await second.start()
  expect((await ask(second.port, 'localhost', { path: '/health' })).status).toBe(200)
})

test('starting twice is STATE_INVALID, also while the first start is under way', async () => {
  const server = open(new TunnelServer({ port: 0, host: '127.0.0.1' }))
  const first = server.start()
  expect(await codeOf(server.start())).toBe('STATE_INVALID')
  await first
  expect(await codeOf(server.start())).toBe('STATE_INVALID')
  await server.stop()
  expect(await codeOf(server.start())).toBe('STATE_INVALID')
})

test('a stop during the start stops what was started', async () => {
  const server = new TunnelServer({ port: 0, host: '127.0.0.1' })
  const started = server.start()
  await server.stop()
  await started
  expect(server.getStats().status).toBe('stopped')
  expect(await codeOf(rawDial(server.port))).toBe('ECONNREFUSED')
})

test('a stop without a start does nothing, and the server may still be started', async () => {
  const server = open(new TunnelServer({ port: 0, host: '127.0.0.1' }))
  await server.stop()
  await server.start()
  expect(server.getStats().status).toBe('operational')
})

test('many servers in one process know nothing of each other', async () => {
  const tunnels = await Promise.all(
    Array.from({ length: 8 }, (_, index) => startTunnel({ fetch: () => new Response(`${index}`) })),
  )
  for (const tunnel of tunnels) open(tunnel)
  const answers = await Promise.all(tunnels.map(({ port, host }) => ask(port, host)))
  expect(answers.map(({ body }) => body)).toEqual(tunnels.map((_, index) => `${index}`))
  for (const { server } of tunnels) expect(server.getStats()).toMatchObject({ connections: 1, requests: 1 })
})

test('await using stops it', async () => {
  let port: number
  {
    await using server = new TunnelServer({ port: 0, host: '127.0.0.1' })
    await server.start()
    port = server.port
  }
  expect(await codeOf(rawDial(port))).toBe('ECONNREFUSED')
})

test.each([
  [{ port: 99_999 }, 'OPTION_INVALID'],
  [{ port: 1.5 }, 'OPTION_INVALID'],
  [{ domains: [] }, 'OPTION_INVALID'],
  [{ domains: ['not a domain'] }, 'OPTION_INVALID'],
  [{ publicUrl: 'tunnel.example' }, 'OPTION_INVALID'],
  [{ publicUrl: 'ftp://tunnel.example' }, 'OPTION_INVALID'],
  [{ tokens: [''] }, 'OPTION_INVALID'],
  [{ tokens: ['two words'] }, 'OPTION_INVALID'],
  [{ trustedProxies: ['10.0.0.0/33'] }, 'OPTION_INVALID'],
  [{ trustedProxies: ['proxy.example'] }, 'OPTION_INVALID'],
  [{ trustedProxies: ['10.0.0.0/8/8'] }, 'OPTION_INVALID'],
  [{ trustedProxies: ['fe80::1%eth0'] }, 'OPTION_INVALID'],
  [{ limits: { leaseMs: -1 } }, 'OPTION_INVALID'],
  [{ limits: { maxStreams: Number.NaN } }, 'OPTION_INVALID'],
  [{ limits: { pingIntervalMs: 0 } }, 'OPTION_INVALID'],
  [{ limits: { pingIntervalMs: 30_000 } }, 'OPTION_INVALID'],
  [{ limits: { drainTimeoutMs: 1e12 } }, 'OPTION_INVALID'],
  [{ limits: { leaseInSeconds: 3 } as object }, 'OPTION_INVALID'],
])('options that cannot be used are refused: %j is %s', (options, code) => {
  expect(() => new TunnelServer(options)).toThrow(expect.objectContaining({ code }))
})

test('a limit that is undefined is the default', () => {
  expect(() => new TunnelServer({ limits: { maxStreams: undefined as never } })).not.toThrow()
})

test('a domain under another one is served, whatever their order', async () => {
  const server = open(await startServer({ domains: ['example.com', 'eu.example.com'] }))
  const client = open(
    new TunnelClient({
      server: server.url.replace('example.com', '127.0.0.1'),
      fetch: () => new Response('here'),
      subdomain: 'app',
    }),
  )
  await client.connect()
  expect((await ask(server.port, 'app.eu.example.com')).body).toBe('here')
  expect((await ask(server.port, 'eu.example.com', { path: '/health' })).body).toBe('OK')
})

test.each([
  ['no certificate at all', 'x', 'y'],
  ['a key that does not fit', TEST_CERT, OTHER_KEY],
])('%s is TLS_INVALID', async (_, cert, key) => {
  expect(await codeOf(new TunnelServer({ port: 0, tls: { cert, key } }).start())).toBe('TLS_INVALID')
})

// ── Drain and stop ───────────────────────────────────────────────────────────────────────────────────────────────

test('what is in flight finishes, requests on open connections are served, WebSockets and new connections are not', async () => {
  using origin = new RawOrigin()
  const { server, port, host } = open(await startTunnel({ port: origin.port }))
  const visitor = await rawDial(port)
  await visitor.send(`GET /slow HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
  const app = await origin.accept()
  await app.until('\r\n\r\n')
  // One that has begun to ask when the server begins to stop.
  const late = await rawDial(port)
  await late.send(`GET /late HTTP/1.1\r\nHost: ${host}\r\n`)
  const socket = await rawDial(port)
  const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n'
  await socket.send(`GET /socket HTTP/1.1\r\nHost: ${host}\r\n`)
  await ask(port, 'localhost', { path: '/health' })

  const stopped = server.stop()
  expect(server.getStats().status).toBe('draining')
  await socket.send(upgrade)
  await late.send('\r\n')
  const lateApp = await origin.accept()
  await lateApp.send('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nserved')
  expect(await late.end()).toMatch(/^HTTP\/1.1 200 OK\r\n[\s\S]*\r\nConnection: close\r\n[\s\S]*served$/)
  const refused = await socket.end()
  expect(refused).toStartWith('HTTP/1.1 503 ')
  expect(refused.toLowerCase()).toContain('x-localtunnels-error: server_draining')
  expect(await codeOf(rawDial(port))).toBe('ECONNREFUSED')
  late.socket.terminate()
  socket.socket.terminate()

  await app.send('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone')
  expect(await visitor.end()).toEndWith('done')
  visitor.socket.end()
  await within(stopped, 'the stop')
  expect(server.getStats()).toMatchObject({ status: 'stopped', pendingResponses: 0, connections: 0 })
})

test('an idle connection is closed without an answer', async () => {
  const ended: string[] = []
  // The other connection waits for a second, so it ends later, however slow the machine is.
  const closing = async (name: string, drainIdleMs: number) => {
    const { server, port, host } = open(
      await startTunnel({ fetch: () => new Response('x') }, { server: { limits: { drainIdleMs } } }),
    )
    const visitor = await rawDial(port)
    await visitor.send(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
    await visitor.until('x')
    return async () => {
      const stopped = server.stop()
      expect(await visitor.end()).not.toContain('503')
      ended.push(name)
      visitor.socket.end()
      await within(stopped, 'the stop')
    }
  }
  const stops = [await closing('after a while', 1_000), await closing('at once', 0)]
  await Promise.all(stops.map(stop => stop()))
  expect(ended).toEqual(['at once', 'after a while'])
})

test('the drain is bounded: what takes longer is cut', async () => {
  using origin = new RawOrigin()
  const { server, port, host } = open(
    await startTunnel({ port: origin.port }, { server: { limits: { drainTimeoutMs: 50 } } }),
  )
  const visitor = await rawDial(port)
  await visitor.send(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
  const app = await origin.accept()
  await app.send('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf')
  await visitor.until('half')
  await server.stop()
  expect(await visitor.closed()).toBeDefined()
  await app.closed()
  expect(server.getStats()).toMatchObject({ pendingResponses: 0, connections: 0, activeSubdomains: 0 })
})

test('a second stop waits for the same end', async () => {
  using origin = new RawOrigin()
  const { server, port, host } = open(await startTunnel({ port: origin.port }))
  const asking = ask(port, host)
  const app = await origin.accept()
  const ends: string[] = []
  server.on('stop', () => ends.push('event'))
  const stops = [server.stop().then(() => ends.push('first')), server.stop().then(() => ends.push('second'))]
  await eventually(() => server.getStats().status === 'draining', 'draining')
  await Bun.sleep(0)
  expect(ends).toEqual([])
  await app.send('HTTP/1.1 204 No Content\r\n\r\n')
  expect((await asking).status).toBe(204)
  await Promise.all(stops)
  expect(ends.toSorted()).toEqual(['event', 'first', 'second'])
  await server.stop()
  expect(ends).toHaveLength(3)
})

test('the client learns why, and that it is over only when the last answer is out', async () => {
  using origin = new RawOrigin()
  const { server, client, port, host } = open(await startTunnel({ port: origin.port, reconnect: false }))
  const closed = next(client, 'close')
  const asking = ask(port, host)
  const app = await origin.accept()
  const stopped = server.stop()
  await Bun.sleep(0)
  expect(client.isConnected()).toBe(true)
  await app.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
  expect((await asking).body).toBe('ok')
  await stopped
  expect(await closed).toMatchObject({ error: { code: 'SERVER_DRAINING' } })
})

test('a WebSocket under way gets the drain time too, and is then cut', async () => {
  using origin = new RawOrigin()
  const { server, port, host } = open(
    await startTunnel({ port: origin.port }, { server: { limits: { drainTimeoutMs: 100 } } }),
  )
  const visitor = await rawDial(port)
  await visitor.send(`GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`)
  const app = await origin.accept()
  await app.send('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
  await visitor.until('\r\n\r\n')
  const stopped = server.stop()
  await visitor.send('still')
  expect(await app.until('still')).toEndWith('still')
  await stopped
  await visitor.closed()
})

test('requests that wait for a client are answered when the server stops', async () => {
  const { server, client, proxy, port, host } = open(
    await startBehindProxy({ fetch: () => new Response('x') }),
  )
  proxy.isDown = true
  const lost = next(client, 'disconnected')
  proxy.cutAll()
  await lost
  await eventually(() => server.getStats().connections === 0, 'the server to notice')
  const waiting = ask(port, host)
  await eventually(() => server.getStats().pendingResponses === 1, 'the request to be held')
  const stopped = server.stop()
  expect(await waiting).toMatchObject({ status: 503, code: 'SERVER_DRAINING' })
  await stopped
})

// ── What it tells ────────────────────────────────────────────────────────────────────────────────────────────────

test('events come in order, with what they are about', async () => {
  const server = open(new TunnelServer({ port: 0, host: '127.0.0.1', limits: { startupHoldMs: 0 } }))
  const told: unknown[] = []
  for (const event of ['start', 'connection', 'request', 'disconnection', 'stop', 'error'] as const) {
    server.on(event, payload => told.push([event, payload]))
  }
  await server.start()
  const client = new TunnelClient({
    server: `http://127.0.0.1:${server.port}`,
    subdomain: 'app',
    fetch: () => new Response('hello', { status: 201 }),
  })
  await client.connect()
  await ask(server.port, 'app.localhost', { path: '/a/../b?c', method: 'POST', body: 'x' })
  await ask(server.port, 'nobody.localhost')
  await ask(server.port, 'localhost', { path: '/health' })
  await client.disconnect()
  await server.stop()
  expect(told).toEqual([
    ['start', { port: server.port, url: server.url }],
    ['connection', { subdomain: 'app', wire: 'streams', remoteAddress: '127.0.0.1' }],
    [
      'request',
      {
        subdomain: 'app',
        method: 'POST',
        path: '/a/../b?c',
        status: 201,
        durationMs: expect.any(Number),
        bytes: expect.any(Number),
      },
    ],
    ['disconnection', { subdomain: 'app', reason: 'released' }],
    ['stop', {}],
  ])
})

test('the request event of a failed exchange has its code', async () => {
  using origin = new RawOrigin()
  const { server, port, host } = open(await startTunnel({ port: origin.port }))
  const seen: string[] = []
  server.on('request', ({ status, error }) => seen.push(`${status} ${error}`))
  const refused = ask(port, host)
  ;(await origin.accept()).socket.terminate()
  expect((await refused).status).toBe(502)
  const leaving = await rawDial(port)
  await leaving.send(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
  await origin.accept()
  const told = next(server, 'request')
  leaving.socket.terminate()
  await told
  expect(seen).toEqual(['502 ORIGIN_CLOSED', '0 CANCELLED'])
})

test('a listener that throws, or rejects, harms nobody', async () => {
  const reported = spyOn(console, 'error').mockImplementation(() => {})
  const { server, client, port, host } = open(await startTunnel({ fetch: () => new Response('x') }))
  server.on('request', () => {
    throw new Error('a bug of the embedding program')
  })
  server.on('request', async () => {
    throw new Error('another one')
  })
  client.on('response', async () => Promise.reject(new Error('and one more')))
  const told = next(client, 'response')
  expect((await ask(port, host)).body).toBe('x')
  expect((await ask(port, host)).body).toBe('x')
  await told
  await eventually(() => reported.mock.calls.length >= 6, 'all to be reported')
  reported.mockRestore()
})

// ── What it counts ───────────────────────────────────────────────────────────────────────────────────────────────

test('the stats count tunnels and their requests, not the questions about them', async () => {
  const { server, port, host } = open(await startTunnel({ fetch: () => new Response('12345') }))
  await ask(port, host, { method: 'POST', body: 'abc' })
  await ask(port, 'localhost', { path: '/health' })
  expect(server.getStats()).toMatchObject({
    status: 'operational',
    requests: 1,
    pendingResponses: 0,
    connections: 1,
  })
  const stats = server.getStats(true)
  expect(stats).toMatchObject({ totalConnections: 1, activeSubdomains: 1, subdomains: ['app'] })
  expect(server.getStats()).not.toHaveProperty('subdomains')
  expect(stats.bytesIn).toBeGreaterThan(3 + 'POST / HTTP/1.1\r\n\r\n'.length)
  expect(stats.bytesOut).toBeGreaterThan(5)
})

test('whatever way requests end, none stays pending, and no connection', async () => {
  using origin = new RawOrigin()
  const { server, client, port, host } = open(
    await startTunnel(
      { port: origin.port },
      { server: { limits: { originTimeoutMs: 300, holdTimeoutMs: 50 } } },
    ),
  )
  const visitors: RawConnection[] = []
  const ended = new Set<RawConnection>()
  for (let round = 0; round < FUZZ * 100; round++) {
    const visitor = await rawDial(port)
    visitors.push(visitor)
    await visitor.send(pick(REQUESTS).replaceAll('HOST', host))
    pick([() => {}, () => visitor.socket.end(), () => visitor.socket.terminate()])()
    const app = pick(origin.connections)
    if (app === undefined || app.isClosed || ended.has(app)) continue
    await app.send(pick(ANSWERS))
    pick([() => {}, () => ended.add(app).size && app.socket.end(), () => app.socket.terminate()])()
  }
  for (const { socket } of visitors) socket.terminate()
  await eventually(() => server.getStats().pendingResponses === 0, 'nothing to be pending')
  expect(server.getStats().requests).toBeGreaterThan(FUZZ * 10)
  await client.disconnect()
  await eventually(() => server.getStats().connections === 0, 'no client to be left')
  expect(server.getStats()).toMatchObject({ activeSubdomains: 0, pendingResponses: 0 })
})

const FUZZ = Number(process.env.LT_FUZZ ?? 1)
const REQUESTS = [
  'GET / HTTP/1.1\r\nHost: HOST\r\n\r\n',
  'POST / HTTP/1.1\r\nHost: HOST\r\nContent-Length: 10\r\n\r\nhalf',
  'GET / HTTP/1.1\r\nHost: HOST\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
  'GET / HTTP/1.1\r\nHost: HOST\r\n\r\nGET /2 HTTP/1.1\r\nHost: HOST\r\n\r\n',
  'GET / HTTP/1.1\r\nHost: nobody.localhost\r\n\r\n',
  'GET / HTTP/1.1\r\nHo',
  'nonsense\r\n\r\n',
]
const ANSWERS = [
  '',
  'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
  'HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nhalf',
  'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
  'HTTP/1.1 200 OK\r\n\r\nuntil the end',
  'rubbish\r\n\r\n',
]
const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(Math.random() * items.length)]!
