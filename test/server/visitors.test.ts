// More visitors than there is room for: who is refused, who gives way, and who gets in all the same.
// Up to 15 s on a busy machine: a process with few descriptors has to cut hundreds of connections before others get in.

import { afterEach, expect, test } from 'bun:test'
import { connect as connectTcp } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { TunnelClient } from '../../src/index.ts'
import { encodeProxyV1 } from '../../src/wire/proxy-protocol.ts'
import { ask } from '../support/ask.ts'
import { next } from '../support/events.ts'
import { readAnswer, statusOf } from '../support/exchange.ts'
import { type RawConnection, RawOrigin, rawDial } from '../support/raw.ts'
import { ServerProcess } from '../support/server-process.ts'
import { control, SpeakingClient } from '../support/speaker.ts'
import { startServer, startTunnel } from '../support/tunnel.ts'
import { within } from '../support/within.ts'

/** They see RST or FIN when the server wants: neither is a failure of the test. */
let crowd: RawConnection[] = []
afterEach(() => {
  for (const { socket } of crowd) socket.terminate()
  crowd = []
})

async function come(port: number, count: number, says = ''): Promise<void> {
  for (let come = 0; come < count; come++) {
    const visitor = await rawDial(port)
    crowd.push(visitor)
    if (says !== '') visitor.socket.write(Buffer.from(says))
  }
}

const GET = 'GET / HTTP/1.1\r\nHost: app.localhost\r\n\r\n'
const never = () => new Promise<Response>(() => {})
const hello = () => new Response('hello')

async function connect(port: number, fetch: () => Response | Promise<Response>, name = 'app', token = '') {
  const client = new TunnelClient({ server: `http://127.0.0.1:${port}`, subdomain: name, fetch, token })
  await within(client.connect(), 'the client to connect')
  return { client, [Symbol.asyncDispose]: () => client.disconnect() }
}

/** The first try may be cut for those that came behind it, before it has said what it wants: as a program does, it tries again. */
async function connectAtLast(...wish: Parameters<typeof connect>): ReturnType<typeof connect> {
  const deadline = Date.now() + 8_000
  for (;;) {
    try {
      return await connect(...wish)
    } catch (error) {
      if (Date.now() > deadline) throw error
    }
  }
}

/** Until it is served: idle ones give way when they have been idle for a second. */
async function served(port: number, host: string): Promise<string> {
  const deadline = Date.now() + 8_000
  for (;;) {
    const answer = await ask(port, host).catch(() => undefined)
    if (answer?.status === 200) return answer.body
    if (Date.now() > deadline) throw new Error(`not served: ${answer?.status} ${answer?.code}`)
    await Bun.sleep(20)
  }
}

// Slow: idle connections have a second before they give way, and the process has to start.
test('500 idle connections where 256 descriptors are: visitors, clients and operators get in', async () => {
  await using server = await ServerProcess.start({}, 256)
  await using _first = await connect(server.port, hello)
  await come(server.port, 500)
  expect((await ask(server.port, 'localhost', { path: '/health' })).body).toBe('OK')
  await using _second = await connect(server.port, hello, 'second')
  expect(await served(server.port, 'app.localhost')).toBe('hello')
  await server.when(() => server.errors.length > 0, 'the error event')
  expect(server.errors.map(({ code }) => code)).toEqual(['DESCRIPTORS_SHORT'])
  expect(server.errors[0]?.message).toMatch(/^\d+ of 256 descriptors are open, 64 are kept/)
}, 60_000)

// Slow: as above.
test('silent connections that come again whenever they are cut do not keep others out', async () => {
  await using server = await ServerProcess.start({}, 256)
  await using _first = await connect(server.port, hello)
  let isOver = false
  let cut = 0
  const comeAgain = async (): Promise<void> => {
    while (!isOver) {
      const visitor = await rawDial(server.port).catch(() => undefined)
      if (visitor === undefined) continue
      await visitor.when(() => visitor.isClosed || isOver, 'the end').catch(() => {})
      visitor.socket.terminate()
      cut++
    }
  }
  const flood = Promise.all(Array.from({ length: 250 }, comeAgain))
  // Also when the test fails: they would come again for as long as the process lives.
  await using _calm = {
    async [Symbol.asyncDispose]() {
      isOver = true
      await flood
    },
  }
  expect(await served(server.port, 'app.localhost')).toBe('hello')
  expect(await served(server.port, 'localhost')).toStartWith('localtunnels')
  await using _second = await connectAtLast(server.port, hello, 'second')
  for (let round = 0; round < 5; round++) expect(await served(server.port, 'second.localhost')).toBe('hello')
  expect(cut).toBeGreaterThan(500)
}, 60_000)

