// Private services: no public address, a token to connect, and the same bytes as through a public tunnel.

import { expect, test } from 'bun:test'
import { ERRORS } from '../../src/errors.ts'
import { connectTo, TunnelClient, type TunnelServer } from '../../src/index.ts'
import { TunnelServer as CoreServer } from '../../src/server/server.ts'
import { adminOptions, askAdmin } from '../support/admin.ts'
import { DatagramVisitor, datagramApp } from '../support/datagrams.ts'
import { codeOf, next } from '../support/events.ts'
import { NaiveJsonServer } from '../support/json-server.ts'
import { type RawConnection, RawOrigin, rawDial } from '../support/raw.ts'
import { control, SpeakingClient } from '../support/speaker.ts'
import { TEST_CERT, TEST_KEY } from '../support/tls.ts'
import { startServer } from '../support/tunnel.ts'

const HOST = '127.0.0.1'
const TOKENS = [
  'all',
  { token: 'share', name: 'ci', names: ['db', 'dns', 'web'] },
  { token: 'connect', name: 'anna', connect: ['d*'] },
  { token: 'other', connect: ['web'] },
]

const urlOf = (server: TunnelServer): string => `http://${HOST}:${server.port}`

const clientOf = (server: TunnelServer, token = 'share', more = {}): TunnelClient =>
  new TunnelClient({ server: urlOf(server), token, ...more })

/** A server, with a private TCP service `db` on it. */
async function site(options = {}) {
  const server = await startServer({ tokens: TOKENS, ...options })
  const origin = new RawOrigin()
  const sharing = clientOf(server)
  await sharing.tcp({ port: origin.port, host: HOST, private: 'db' })
  return {
    server,
    origin,
    sharing,
    async [Symbol.asyncDispose]() {
      await sharing.disconnect()
      await server.stop()
      origin[Symbol.dispose]()
    },
  }
}

/** Bytes go both ways, and each side ends on its own. */
async function converse(visitor: RawConnection, origin: RawOrigin): Promise<void> {
  const app = await origin.accept()
  await visitor.send('hello')
  await app.until('hello')
  await app.send('welcome')
  await visitor.until('welcome')
  const big = 'x'.repeat(3_000_000)
  void visitor.send(big).then(() => visitor.socket.end())
  await app.when(() => app.hasEnded && app.bytes.length === big.length, 'all of it, and its end')
  void app.send(big).then(() => app.socket.end())
  await visitor.when(() => visitor.hasEnded && visitor.bytes.length === big.length, 'all of it, and its end')
  expect(await visitor.closed()).toBeUndefined()
}

test('bytes of a private TCP service go both ways, and each side ends on its own', async () => {
  await using site_ = await site()
  const { server, origin, sharing } = site_
  expect(sharing.tunnels.map(({ name, url, port }) => ({ name, url, port }))).toEqual([
    { name: 'tcp:db', url: 'private:db', port: undefined },
  ])
  await using db = await connectTo({ name: 'db', server: urlOf(server), token: 'connect' })
  const port = Number(new URL(db.url).port)
  expect(db.url).toBe(`tcp://localhost:${port}`)
  for (const host of [HOST, '::1']) await converse(await rawDial(port, host), origin)
})

test('a reset of either side is a reset on the other', async () => {
  await using site_ = await site()
  const { server, origin } = site_
  await using db = await connectTo({ name: 'db', server: urlOf(server), token: 'connect' })
  const port = Number(new URL(db.url).port)
  const left = await rawDial(port)
  const app = await origin.accept()
  await left.send('x')
  await app.until('x')
  left.socket.terminate()
  expect(await app.closed()).toBeInstanceOf(Error)
  const other = await rawDial(port)
  const second = await origin.accept()
  await other.send('x')
  await second.until('x')
  second.socket.terminate()
  expect(await other.closed()).toBeInstanceOf(Error)
})

