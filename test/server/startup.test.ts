// A server that has just started: requests for names whose clients are on their way back.

import { expect, test } from 'bun:test'
import { TunnelClient, type TunnelServer } from '../../src/index.ts'
import { ask } from '../support/ask.ts'
import { rawDial } from '../support/raw.ts'
import { startServer } from '../support/tunnel.ts'
import { within } from '../support/within.ts'

const ANSWERED = { status: 200, body: 'hello' }
const STARTING = { status: 503, code: 'SERVER_STARTING' }
const NOT_FOUND = { status: 404, code: 'TUNNEL_NOT_FOUND' }

async function connect(server: TunnelServer, wire: 'streams' | 'json' = 'streams', wildcard = false) {
  const fetch = () => new Response('hello')
  const options = { server: `http://127.0.0.1:${server.port}`, subdomain: 'app', wire, wildcard, fetch }
  const client = new TunnelClient(options)
  await client.connect()
  return { client, [Symbol.asyncDispose]: () => client.disconnect() }
}

/** Answers are asked for, and the server has their requests: it answers others that came later. */
async function asked(server: TunnelServer, hosts: readonly string[]) {
  const answers = hosts.map(host => ask(server.port, host))
  await ask(server.port, 'localhost', { path: '/health' })
  return answers
}

test.each(['streams', 'json'] as const)(
  'requests wait for the client, which comes by the %s wire',
  async wire => {
    await using server = await startServer({ limits: { startupHoldMs: 60_000 } })
    const [one, two] = await asked(server, ['app.localhost', 'app.localhost'])
    await using _client = await connect(server, wire)
    expect(await within(one!, 'the first answer')).toMatchObject(ANSWERED)
    expect(await within(two!, 'the second answer')).toMatchObject(ANSWERED)
    expect(server.getStats()).toMatchObject({ requests: 2, pendingResponses: 0 })
  },
)

test('a body that comes while its request waits reaches the app', async () => {
  await using server = await startServer({ limits: { startupHoldMs: 60_000 } })
  const body = 'x'.repeat(1_000_000)
  const answer = ask(server.port, 'app.localhost', { method: 'POST', body })
  await ask(server.port, 'localhost', { path: '/health' })
  const client = new TunnelClient({
    server: `http://127.0.0.1:${server.port}`,
    subdomain: 'app',
    fetch: async request => new Response(`${(await request.text()).length}`),
  })
  await client.connect()
  expect(await within(answer, 'the answer')).toMatchObject({ status: 200, body: '1000000' })
  await client.disconnect()
})

test('when the time is over those that wait get 503 with Retry-After, and the next ones 404', async () => {
  await using server = await startServer({ limits: { startupHoldMs: 500 } })
  const visitor = await rawDial(server.port)
  await visitor.send('GET / HTTP/1.1\r\nHost: app.localhost\r\nConnection: close\r\n\r\n')
  const answer = await visitor.end()
  expect(answer).toStartWith('HTTP/1.1 503 ')
  expect(answer).toContain('x-localtunnels-error: SERVER_STARTING\r\n')
  expect(answer).toContain('retry-after: 5\r\n')
  visitor.socket.end()
  expect(await ask(server.port, 'app.localhost')).toMatchObject(NOT_FOUND)
})

test('above maxStartupHeld requests get 503 at once', async () => {
  await using server = await startServer({ limits: { startupHoldMs: 60_000, maxStartupHeld: 2 } })
  const held = await asked(server, ['app.localhost', 'other.localhost'])
  expect(await ask(server.port, 'app.localhost')).toMatchObject(STARTING)
  await using _client = await connect(server)
  expect(await within(held[0]!, 'the answer')).toMatchObject(ANSWERED)
  await server.stop()
  expect(await within(held[1]!, 'the end')).toMatchObject({ status: 503, code: 'SERVER_DRAINING' })
})

test('one address has its share of the places: those of others wait all the same', async () => {
  const limits = { startupHoldMs: 60_000, maxAddressStartupHeld: 2 }
  await using server = await startServer({ limits, trustedProxies: ['127.0.0.1'] })
  const from = (forwarded: string) =>
    ask(server.port, 'app.localhost', { headers: { 'x-forwarded-for': forwarded } })
  const held = [from('203.0.113.7'), from('203.0.113.7')]
  await ask(server.port, 'localhost', { path: '/health' })
  // What the sender claims in front of it changes nothing.
  expect(await from('198.51.100.1, 203.0.113.7')).toMatchObject(STARTING)
  // Of one network of 64 bits.
  held.push(from('203.0.113.8'), from('2001:db8:1:2::1'), from('2001:db8:1:2:ffff::9'))
  // The proxy itself asks for many.
  held.push(...(await asked(server, ['app.localhost', 'app.localhost', 'app.localhost'])))
  expect(await from('2001:db8:1:2::3')).toMatchObject(STARTING)
  await using _client = await connect(server)
  for (const answer of held) expect(await within(answer, 'the answer')).toMatchObject(ANSWERED)
  // They have left: nothing is counted any more.
  const later = [1, 2].map(() =>
    ask(server.port, 'b.localhost', { headers: { 'x-forwarded-for': '203.0.113.7' } }),
  )
  await ask(server.port, 'localhost', { path: '/health' })
  await server.stop()
  for (const answer of later)
    expect(await within(answer, 'the end')).toMatchObject({ code: 'SERVER_DRAINING' })
})