// Slow: a process has to start, and gets 90 clients.
test('clients and ports of one token leave descriptors for visitors, operators and clients of others', async () => {
  await using server = await ServerProcess.start({ tokens: ['honest', 'greedy'] }, 256)
  await using _first = await connect(server.port, hello, 'app', 'honest')
  const greedy: SpeakingClient[] = []
  const join = () =>
    SpeakingClient.connect(server.port, { authorization: 'Bearer greedy' }).then(
      client => greedy.push(client),
      () => {},
    )
  for (let count = 0; count < 40; count++) await join()
  const [opener] = greedy
  const asked = Array.from({ length: 100 }, (_, ref) => control({ type: 'register', ref, kind: 'tcp' }))
  opener?.say(...asked)
  const verdicts = (await opener?.verdicts(100)) ?? []
  expect(new Set(verdicts.map(({ code }) => code))).toEqual(new Set([undefined, 'CLIENT_LIMIT']))
  for (let count = 0; count < 50; count++) await join()
  expect((await ask(server.port, 'localhost', { path: '/health' })).body).toBe('OK')
  expect((await ask(server.port, 'app.localhost')).body).toBe('hello')
  await using _second = await connect(server.port, hello, 'second', 'honest')
  expect((await ask(server.port, 'second.localhost')).body).toBe('hello')
  expect(server.errors.map(({ code }) => code)).toEqual(['DESCRIPTORS_SHORT'])
  for (const client of greedy) client.close()
}, 60_000)

/** So many clients of a token come in, of so many that try. */
async function clientsOf(server: ServerProcess, token: string, tries: number): Promise<SpeakingClient[]> {
  const clients: SpeakingClient[] = []
  for (let count = 0; count < tries; count++) {
    const client = SpeakingClient.connect(server.port, { authorization: `Bearer ${token}` })
    await client.then(
      one => clients.push(one),
      () => {},
    )
  }
  return clients
}

test('the part of the descriptors that clients may have, and one token of it, are options', async () => {
  const limits = { clientDescriptorsPercent: 20, tokenDescriptorsPercent: 60, registerTimeoutMs: 0 }
  await using server = await ServerProcess.start({ tokens: ['one', 'two'], limits }, 256)
  // Of the 192 beyond the reserve: 38.4 for clients, 23.04 for a token.
  const one = await clientsOf(server, 'one', 30)
  const two = await clientsOf(server, 'two', 30)
  expect([one.length, two.length]).toEqual([24, 15])
  expect(server.errors.map(({ code }) => code)).toEqual(['DESCRIPTORS_SHORT'])
  for (const client of [...one, ...two]) client.close()
}, 60_000)

test('links of one token leave descriptors for visitors', async () => {
  await using server = await ServerProcess.start({ tokens: ['t'] }, 256)
  const clients = await clientsOf(server, 't', 6)
  const taken: RawConnection[] = []
  for (const [index, client] of clients.entries()) {
    client.say(control({ type: 'register', ref: 1, kind: 'http', name: `app-${index}` }))
    const { linkSecret } = await client.control('granted')
    for (let number = 1; number <= 32; number++) {
      const raw = await rawDial(server.port)
      crowd.push(raw)
      await raw.send(
        'GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: localtunnels.link.1\r\n' +
          `Authorization: Link ${String(linkSecret)} ${number}\r\n\r\n`,
      )
      if (statusOf(await raw.until('\r\n\r\n')) === 101) taken.push(raw)
      else raw.socket.terminate()
    }
  }
  // Half of three quarters of 192, of which its clients have 6.
  expect(taken.length).toBe(66)
  for (const client of clients) client.close()
}, 60_000)

test('where visitors are busy the next is refused with 503, the control host answers, and one error event says so', async () => {
  await using server = await ServerProcess.start({}, 256)
  await using _first = await connect(server.port, never)
  await come(server.port, 300, GET)
  const refused = await ask(server.port, 'app.localhost')
  expect([refused.status, refused.code]).toEqual([503, 'VISITOR_LIMIT'])
  expect((await ask(server.port, 'localhost', { path: '/health' })).body).toBe('OK')
  await using second = await connect(server.port, hello, 'second')
  expect(second.client.getState()).toBe('connected')
  expect(server.errors.map(({ code }) => code)).toEqual(['DESCRIPTORS_SHORT'])
  for (const { socket } of crowd) socket.terminate()
  expect(await served(server.port, 'second.localhost')).toBe('hello')
}, 60_000)