test('bulk moves both ways at once, on connections beside the carrier', async () => {
  await using site_ = await site()
  const { server, origin } = site_
  await using db = await connectTo({ name: 'db', server: urlOf(server), token: 'connect' })
  const visitor = await rawDial(Number(new URL(db.url).port))
  const app = await origin.accept()
  const bytes = new Uint8Array(8_000_000).map((_, at) => (at * 2_654_435_761) >>> 13)
  const hash = new Bun.CryptoHasher('sha256').update(bytes).digest('hex')
  const both = [visitor, app].map(async (sender, at) => {
    const receiver = at === 0 ? app : visitor
    await sender.send(bytes)
    sender.socket.end()
    await receiver.when(() => receiver.hasEnded, 'the end')
    expect(new Bun.CryptoHasher('sha256').update(receiver.bytes).digest('hex')).toBe(hash)
  })
  await Promise.all(both)
})

test('an HTTP service is reached as it is: requests, an upgrade, its own Host', async () => {
  await using server = await startServer({ tokens: TOKENS })
  await using sharing = clientOf(server)
  await sharing.http({
    private: 'web',
    fetch: request => new Response(`${request.method} ${request.headers.get('host')}`),
  })
  await using web = await connectTo({ name: 'web', server: urlOf(server), token: 'other' })
  const { port } = new URL(web.url)
  const response = await fetch(`http://localhost:${port}/`, { method: 'POST', body: 'x' })
  expect(await response.text()).toBe(`POST localhost:${port}`)
})

test('a TLS service is reached as it is: only it can read what comes', async () => {
  using app = Bun.serve({
    port: 0,
    hostname: HOST,
    tls: { cert: TEST_CERT, key: TEST_KEY },
    fetch: () => new Response('secret'),
  })
  await using server = await startServer({ tokens: TOKENS })
  await using sharing = clientOf(server)
  await sharing.tls({ port: app.port ?? 0, host: HOST, private: 'web' })
  await using web = await connectTo({ name: 'web', server: urlOf(server), token: 'other' })
  const { port } = new URL(web.url)
  const response = await fetch(`https://localhost:${port}/`, { tls: { ca: TEST_CERT } })
  expect(await response.text()).toBe('secret')
})

test('datagrams of a private UDP service come back to who sent them', async () => {
  await using app = await datagramApp()
  await using server = await startServer({ tokens: TOKENS })
  await using sharing = clientOf(server)
  const tunnel = await sharing.udp({ port: app.port, private: 'dns' })
  expect(tunnel.url).toBe('private:udp:dns')
  await using dns = await connectTo({ name: 'udp:dns', server: urlOf(server), token: 'connect' })
  const port = Number(new URL(dns.url).port)
  await using one = await DatagramVisitor.to(port)
  await using two = await DatagramVisitor.to(port)
  for (const [at, visitor] of [one, two].entries()) {
    await visitor.send(Buffer.from(`first of ${at}`))
    await visitor.received(1)
    await visitor.send(Buffer.from(`second of ${at}`))
    await visitor.received(2)
    expect(visitor.got.map(String)).toEqual([`first of ${at}`, `second of ${at}`])
  }
  expect(new Set(app.seen.map(seen => seen.port)).size).toBe(2)
  // The TCP service of this name is another one.
  expect(await codeOf(connectTo({ name: 'dns', server: urlOf(server), token: 'connect' }))).toBe(
    'TUNNEL_NOT_FOUND',
  )
})

