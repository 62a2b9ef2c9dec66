// A client that closes: its names are free first, and everything that was accepted is answered.

import { expect, test } from 'bun:test'
import { TunnelClient } from '../../src/index.ts'
import { ask } from '../support/ask.ts'
import { codeOf, eventually, next } from '../support/events.ts'
import { get, ok, rawTunnel, readAnswer, readRequest } from '../support/exchange.ts'
import { KeptVisitors } from '../support/kept-visitors.ts'
import { closedAfterEach } from '../support/opened.ts'
import { RawOrigin, rawDial } from '../support/raw.ts'
import { control, speakingServer } from '../support/speaker.ts'
import { startServer, startTunnel } from '../support/tunnel.ts'
import { within } from '../support/within.ts'

const { open, defer } = closedAfterEach()

/** `LT_ROUNDS=50` runs the rounds of the promise; the usual run has a few. */
const ROUNDS = Number(process.env.LT_ROUNDS ?? 3)

/** What a visitor may get when the name is given back: its answer, or that there is no such tunnel. */
const isSound = (status: number): boolean => status === 200 || status === 404

function app(answer: () => Response | Promise<Response>): number {
  const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: answer })
  defer(() => server.stop(true))
  return server.port ?? 0
}

test.each([
  ['streams', 0],
  ['streams', 20],
  ['json', 20],
] as const)(
  'on the %s wire, under load of kept connections to an app of %d ms, no accepted request is lost',
  async (wire, ms) => {
    const port = app(() => (ms === 0 ? new Response('x') : Bun.sleep(ms).then(() => new Response('x'))))
    const server = open(await startServer())
    for (let round = 0; round < ROUNDS; round++) {
      const client = new TunnelClient({
        server: `127.0.0.1:${server.port}`,
        subdomain: 'app',
        host: '127.0.0.1',
        port,
        wire,
      })
      // Half of the rounds without: then lanes are not told of.
      if (round % 2 === 0) client.on('request', () => {})
      await client.connect()
      expect(client.getSubdomain()).toBe('app')
      const visitors = new KeptVisitors(server.port, 'app.localhost', 40, isSound)
      await visitors.answers(800)
      await within(client.close(), 'the close')
      expect(client.getState()).toBe('closed')
      expect((await visitors.end()).failures).toEqual([])
    }
  },
  ROUNDS * 5_000,
)

test('the other client of a pool takes every new request, and no visitor notices', async () => {
  const port = app(() => Bun.sleep(5).then(() => new Response('x')))
  const server = open(await startServer())
  const options = { server: `127.0.0.1:${server.port}`, subdomain: 'app', host: '127.0.0.1', port }
  const staying = open(new TunnelClient({ ...options, pool: true }))
  await staying.connect()
  for (let round = 0; round < ROUNDS; round++) {
    const leaving = new TunnelClient({ ...options, pool: true })
    await leaving.connect()
    const visitors = new KeptVisitors(server.port, 'app.localhost', 20)
    await visitors.answers(200)
    await within(leaving.close(), 'the close')
    await visitors.answers(400)
    expect((await visitors.end()).failures).toEqual([])
  }
})

test.each(['streams', 'json'] as const)(
  'on the %s wire the name is free at once, while a request of before is still answered',
  async wire => {
    const raw = open(await rawTunnel({ client: { wire } }))
    const { client, port } = raw.tunnel
    const visitor = await raw.visit(get(raw.host))
    const busy = await raw.origin.accept()
    await readRequest(busy)
    const closing = client.close()
    expect(client.getState()).toBe('closing')
    expect(await codeOf(client.tcp({ port: 1 }))).toBe('STATE_INVALID')
    const second = open(
      new TunnelClient({
        server: `127.0.0.1:${port}`,
        subdomain: 'app',
        fetch: () => new Response('second'),
      }),
    )
    await second.connect()
    expect(second.getSubdomain()).toBe('app')
    expect((await ask(port, raw.host)).body).toBe('second')
    await busy.send(ok('first'))
    expect((await readAnswer(visitor)).payload).toBe('first')
    await within(closing, 'the close')
  },
)