// A second of CPU time is measured over a second.
test('when the program around it takes every descriptor, accepting does not spin, and all works again after', async () => {
  await using server = await ServerProcess.start({}, 256)
  await using _client = await connect(server.port, hello)
  expect(await served(server.port, 'app.localhost')).toBe('hello')
  server.tell('take')
  await come(server.port, 100, GET)
  await server.when(() => server.errors.length > 0, 'the error event')
  expect(server.errors[0]?.code).toBe('DESCRIPTORS_SHORT')
  const before = await server.cpuMs()
  await Bun.sleep(1_000)
  expect((await server.cpuMs()) - before).toBeLessThan(500)
  server.tell('give')
  expect(await served(server.port, 'app.localhost')).toBe('hello')
}, 60_000)

test('above maxVisitors an idle connection gives way to the next; busy ones do not', async () => {
  await using server = await startServer({ limits: { maxVisitors: 3 } })
  await using _client = await connect(server.port, hello)
  await come(server.port, 3)
  expect(await served(server.port, 'app.localhost')).toBe('hello')
  expect(crowd.filter(({ isClosed }) => isClosed).length).toBeGreaterThan(0)
}, 60_000)

test('above maxVisitors with all of them busy: 503 for visitors, and the control host answers', async () => {
  await using tunnel = await startTunnel({ fetch: never }, { server: { limits: { maxVisitors: 3 } } })
  const told = next(tunnel.server, 'error')
  const begun = Promise.all([1, 2, 3].map(() => next(tunnel.client, 'request')))
  await come(tunnel.port, 3, GET)
  await begun
  const refused = await ask(tunnel.port, tunnel.host)
  expect([refused.status, refused.code]).toEqual([503, 'VISITOR_LIMIT'])
  expect((await told).message).toStartWith('There are 3 connections of visitors, and maxVisitors is 3.')
  expect((await ask(tunnel.port, 'localhost', { path: '/health' })).body).toBe('OK')
  crowd[0]?.socket.terminate()
  await crowd[0]?.closed()
})

test('above maxVisitors: connections of one address, however many, do not cut a slow one of another', async () => {
  await using tunnel = await startTunnel(
    { fetch: never },
    {
      server: {
        limits: { maxVisitors: 1, reservedDescriptors: 8, maxAddressVisitors: 1_000, maxAddressRate: 0 },
      },
    },
  )
  const begun = next(tunnel.client, 'request')
  await come(tunnel.port, 1, GET)
  await begun
  const slow = connectTcp({ port: tunnel.port, host: '127.0.0.1', localAddress: '127.0.0.2' })
  const answer = new Promise<string>((resolve, reject) => {
    slow.on('data', bytes => resolve(String(bytes)))
    slow.on('error', reject)
  })
  slow.write('GET /health HTTP/1.1\r\n')
  await come(tunnel.port, 50, 'GET /health')
  await crowd[1]?.closed()
  slow.write('Host: localhost\r\n\r\n')
  expect(await within(answer, 'the answer')).toStartWith('HTTP/1.1 200')
  slow.destroy()
})

test('a connection to a TCP tunnel counts as well, and is cut above maxVisitors', async () => {
  await using tunnel = await startTunnel({ fetch: hello }, { server: { limits: { maxVisitors: 2 } } })
  const raw = await tunnel.client.tcp({ port: 9, host: '127.0.0.1' })
  await come(tunnel.port, 2)
  const third = await rawDial(Number(new URL(raw.url).port))
  expect(await third.closed()).toBeDefined()
})

test('a connection to a TLS tunnel is refused with an alert above maxVisitors, once its hello is there', async () => {
  await using server = await startServer({ tlsPort: 0, limits: { maxVisitors: 1 } })
  const client = new TunnelClient({ server: `http://127.0.0.1:${server.port}` })
  using service = new RawOrigin()
  await client.tls({ port: service.port, host: '127.0.0.1', subdomain: 'secure' })
  const port = server.tlsPort ?? 0
  const visit = () => {
    const socket = connectTls({ host: '127.0.0.1', port, servername: 'secure.localhost' })
    const error = new Promise<string>(resolve => socket.on('error', ({ message }) => resolve(message)))
    return { socket, error }
  }
  const first = visit()
  await service.accept()
  const second = visit()
  expect(await within(second.error, 'the alert')).toMatch(/unrecognized|alert|disconnected/i)
  expect(service.connections.length).toBe(1)
  first.socket.destroy()
  await client.disconnect()
})

const BEHIND_PROXY = { acceptProxyProtocol: true, trustedProxies: ['127.0.0.1'] }

