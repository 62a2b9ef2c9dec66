// A client whose carrier breaks: comes back at once, under its name, and requests wait for it in bounds.

import { describe, expect, test } from 'bun:test'
import { TunnelClient, TunnelServer } from '../../src/index.ts'
import { ask } from '../support/ask.ts'
import { startBehindProxy } from '../support/behind-proxy.ts'
import { eventually, next, until } from '../support/events.ts'
import { closedAfterEach } from '../support/opened.ts'
import { RawOrigin, rawDial } from '../support/raw.ts'
import { control, SpeakingClient, speakingServer } from '../support/speaker.ts'
import type { Cut } from '../support/tcp-proxy.ts'
import { startServer } from '../support/tunnel.ts'
import { within } from '../support/within.ts'

const { open } = closedAfterEach()

const hello = { fetch: () => new Response('hello') }

describe.each<Cut>(['end', 'reset'])('the carrier breaks by %s', cut => {
  test('the first try goes at once, the name stays, the app answers again', async () => {
    const { client, proxy, port, host } = open(await startBehindProxy(hello))
    const url = client.getTunnelUrl()
    const told: string[] = []
    client.on('disconnected', ({ error }) => told.push(`disconnected ${error && 'code' in error}`))
    client.on('reconnecting', ({ attempt, delayMs }) => told.push(`try ${attempt} after ${delayMs}`))
    const back = next(client, 'connected')
    const lost = next(client, 'disconnected')
    proxy.cutAll(cut)
    await lost
    expect(client.getState()).toBe('reconnecting')
    expect(client.isConnected()).toBe(false)
    expect(await back).toEqual({ url, subdomain: 'app', wire: 'streams' })
    expect(told).toEqual(['disconnected true', 'try 1 after 0'])
    expect(await ask(port, host)).toMatchObject({ status: 200, body: 'hello' })
  })

  test('a request under way is 502 at once, one that comes meanwhile waits and is answered', async () => {
    using origin = new RawOrigin()
    const { server, client, proxy, port, host } = open(await startBehindProxy({ port: origin.port }))
    const cutOff = ask(port, host)
    await (await origin.accept()).until('\r\n\r\n')
    proxy.isDown = true
    const lost = next(server, 'disconnection')
    const lostAt = performance.now()
    proxy.cutAll(cut)
    expect(await cutOff).toMatchObject({ status: 502, code: 'CLIENT_GONE' })
    // One that comes now waits for 10 s.
    expect(performance.now() - lostAt).toBeLessThan(9_000)
    expect((await lost).subdomain).toBe('app')

    const reports: string[] = []
    client.on('request', ({ path }) => reports.push(path))
    const waiting = ask(port, host, { path: '/waited', method: 'POST', body: 'x'.repeat(100_000) })
    await eventually(() => server.getStats().pendingResponses === 1, 'the request to be held')
    proxy.isDown = false
    await until(client, 'connected', () => client.isConnected())
    const app = await origin.accept()
    expect(await app.until('x'.repeat(100_000))).toStartWith('POST /waited ')
    await app.send('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
    expect(await waiting).toMatchObject({ status: 200, body: 'ok' })
    expect(reports).toEqual(['/waited'])
  })
})

test('on the JSON wire too the client comes back at once, under its name', async () => {
  const { server, client, proxy, port, host } = open(await startBehindProxy({ ...hello, wire: 'json' }))
  for (const cut of ['end', 'reset'] as const) {
    const back = next(client, 'connected')
    proxy.cutAll(cut)
    expect(await back).toMatchObject({ subdomain: 'app', wire: 'json' })
    expect(await ask(port, host)).toMatchObject({ status: 200, body: 'hello' })
  }
  await eventually(() => server.getStats().connections === 1, 'the old ones to be forgotten')
})

test('a carrier that falls silent is noticed by the client within deadAfterMs, and its name taken over', async () => {
  const { server, client, proxy, port, host } = open(
    // The server still holds the dead connection when the client comes back.
    await startBehindProxy({ ...hello, pingIntervalMs: 50, deadAfterMs: 200 }),
  )
  const lost = next(client, 'disconnected')
  const silentAt = performance.now()
  proxy.isSilent = true
  expect(await lost).toMatchObject({ error: { code: 'CARRIER_LOST' } })
  expect(performance.now() - silentAt).toBeLessThan(10_000)
  expect(server.getStats().connections).toBe(1)
  // The old connection stays silent; a new one gets through.
  const back = next(client, 'connected')
  proxy.isSilent = false
  expect(await back).toMatchObject({ subdomain: 'app' })
  expect(await ask(port, host)).toMatchObject({ body: 'hello' })
  expect(server.getStats()).toMatchObject({ connections: 1, activeSubdomains: 1 })
})

test('a client that falls silent is noticed by the server within deadAfterMs: what is under way is 502', async () => {
  using origin = new RawOrigin()
  const { server, client, proxy, port, host } = open(
    await startBehindProxy({ port: origin.port }, { pingIntervalMs: 50, deadAfterMs: 200, holdTimeoutMs: 0 }),
  )
  const asking = ask(port, host)
  await (await origin.accept()).until('\r\n\r\n')
  const silentAt = performance.now()
  proxy.isSilent = true
  expect(await asking).toMatchObject({ status: 502, code: 'CLIENT_GONE' })
  expect(performance.now() - silentAt).toBeLessThan(10_000)
  // Nothing waits here: holdTimeoutMs 0.
  expect(await ask(port, host)).toMatchObject({ status: 502, code: 'CLIENT_GONE' })
  expect(server.getStats().connections).toBe(0)
  proxy.cutAll()
  proxy.isSilent = false
  await until(client, 'connected', () => client.isConnected())
})

test('a server that restarts on its port gets its clients and their names back', async () => {
  const first = await startServer({ limits: { drainTimeoutMs: 100 } })
  const { port } = first
  const client = open(
    new TunnelClient({ server: `127.0.0.1:${port}`, subdomain: 'app', maxBackoffMs: 50, ...hello }),
  )
  await client.connect()
  const lost = next(client, 'disconnected')
  await first.stop()
  expect(await lost).toMatchObject({ error: { code: 'SERVER_DRAINING' } })
  await next(client, 'error')
  const second = open(new TunnelServer({ port, host: '127.0.0.1' }))
  await second.start()
  await until(client, 'connected', () => client.isConnected())
  expect(client.getSubdomain()).toBe('app')
  expect(await ask(port, 'app.localhost')).toMatchObject({ body: 'hello' })
})

test('tries go on with growing pauses below the bound, and each failure is told', async () => {
  const { client, proxy } = open(await startBehindProxy({ ...hello, maxBackoffMs: 30 }))
  const delays: number[] = []
  client.on('reconnecting', ({ attempt, delayMs }) => {
    expect(attempt).toBe(delays.length + 1)
    delays.push(delayMs)
  })
  const codes: string[] = []
  client.on('error', error => codes.push('code' in error ? String(error.code) : error.message))
  proxy.isDown = true
  proxy.cutAll()
  await until(client, 'reconnecting', () => delays.length === 8)
  expect(delays[0]).toBe(0)
  expect(Math.max(...delays)).toBeLessThanOrEqual(30)
  expect(new Set(delays.slice(1)).size).toBeGreaterThan(1)
  expect(new Set(codes)).toEqual(new Set(['SERVER_UNREACHABLE']))
  proxy.isDown = false
  await until(client, 'connected', () => client.isConnected())
})

// ── The name while its client is away ────────────────────────────────────────────────────────────────────────────

test('within the lease nobody else gets the name; after it anybody does', async () => {
  const { server, client, proxy, port } = open(
    await startBehindProxy({ ...hello, maxBackoffMs: 60_000 }, { leaseMs: 400 }),
  )
  proxy.isDown = true
  const lost = next(server, 'disconnection')
  proxy.cutAll()
  await lost
  const other = open(new TunnelClient({ server: `127.0.0.1:${port}`, subdomain: 'app', ...hello }))
  await other.connect()
  expect(other.getSubdomain()).toBe('app-2')
  await eventually(() => server.getStats(true).subdomains?.includes('app') === false, 'the lease to end')
  const late = open(new TunnelClient({ server: `127.0.0.1:${port}`, subdomain: 'app', ...hello }))
  await late.connect()
  expect(late.getSubdomain()).toBe('app')
  await client.disconnect()
})

test('a wrong resume secret is refused, while the name is live and while it is leased', async () => {
  const { server, proxy, port } = open(await startBehindProxy({ ...hello, maxBackoffMs: 60_000 }))
  const register = (resume: string) =>
    control({ type: 'register', ref: 1, kind: 'http', name: 'app', resume })
  for (const state of ['live', 'leased']) {
    const thief = await SpeakingClient.connect(port)
    thief.say(register(`guess-${state}`))
    expect(await thief.control('refused')).toMatchObject({ code: 'NAME_TAKEN' })
    thief.close()
    proxy.isDown = true
    const lost = state === 'live' ? next(server, 'disconnection') : undefined
    if (state === 'live') proxy.cutAll()
    await lost
  }
})

test('the right secret takes the name over from a connection that still looks alive', async () => {
  const server = open(await startServer())
  const first = await SpeakingClient.connect(server.port)
  first.say(control({ type: 'register', ref: 1, kind: 'http', name: 'app' }))
  const { resume } = await first.control('granted')
  const second = await SpeakingClient.connect(server.port)
  second.say(control({ type: 'register', ref: 9, kind: 'http', name: 'app', resume }))
  const grant = await second.control('granted')
  // A grant may be lost with its carrier: the secret must stay good.
  expect(grant).toMatchObject({ ref: 9, name: 'app', resume })
  await first.closed
  expect(server.getStats()).toMatchObject({ connections: 1, activeSubdomains: 1 })
  second.close()
})

test('a grant that is lost with its carrier does not cost the name', async () => {
  const { client, proxy } = open(await startBehindProxy(hello))
  // Two pings, two pongs, the registration and the grant: the next carrier breaks behind each of them.
  for (let frames = 1; frames <= 6; frames++) {
    proxy.frames = 0
    proxy.cutAfterFrames = frames
    const lost = next(client, 'disconnected')
    proxy.cutAll()
    await lost
    await eventually(() => proxy.frames >= frames, 'the cut')
    proxy.cutAfterFrames = Number.POSITIVE_INFINITY
    await eventually(() => client.isConnected() && proxy.connectionCount === 1, 'the client to be back')
    expect(client.getSubdomain()).toBe('app')
  }
})

// ── Requests that wait ───────────────────────────────────────────────────────────────────────────────────────────

test('waiting is bounded in time and number, and visitors that leave are forgotten', async () => {
  const { server, client, proxy, port, host } = open(
    await startBehindProxy(hello, { holdTimeoutMs: 400, maxHeldRequests: 3 }),
  )
  proxy.isDown = true
  const lost = next(server, 'disconnection')
  proxy.cutAll()
  await lost
  const leaving = await Promise.all([1, 2, 3].map(() => rawDial(port)))
  for (const visitor of leaving) await visitor.send(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
  await eventually(() => server.getStats().pendingResponses === 3, 'all to be held')
  const refusedAt = performance.now()
  expect(await ask(port, host)).toMatchObject({ status: 503, code: 'CLIENT_RECONNECTING' })
  expect(performance.now() - refusedAt).toBeLessThan(200)
  // Those before it wait still.
  expect(server.getStats().pendingResponses).toBe(3)
  for (const { socket } of leaving) socket.terminate()
  await eventually(() => server.getStats().pendingResponses === 0, 'all to be forgotten')
  const heldAt = performance.now()
  const held = await Promise.all([ask(port, host), ask(port, host), ask(port, host)])
  expect(held.map(({ code }) => code)).toEqual(Array(3).fill('CLIENT_RECONNECTING'))
  expect(performance.now() - heldAt).toBeGreaterThan(350)
  expect(performance.now() - heldAt).toBeLessThan(1_500)
  expect(server.getStats().pendingResponses).toBe(0)
  await client.disconnect()
})

test('a client that says goodbye leaves nothing to wait for', async () => {
  const { client, port, host } = open(await startBehindProxy(hello))
  await client.disconnect()
  expect(await ask(port, host)).toMatchObject({ status: 404, code: 'TUNNEL_NOT_FOUND' })
})

// ── The end of it ────────────────────────────────────────────────────────────────────────────────────────────────

test('without reconnect a lost carrier is the end', async () => {
  const { client, proxy } = open(await startBehindProxy({ ...hello, reconnect: false }))
  const told: string[] = []
  client.on('disconnected', () => told.push(`disconnected, ${client.getState()}`))
  client.on('reconnecting', () => told.push('reconnecting'))
  const closed = next(client, 'close')
  proxy.cutAll()
  expect(await closed).toMatchObject({ error: { code: 'CARRIER_LOST' } })
  expect(told).toEqual(['disconnected, closed'])
  await client.connect()
  expect(client.isConnected()).toBe(true)
})

test('connect() from a listener of disconnected takes the place of reconnecting', async () => {
  const { client, proxy } = open(await startBehindProxy({ ...hello, reconnect: false }))
  let ends = 0
  client.on('close', () => ends++)
  const again = Promise.withResolvers<void>()
  client.once('disconnected', () => void client.connect().then(again.resolve, again.reject))
  proxy.cutAll()
  await within(again.promise, 'the connect')
  expect(client.isConnected()).toBe(true)
  expect(ends).toBe(0)
})

test.each(['disconnected', 'reconnecting', 'error'] as const)(
  'disconnect() from a listener of %s is the end',
  async event => {
    const { client, proxy } = open(await startBehindProxy({ ...hello, maxBackoffMs: 5 }))
    const told: string[] = []
    client.on('close', () => told.push('close'))
    client.once(event, () => void client.disconnect())
    const closed = next(client, 'close')
    proxy.isDown = true
    proxy.cutAll()
    await closed
    client.on('reconnecting', () => told.push('reconnecting'))
    await Bun.sleep(30)
    expect(told).toEqual(['close'])
    expect(client.getState()).toBe('closed')
  },
)

test('disconnect() between two tries ends them at once', async () => {
  const { client, proxy } = open(await startBehindProxy({ ...hello, maxBackoffMs: 60_000 }))
  proxy.isDown = true
  proxy.cutAll()
  await until(client, 'reconnecting', () => client.getState() === 'reconnecting')
  await next(client, 'error')
  await within(client.disconnect(), 'the disconnect')
  expect(client.getState()).toBe('closed')
  proxy.isDown = false
  await client.connect()
  expect(client.getSubdomain()).toBe('app')
})

test('a token that is refused after a restart ends the client for good', async () => {
  const first = await startServer({ tokens: ['old'], limits: { drainTimeoutMs: 50 } })
  const { port } = first
  const client = open(
    new TunnelClient({
      server: `127.0.0.1:${port}`,
      subdomain: 'app',
      token: 'old',
      maxBackoffMs: 20,
      ...hello,
    }),
  )
  await client.connect()
  const closed = next(client, 'close')
  await first.stop()
  const second = open(new TunnelServer({ port, host: '127.0.0.1', tokens: ['new'] }))
  await second.start()
  expect(await closed).toMatchObject({ error: { code: 'TOKEN_REFUSED' } })
})

test('a page in the place of the server, for a while, does not end the client', async () => {
  const first = await startServer({ limits: { drainTimeoutMs: 50 } })
  const { port } = first
  const client = open(
    new TunnelClient({ server: `127.0.0.1:${port}`, subdomain: 'app', maxBackoffMs: 20, ...hello }),
  )
  await client.connect()
  await first.stop()
  const page = Bun.serve({ port, hostname: '127.0.0.1', fetch: () => new Response('soon', { status: 404 }) })
  const codes: unknown[] = []
  client.on('error', error => codes.push('code' in error ? error.code : error))
  await until(client, 'error', () => codes.includes('SERVER_REFUSED'))
  await page.stop(true)
  const second = open(new TunnelServer({ port, host: '127.0.0.1' }))
  await second.start()
  await until(client, 'connected', () => client.isConnected())
})

// Takes more than a second: so long a connection has to last.
test('after a connection that lasted for a second the first try goes at once; after a shorter one it does not', async () => {
  const { client, proxy } = open(await startBehindProxy({ ...hello, maxBackoffMs: 5_000 }))
  const attempts: number[] = []
  client.on('reconnecting', ({ attempt }) => attempts.push(attempt))
  const lose = async () => {
    const back = next(client, 'connected')
    proxy.cutAll('reset')
    await within(back, 'the client to be back')
  }
  await lose()
  await lose()
  await Bun.sleep(1_100)
  await lose()
  expect(attempts).toEqual([1, 2, 1])
})

test('a server that grants and hangs up, again and again, is no busy loop', async () => {
  let grants = 0
  using hostile = speakingServer(({ type, ref, name }, say) => {
    if (type !== 'register') return
    grants++
    say(control({ type: 'granted', ref, tunnel: 1, name, url: 'http://app.localhost', resume: 'r' }))
    setTimeout(() => say(Buffer.from('rubbish that is no frame at all')), 5)
  })
  const client = open(new TunnelClient({ server: `127.0.0.1:${hostile.port}`, subdomain: 'app', ...hello }))
  await client.connect()
  await Bun.sleep(300)
  expect(grants).toBeGreaterThan(1)
  expect(grants).toBeLessThan(10)
})
