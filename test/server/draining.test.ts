// A server that stops: every request on a kept connection is answered, and the last answer says that it is the last.

import { expect, test } from 'bun:test'
import { once } from 'node:events'
import { connect } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { TunnelClient } from '../../src/index.ts'
import { makeCertificate } from '../support/certificates.ts'
import { next } from '../support/events.ts'
import { get, headerOf, ok, rawTunnel, readAnswer, readRequest, statusOf } from '../support/exchange.ts'
import { KeptVisitors } from '../support/kept-visitors.ts'
import { closedAfterEach } from '../support/opened.ts'
import { rawDial } from '../support/raw.ts'
import { startServer, startTunnel } from '../support/tunnel.ts'

const { open } = closedAfterEach()

/** Default of the server; test servers have 0. */
const DRAINING = { limits: { drainIdleMs: 1_000 } }

/** `LT_ROUNDS=50` runs the rounds of the promise; the usual run has a few. */
const ROUNDS = Number(process.env.LT_ROUNDS ?? 3)

test.each(['streams', 'json'] as const)(
  'under load on kept connections (%s wire) a stop fails no request, and each last answer says close',
  async wire => {
    for (let round = 0; round < ROUNDS; round++) {
      const { server, port, host } = open(
        await startTunnel(
          { fetch: () => Bun.sleep(2).then(() => new Response('hello')) },
          { wire, server: DRAINING },
        ),
      )
      const visitors = new KeptVisitors(port, host, 20)
      await visitors.answers(400)
      await server.stop()
      const counts = await visitors.end()
      expect(counts.failures).toEqual([])
      expect(counts.lastWithoutClose).toBe(0)
    }
  },
  ROUNDS * 5_000,
)

test('a kept connection that asks when the server is stopping is answered, and the answer says close', async () => {
  const raw = open(await rawTunnel({ server: DRAINING }))
  const busy = await raw.visit(get(raw.host, '/busy'))
  const app = await raw.origin.accept()
  await readRequest(app)
  const kept = await raw.visit(get(raw.host, '/first'))
  const other = await raw.origin.accept()
  await readRequest(other)
  await other.send(ok('one'))
  expect(headerOf((await readAnswer(kept)).head, 'connection')).toBeUndefined()
  const stopped = raw.tunnel.server.stop()
  await kept.send(get(raw.host, '/second'))
  expect((await readRequest(other)).head).toContain('GET /second ')
  await other.send(ok('two'))
  const answer = await readAnswer(kept)
  expect([statusOf(answer.head), answer.payload, headerOf(answer.head, 'connection')]).toEqual([
    200,
    'two',
    'close',
  ])
  await kept.end()
  await app.send(ok('late'))
  expect(headerOf((await readAnswer(busy)).head, 'connection')).toBe('close')
  for (const { socket } of [kept, busy]) socket.end()
  await stopped
})

test('an answer that had begun without close keeps its connection for one more request', async () => {
  const raw = open(await rawTunnel({ server: DRAINING }))
  const visitor = await raw.visit(get(raw.host))
  const app = await raw.origin.accept()
  await readRequest(app)
  await app.send('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nha')
  await visitor.until('ha')
  const stopped = raw.tunnel.server.stop()
  await app.send('lf')
  await visitor.until('lf')
  await visitor.send(get(raw.host, '/next'))
  expect((await readRequest(app)).head).toContain('GET /next ')
  await app.send(ok('next'))
  expect(headerOf((await readAnswer(visitor)).head, 'connection')).toBe('close')
  visitor.socket.end()
  await stopped
})

test('requests that were pipelined before the stop are all answered, the last one with close', async () => {
  const raw = open(await rawTunnel({ server: DRAINING }))
  const visitor = await raw.visit(get(raw.host, '/1') + get(raw.host, '/2') + get(raw.host, '/3'))
  const app = await raw.origin.accept()
  await readRequest(app)
  const stopped = raw.tunnel.server.stop()
  const ends: (string | undefined)[] = []
  for (let n = 1; n <= 3; n++) {
    await app.send(ok(`${n}`))
    const answer = await readAnswer(visitor)
    expect(answer.payload).toBe(`${n}`)
    ends.push(headerOf(answer.head, 'connection'))
    if (n < 3) await readRequest(app)
  }
  expect(ends).toEqual([undefined, undefined, 'close'])
  visitor.socket.end()
  await stopped
})

test('an idle connection is closed once it was idle for drainIdleMs', async () => {
  const { server, port, host } = open(
    await startTunnel({ fetch: () => new Response('x') }, { server: { limits: { drainIdleMs: 500 } } }),
  )
  const visitor = await rawDial(port)
  await visitor.send(get(host))
  await readAnswer(visitor)
  const stopped = next(server, 'stop')
  const since = performance.now()
  void server.stop()
  await visitor.end()
  visitor.socket.end()
  await stopped
  const elapsed = performance.now() - since
  expect(elapsed).toBeGreaterThan(400)
  expect(elapsed).toBeLessThan(3_000)
})