test('no host, no port and no other name leads to a private service, nor from one to anything else', async () => {
  await using site_ = await site({ tcpPorts: '20000-20999' })
  const { server, sharing, origin } = site_
  await using apps = clientOf(server, 'all')
  await apps.http({ subdomain: 'app', fetch: () => new Response('public') })
  const { name } = await apps.tcp({ port: origin.port, host: HOST })
  for (const host of ['db.localhost', 'tcp:db.localhost', 'tcp%3Adb.localhost', 'private:db']) {
    const visitor = await rawDial(server.port)
    await visitor.send(`GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
    expect(await visitor.end()).toMatch(/^HTTP\/1.1 4\d\d /)
  }
  expect(server.isKnownHost('db.localhost')).toBe(false)
  expect(origin.connections).toHaveLength(0)
  for (const wanted of ['app', name, 'udp:db', 'tcp:app', `tcp:${name}`])
    expect(await codeOf(connectTo({ name: wanted, server: urlOf(server), token: 'all' }))).toBe(
      'TUNNEL_NOT_FOUND',
    )
  for (const wanted of ['', 'a.b', '127.0.0.1:22', 'tls:db', 'tcp:tcp:db', '../db', 'db\r\n'])
    expect(await codeOf(connectTo({ name: wanted, server: urlOf(server), token: 'all' }))).toBe(
      'NAME_INVALID',
    )
  // A public and a private service may have the same name.
  await apps.http({ subdomain: 'db', exact: true, fetch: () => new Response('public') })
  expect(sharing.isConnected()).toBe(true)
})

test('a token connects to the services that its scope names, and opens no tunnels', async () => {
  await using site_ = await site()
  const { server } = site_
  const refused: unknown[] = []
  server.on('refused', event => refused.push([event.code, event.kind, event.name]))
  const connect = (token: string) => codeOf(connectTo({ name: 'db', server: urlOf(server), token }))
  expect(await connect('other')).toBe('NOT_ALLOWED')
  expect(await connect('share')).toBe('NOT_ALLOWED')
  expect(await connect('nobody')).toBe('TOKEN_REFUSED')
  expect(refused).toContainEqual(['NOT_ALLOWED', 'connect', 'tcp:db'])
  await using anna = clientOf(server, 'connect')
  expect(await codeOf(anna.http({ fetch: () => new Response() }))).toBe('NOT_ALLOWED')
  expect(await codeOf(anna.tcp({ port: 1, private: 'd1' }))).toBe('NOT_ALLOWED')
  await using ci = clientOf(server)
  expect(await codeOf(ci.tcp({ port: 1, private: 'mine' }))).toBe('NOT_ALLOWED')
  // Without tokens the server cannot tell who may.
  await using open = await startServer()
  await using sharing = clientOf(open, '')
  await sharing.tcp({ port: 1, private: 'db' })
  expect(await codeOf(connectTo({ name: 'db', server: urlOf(open) }))).toBe('NOT_ALLOWED')
})

test('the events of the server say who connected', async () => {
  await using site_ = await site()
  const { server, origin } = site_
  const came = next(server, 'connection')
  const left = next(server, 'disconnection')
  const visitor = next(server, 'visitorConnected')
  const db = await connectTo({ name: 'db', server: urlOf(server), token: 'connect' })
  expect(await came).toEqual({
    subdomain: 'tcp:db',
    wire: 'streams',
    remoteAddress: HOST,
    token: 'anna',
    kind: 'connect',
  })
  const local = await rawDial(Number(new URL(db.url).port))
  const app = await origin.accept()
  expect(await visitor).toMatchObject({ tunnel: 'tcp:db', remoteAddress: HOST })
  local.socket.end()
  app.socket.end()
  await db.close()
  expect(await left).toEqual({ subdomain: 'tcp:db', reason: 'released', kind: 'connect' })
})

test('a service that is away, and an app that is, are errors with a code; then it works again', async () => {
  await using site_ = await site({ limits: { holdTimeoutMs: 1_000 } })
  const { server, origin, sharing } = site_
  await using db = await connectTo({ name: 'db', server: urlOf(server), token: 'connect' })
  const port = Number(new URL(db.url).port)
  await sharing.close()
  const away = next(db.client, 'error')
  const visitor = await rawDial(port)
  expect(await visitor.closed()).toBeInstanceOf(Error)
  const there = 'Start it on the machine that shares it, or ask the user of that machine.'
  expect(await away).toMatchObject({ code: 'TUNNEL_NOT_FOUND', message: expect.stringContaining(there) })
  await using again = clientOf(server)
  await again.tcp({ port: 1, private: 'db' })
  const refused = next(db.client, 'error')
  await rawDial(port)
  expect(await refused).toMatchObject({
    code: 'ORIGIN_REFUSED',
    message: `private service db: The app is not running. ${there}`,
  })
  await again.disconnect()
  await using third = clientOf(server)
  await third.tcp({ port: origin.port, host: HOST, private: 'db' })
  await converse(await rawDial(port), origin)
})

test('a port that is taken is PORT_IN_USE, and nothing is left open', async () => {
  await using site_ = await site()
  const { server, origin } = site_
  const taken = connectTo({ name: 'db', port: origin.port, server: urlOf(server), token: 'connect' })
  expect(await codeOf(taken)).toBe('PORT_IN_USE')
  const refused = await connectTo({ name: 'db', server: urlOf(server), token: 'connect' })
  const port = Number(new URL(refused.url).port)
  await refused.close()
  expect(await codeOf(rawDial(port))).toBe('ECONNREFUSED')
})

test('the end listens on the loopback only', async () => {
  await using site_ = await site()
  await using db = await connectTo({ name: 'db', server: urlOf(site_.server), token: 'connect' })
  const { port } = new URL(db.url)
  const hex = Number(port).toString(16).toUpperCase().padStart(4, '0')
  const lines = `${await Bun.file('/proc/net/tcp').text()}${await Bun.file('/proc/net/tcp6').text()}`
    .split('\n')
    .filter(line => line.includes(`:${hex} `) && line.includes(' 0A '))
    .map(line => line.trim().split(/\s+/)[1])
  expect(new Set(lines)).toEqual(new Set([`00000000000000000000000001000000:${hex}`, `0100007F:${hex}`]))
})

test('it comes back after the server was away, on the same port, and connections wait meanwhile', async () => {
  const first = await startServer({ tokens: TOKENS })
  using origin = new RawOrigin()
  await using sharing = clientOf(first, 'share', { maxBackoffMs: 50 })
  await sharing.tcp({ port: origin.port, host: HOST, private: 'db' })
  await using db = await connectTo({
    name: 'db',
    server: urlOf(first),
    token: 'connect',
    maxBackoffMs: 50,
  })
  const port = Number(new URL(db.url).port)
  const lost = next(db.client, 'disconnected')
  const { port: serverPort } = first
  await first.stop()
  await lost
  const visitor = await rawDial(port)
  await using second = await startServer({ tokens: TOKENS, port: serverPort })
  await converse(visitor, origin)
  expect(second.port).toBe(serverPort)
  expect(new URL(db.url).port).toBe(`${port}`)
}, 60_000)

test('a token that is taken back ends what it has connected', async () => {
  await using site_ = await site()
  const { server, origin } = site_
  const db = await connectTo({ name: 'db', server: urlOf(server), token: 'connect' })
  const visitor = await rawDial(Number(new URL(db.url).port))
  const app = await origin.accept()
  await visitor.send('x')
  await app.until('x')
  const over = next(db.client, 'close')
  const kept = TOKENS.filter(one => typeof one === 'string' || one.token !== 'connect')
  await server.reload({ tokens: [...kept, { token: 'connect', connect: ['web'] }] })
  expect((await over).error).toMatchObject({ code: 'NOT_ALLOWED' })
  expect(await visitor.closed()).toBeInstanceOf(Error)
  await app.closed()
})

const OPEN = 1
const RESET = 3

/** A client by hand, which has connected to the service and asks for streams. */
async function dialling(server: TunnelServer, token: string, count: number): Promise<SpeakingClient> {
  const client = await SpeakingClient.connect(server.port, { authorization: `Bearer ${token}` })
  client.say(control({ type: 'register', ref: 1, kind: 'connect', name: 'tcp:db' }))
  const { tunnel } = await client.control('granted')
  client.say(control({ type: 'dial', tunnel, count }))
  await client.framesOf(OPEN, count)
  return client
}

test('a scope that names the service no more ends its connections, whatever the client does', async () => {
  await using site_ = await site()
  const { server, origin } = site_
  const client = await dialling(server, 'connect', 1)
  const app = await origin.accept()
  const kept = TOKENS.filter(one => typeof one === 'string' || one.token !== 'connect')
  await server.reload({ tokens: [...kept, { token: 'connect', connect: ['web'] }] })
  expect((await client.control('revoked')).code).toBe('NOT_ALLOWED')
  await app.closed()
  expect(client.isClosed).toBe(false)
  client.close()
})

test('the connections of one token leave room for those of another', async () => {
  await using site_ = await site({ limits: { maxStreams: 4 } })
  const { server, origin } = site_
  const greedy = await dialling(server, 'connect', 4)
  const refused = await greedy.framesOf(RESET, 2)
  expect(refused.map(({ payload }) => payload.readUInt16BE(0))).toEqual([
    ERRORS.TUNNEL_BUSY.wire,
    ERRORS.TUNNEL_BUSY.wire,
  ])
  for (const _ of [1, 2]) await origin.accept()
  await using db = await connectTo({ name: 'db', server: urlOf(server), token: 'all' })
  await converse(await rawDial(Number(new URL(db.url).port)), origin)
  // What was given up is free again.
  greedy.close()
  await greedy.closed
  const again = await dialling(server, 'connect', 1)
  await origin.accept()
  again.close()
})

test('a ban of the name ends both sides, and neither may come back until it is taken away', async () => {
  await using site_ = await site({ admin: adminOptions() })
  const { server, origin, sharing } = site_
  const connect = () => connectTo({ name: 'db', server: urlOf(server), token: 'connect' })
  const db = await connect()
  const visitor = await rawDial(Number(new URL(db.url).port))
  const app = await origin.accept()
  await visitor.send('x')
  await app.until('x')
  const over = next(db.client, 'close')
  const { body } = await askAdmin(server, '/bans', {
    method: 'POST',
    body: { kind: 'tunnel', value: 'tcp:db' },
  })
  expect((await over).error).toMatchObject({ code: 'BLOCKED' })
  expect(await visitor.closed()).toBeInstanceOf(Error)
  await app.closed()
  expect(await codeOf(connect())).toBe('BLOCKED')
  expect(await codeOf(sharing.tcp({ port: origin.port, host: HOST, private: 'db' }))).toBe('BLOCKED')
  await askAdmin(server, `/bans/${body.id}`, { method: 'DELETE' })
  await sharing.tcp({ port: origin.port, host: HOST, private: 'db' })
  await (await connect()).close()
})

test('what is for public addresses is refused for a private one, and a name is held by one client', async () => {
  await using site_ = await site()
  const { server } = site_
  await using other = clientOf(server, 'all')
  for (const options of [
    { subdomain: 'x' },
    { wildcard: true },
    { routes: { '/api': 1 } },
    { hostHeader: 'rewrite' },
    { hosts: ['www.customer.example'] },
    { addPrefix: '/app' },
    { responseTimeoutMs: 1_000 },
    { away: { text: 'Back soon' } },
  ])
    expect(await codeOf(other.http({ port: 1, private: 'db2', ...options }))).toBe('OPTION_INVALID')
  expect(await codeOf(other.tcp({ port: 1, private: 'db2', remotePort: 20_000 }))).toBe('OPTION_INVALID')
  expect(await codeOf(other.tcp({ port: 1, private: 'a.b' }))).toBe('NAME_INVALID')
  expect(await codeOf(other.tcp({ port: 1, private: 'db' }))).toBe('NAME_TAKEN')
})

test('a server without the part and one of the JSON wire say that they have no private services', async () => {
  const core = new CoreServer({ port: 0, host: HOST, tokens: ['all'] })
  await core.start()
  using json = new NaiveJsonServer()
  for (const server of [urlOf(core as TunnelServer), `http://${HOST}:${json.port}`]) {
    await using sharing = new TunnelClient({ server, token: 'all' })
    expect(await codeOf(sharing.tcp({ port: 1, private: 'db' }))).toBe('FEATURE_UNSUPPORTED')
    expect(await codeOf(connectTo({ name: 'db', server, token: 'all' }))).toBe('FEATURE_UNSUPPORTED')
  }
  await core.stop()
})

test('hundreds of connections at once each reach the service', async () => {
  await using site_ = await site()
  const { server, origin } = site_
  await using db = await connectTo({ name: 'db', server: urlOf(server), token: 'connect' })
  const port = Number(new URL(db.url).port)
  const visitors = await Promise.all(Array.from({ length: 200 }, () => rawDial(port)))
  await Promise.all(visitors.map((visitor, at) => visitor.send(`${at};`)))
  const seen: string[] = []
  for (const _ of visitors) seen.push(await (await origin.accept()).until(';'))
  expect(seen.map(text => Number.parseInt(text, 10)).sort((a, b) => a - b)).toEqual(
    visitors.map((_, at) => at),
  )
})