/** A visitor whose address a PROXY header names asks once, and stays. */
async function visitFrom(address: string, port: number): Promise<'served' | 'cut'> {
  const visitor = await rawDial(port)
  crowd.push(visitor)
  const destination = { address: address.includes(':') ? '2001:db8::1' : '192.0.2.1', port: 80 }
  await visitor.send(encodeProxyV1({ transport: 'tcp', source: { address, port: 5_000 }, destination }))
  await visitor.send('GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await visitor.when(() => visitor.text.endsWith('OK') || visitor.isClosed, 'an answer or the end')
  return visitor.isClosed ? 'cut' : 'served'
}

test('connections of one address at once are bounded, by the visitor that a PROXY header names', async () => {
  await using server = await startServer({ ...BEHIND_PROXY, limits: { maxAddressVisitors: 2 } })
  const told = next(server, 'error')
  const visit = (address: string) => visitFrom(address, server.port)
  expect(await visit('203.0.113.7')).toBe('served')
  expect(await visit('203.0.113.7')).toBe('served')
  expect(await visit('203.0.113.7')).toBe('cut')
  expect((await told).message).toStartWith('203.0.113.7 opens more than 2 connections')
  expect(await visit('203.0.113.8')).toBe('served')
  // Of one network of 64 bits.
  expect(await visit('2001:db8:1:2::1')).toBe('served')
  expect(await visit('2001:db8:1:2:ffff::9')).toBe('served')
  expect(await visit('2001:db8:1:2:3:4:5:6')).toBe('cut')
  expect(await visit('2001:db8:1:3::1')).toBe('served')
  // One left.
  crowd[0]?.socket.terminate()
  await ask(server.port, 'localhost').catch(() => {})
})

test('one address has at most half of the places of a server with few descriptors', async () => {
  await using server = await ServerProcess.start({ ...BEHIND_PROXY, limits: { maxAddressRate: 0 } }, 256)
  const outcomes: string[] = []
  for (let count = 0; count < 120; count++) outcomes.push(await visitFrom('203.0.113.7', server.port))
  // Half of the 192 that are no part of the reserve.
  expect(outcomes.filter(outcome => outcome === 'served').length).toBe(96)
  expect(await visitFrom('203.0.113.8', server.port)).toBe('served')
  expect(server.errors.map(({ code }) => code)).toEqual(['ADDRESS_LIMIT'])
  expect(server.errors[0]?.message).toStartWith('203.0.113.7 opens more than 96 connections')
}, 60_000)

test('one address has at most half of maxVisitors, unless maxAddressVisitors says more', async () => {
  for (const [limits, most] of [
    [{ maxVisitors: 4 }, 2],
    [{ maxVisitors: 4, maxAddressVisitors: 3 }, 3],
    [{ maxVisitors: 1 }, 1],
  ] as const) {
    await using server = await startServer({ ...BEHIND_PROXY, limits })
    const outcomes: string[] = []
    for (let count = 0; count < 4; count++) outcomes.push(await visitFrom('203.0.113.7', server.port))
    expect(outcomes.filter(outcome => outcome === 'served').length).toBe(most)
    for (const { socket } of crowd.splice(0)) socket.terminate()
  }
})

test('new connections of one address in a second are bounded, also on the loopback when a bound is given', async () => {
  await using server = await startServer({ limits: { maxAddressRate: 5 } })
  const outcomes: string[] = []
  const from = performance.now()
  for (let count = 0; count < 40; count++)
    outcomes.push(
      await ask(server.port, 'localhost').then(
        () => 'served',
        () => 'cut',
      ),
    )
  const seconds = (performance.now() - from) / 1_000
  const servedCount = outcomes.filter(outcome => outcome === 'served').length
  expect(servedCount).toBeGreaterThanOrEqual(5)
  // Five at once, and five more in each second.
  expect(servedCount).toBeLessThanOrEqual(5 + Math.ceil(5 * seconds))
})

test('heads that are not complete are bounded in total: large ones give way, small ones and later ones are served', async () => {
  const server = await startServer({ limits: { maxAllInputBytes: 100_000 } })
  const large = await Promise.all(Array.from({ length: 8 }, () => rawDial(server.port)))
  const half = `GET / HTTP/1.1\r\nHost: app.localhost\r\nX: ${'x'.repeat(30_000)}`
  for (const one of large) await one.send(half)
  const small = await rawDial(server.port)
  await small.send('GET / HTTP/1.1\r\nHo')
  const refused = await Promise.any(large.map(one => one.until('BUFFERS_FULL').then(() => one)))
  expect(refused).toBeDefined()
  await small.send('st: app.localhost\r\n\r\n')
  expect(statusOf((await readAnswer(small)).head)).toBe(404)
  for (const one of [...large, small]) one.socket.terminate()
  const later = await rawDial(server.port)
  await later.send(half)
  await later.send('\r\n\r\n')
  expect(statusOf((await readAnswer(later)).head)).toBe(404)
  later.socket.terminate()
  await server.stop()
})