test('half a head does not hold the stop up: it is answered after drainIdleMs', async () => {
  const { server, port } = open(
    await startTunnel({ fetch: () => new Response('x') }, { server: { limits: { drainIdleMs: 200 } } }),
  )
  const visitor = await rawDial(port)
  await visitor.send('GET / HTTP/1.1\r\nHo')
  // It is here once the server answers a later one.
  const later = await rawDial(port)
  await later.send(get('localhost', '/health', 'Connection: close\r\n'))
  await readAnswer(later)
  const stopped = server.stop()
  expect(statusOf((await readAnswer(visitor)).head)).toBe(408)
  visitor.socket.end()
  await stopped
})

test('a head that had begun to arrive when the server stops is answered, however long its connection was idle', async () => {
  const { server, port, host } = open(
    await startTunnel({ fetch: () => new Response('whole') }, { server: { limits: { drainIdleMs: 1_000 } } }),
  )
  const visitor = await rawDial(port)
  await visitor.send(get(host))
  await readAnswer(visitor)
  // Idle for longer than drainIdleMs: that time is what the test is about.
  await Bun.sleep(1_600)
  await visitor.send('GET / HTTP/1.1\r\nHo')
  // It is here once the server answers a later one.
  const later = await rawDial(port)
  await later.send(get('localhost', '/health', 'Connection: close\r\n'))
  await readAnswer(later)
  const stopped = server.stop()
  // Connections are refused once the server has looked at those that it has.
  for (;;) {
    const refused = await rawDial(port).catch(() => undefined)
    if (refused === undefined) break
    refused.socket.terminate()
  }
  await visitor.send(`st: ${host}\r\n\r\n`)
  const answer = await readAnswer(visitor)
  expect([statusOf(answer.head), answer.payload]).toEqual([200, 'whole'])
  visitor.socket.end()
  await stopped
})

// Two seconds: drainIdleMs is one.
test('a connection whose TLS handshake ends after the stop began is closed after drainIdleMs, too', async () => {
  const { cert, key } = await makeCertificate(['localhost'])
  const server = await startServer({ tls: { cert, key } })
  const goOn = Promise.withResolvers<void>()
  const asked = Promise.withResolvers<void>()
  const client = new TunnelClient({
    server: `https://localhost:${server.port}`,
    verifyServer: false,
    subdomain: 'app',
    async fetch() {
      asked.resolve()
      await goOn.promise
      return new Response('late')
    },
  })
  await client.connect()
  const ask = (host: string, path: string) =>
    fetch(`https://127.0.0.1:${server.port}${path}`, {
      headers: { host, connection: 'close' },
      tls: { rejectUnauthorized: false },
    }).then(answer => answer.text())
  const busy = ask('app.localhost', '/')
  await asked.promise
  const below = connect(server.port, '127.0.0.1')
  await once(below, 'connect')
  // It is accepted once the server answers a later one.
  expect(await ask('localhost', '/health')).toBe('OK')
  const stopped = server.stop()
  for (;;) {
    const refused = await rawDial(server.port).catch(() => undefined)
    if (refused === undefined) break
    refused.socket.terminate()
  }
  const visitor = connectTls({ socket: below, servername: 'localhost', rejectUnauthorized: false })
  await once(visitor, 'secureConnect')
  visitor.resume()
  const since = performance.now()
  await once(visitor, 'end')
  // Of a request it would have headTimeoutMs: 15 s.
  expect(performance.now() - since).toBeLessThan(8_000)
  goOn.resolve()
  expect(await busy).toBe('late')
  await stopped
  await client.disconnect()
}, 60_000)

// Two seconds: until the server gives up waiting for the visitor.
test.each(['', 'PROXY TCP4 203.0.113.7 192.0.2.1 5000 80\r\n'])(
  'a last answer that its visitor reads after the stop still arrives whole (%j before it)',
  async header => {
    const raw = open(await rawTunnel({ server: DRAINING }))
    const { server } = raw.tunnel
    // The client is there already: it has no proxy in front of it.
    if (header !== '') await server.reload({ trustedProxies: ['127.0.0.1'], acceptProxyProtocol: true })
    const visitor = await raw.visit(header + get(raw.host))
    const app = await raw.origin.accept()
    await readRequest(app)
    visitor.socket.pause()
    const told = next(server, 'request')
    const size = 1_500_000
    await app.send(`HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n`)
    await app.send(Buffer.alloc(size))
    // All of it is in the kernel's hands.
    await told
    await server.stop()
    visitor.socket.resume()
    await visitor.end()
    expect(visitor.bytes.length).toBeGreaterThan(size)
    expect(visitor.error).toBeUndefined()
  },
)