test('by default the loopback, where a proxy may be, has no share; with a value it has', async () => {
  const hosts = Array.from({ length: 101 }, (_, index) => `app-${index}.localhost`)
  const codes = async (limits: object) => {
    const server = await startServer({ limits: { startupHoldMs: 60_000, ...limits } })
    const answers = await asked(server, hosts)
    await server.stop()
    const all = await Promise.all(answers)
    return all.filter(({ code }) => code === 'SERVER_STARTING').length
  }
  expect(await codes({})).toBe(0)
  expect(await codes({ maxAddressStartupHeld: 100 })).toBe(1)
})

test('a visitor that leaves makes room', async () => {
  await using server = await startServer({ limits: { startupHoldMs: 60_000, maxStartupHeld: 1 } })
  const visitor = await rawDial(server.port)
  await visitor.send('GET / HTTP/1.1\r\nHost: app.localhost\r\n\r\n')
  await ask(server.port, 'localhost', { path: '/health' })
  expect(await ask(server.port, 'app.localhost')).toMatchObject(STARTING)
  visitor.socket.terminate()
  let answer: Promise<unknown> | undefined
  await using client = await (async () => {
    // The next one waits as soon as the server has heard of it.
    for (;;) {
      const next = ask(server.port, 'app.localhost')
      const first = await Promise.race([next, ask(server.port, 'localhost', { path: '/health' })])
      if (first.body === 'OK') {
        answer = next
        return connect(server)
      }
    }
  })()
  expect(client.client.getState()).toBe('connected')
  expect(await within(answer!, 'the answer')).toMatchObject(ANSWERED)
})

test('hosts that no client could have do not wait, nor do those of tunnels of other kinds', async () => {
  const limits = { startupHoldMs: 60_000 }
  await using server = await startServer({ limits, reservedNames: ['mine'], tlsPort: 0 })
  const client = new TunnelClient({ server: `http://127.0.0.1:${server.port}` })
  await client.tls({ port: 9, subdomain: 'secure' })
  for (const host of ['mine.localhost', 'xn--a.localhost', 'tcp-20000.localhost', 'secure.localhost'])
    expect([host, await ask(server.port, host)]).toMatchObject([host, NOT_FOUND])
  expect(await ask(server.port, 'example.test')).toMatchObject({ status: 404, code: 'HOST_UNKNOWN' })
  await client.disconnect()
})

test('a name that was given back is 404 at once', async () => {
  await using server = await startServer({ limits: { startupHoldMs: 60_000 } })
  const { client } = await connect(server)
  expect(await ask(server.port, 'app.localhost')).toMatchObject(ANSWERED)
  await client.disconnect()
  expect(await ask(server.port, 'app.localhost')).toMatchObject(NOT_FOUND)
})

test('a host below a name waits for it, and for a wildcard tunnel only', async () => {
  await using server = await startServer({ limits: { startupHoldMs: 60_000 } })
  const [below] = await asked(server, ['a.app.localhost'])
  await using _client = await connect(server, 'streams', true)
  expect(await within(below!, 'the answer')).toMatchObject(ANSWERED)

  await using other = await startServer({ limits: { startupHoldMs: 60_000 } })
  const [refused] = await asked(other, ['a.app.localhost'])
  await using _plain = await connect(other)
  expect(await within(refused!, 'the answer')).toMatchObject({ status: 404, code: 'HOST_UNKNOWN' })
})

test('by default the library holds for five seconds, and the server of a command without --server does not', async () => {
  const { DEFAULT_LIMITS } = await import('../../src/server/settings/options.ts')
  const { startEmbeddedServer } = await import('../../src/cli/sharing/embedded-server.ts')
  expect(DEFAULT_LIMITS.startupHoldMs).toBe(5_000)
  const server = await startEmbeddedServer()
  expect(await ask(server.port, 'app.localhost')).toMatchObject(NOT_FOUND)
  await server.stop()
})