test('a raw connection goes on until it ends, and new ones are refused', async () => {
  using origin = new RawOrigin()
  const server = open(await startServer())
  const client = new TunnelClient({ server: `127.0.0.1:${server.port}` })
  const { port = 0 } = await client.tcp({ port: origin.port, host: '127.0.0.1' })
  const visitor = await rawDial(port)
  await visitor.send('before')
  const service = await origin.accept()
  await service.until('before')
  let isClosed = false
  const closing = client.close().then(() => {
    isClosed = true
  })
  await eventually(() => server.getStats().activeSubdomains === 0, 'the port to be given back')
  expect(await codeOf(rawDial(port))).toBe('ECONNREFUSED')
  await visitor.send('after')
  await service.until('after')
  expect(isClosed).toBe(false)
  await service.send('the last')
  service.socket.end()
  expect(await visitor.end()).toBe('the last')
  visitor.socket.end()
  await within(closing, 'the close')
  expect(await visitor.closed()).toBeUndefined()
})

test('drainTimeoutMs bounds the wait: what takes longer is cut', async () => {
  const raw = open(await rawTunnel({ client: { drainTimeoutMs: 200 } }))
  const visitor = await raw.visit(get(raw.host))
  await readRequest(await raw.origin.accept())
  const since = performance.now()
  await within(raw.tunnel.client.close(), 'the close')
  expect(performance.now() - since).toBeGreaterThan(150)
  expect((await readAnswer(visitor)).head).toStartWith('HTTP/1.1 502 ')
})

test('disconnect() ends the wait of close(), as a lost connection does', async () => {
  const raw = open(await rawTunnel())
  for (const end of ['disconnect', 'loss'] as const) {
    const { client, server } = raw.tunnel
    await raw.visit(get(raw.host))
    await readRequest(await raw.origin.accept())
    const closed = next(client, 'close')
    const closing = client.close()
    if (end === 'disconnect') void client.disconnect()
    else void server.reload({ tokens: ['another'] })
    await within(closing, 'the close')
    await closed
    expect(client.getState()).toBe('closed')
    if (end === 'disconnect') await client.connect()
  }
})

test('a tunnel that closes lets its requests finish, and the others go on', async () => {
  using origin = new RawOrigin()
  const { client, port, host } = open(
    await startTunnel({ fetch: () => new Response('own'), drainTimeoutMs: 300 }),
  )
  const tunnel = await client.http({ port: origin.port, host: '127.0.0.1', subdomain: 'other' })
  const [answered, cut] = [ask(port, 'other.localhost'), ask(port, 'other.localhost', { path: '/hangs' })]
  const apps = [await origin.accept(), await origin.accept()]
  await tunnel.close()
  expect(await ask(port, 'other.localhost')).toMatchObject({ status: 404 })
  for (const one of apps) {
    const request = await readRequest(one)
    if (!request.head.includes('/hangs')) await one.send(ok('late'))
  }
  expect((await answered).body).toBe('late')
  // Beyond `drainTimeoutMs` it is cut, and the client forgets the way to the app.
  expect((await cut).status).toBe(502)
  expect((await ask(port, host)).body).toBe('own')
})

test('a tunnel that the server takes back while it is given back is not waited for', async () => {
  const opened = new Map<unknown, number>()
  using server = speakingServer(({ type, ref, tunnel, name }, say) => {
    if (type === 'register') {
      opened.set(ref, opened.size + 1)
      say(control({ type: 'granted', ref, tunnel: opened.get(ref), name, url: 'http://x', resume: 'secret' }))
    }
    // The first tunnel: the two messages met on their way, and a server answers no release of what it has taken back.
    if (type === 'release' && tunnel === 1)
      say(control({ type: 'revoked', tunnel, code: 'NOT_ALLOWED', message: 'not any more' }))
    else if (type === 'release') say(control({ type: 'released', tunnel }))
  })
  const client = new TunnelClient({ server: `127.0.0.1:${server.port}`, drainTimeoutMs: 60_000 })
  for (const subdomain of ['one', 'two']) await client.http({ subdomain, fetch: () => new Response() })
  await within(client.close(), 'the close')
  expect(client.getState()).toBe('closed')
})
