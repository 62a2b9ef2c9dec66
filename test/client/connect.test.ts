// A client from connect to disconnect: names, tokens, refusals, and nothing left behind.

import { afterEach, expect, test } from 'bun:test'
import { connectTunnel, TunnelClient, type TunnelClientOptions, TunnelServer } from '../../src/index.ts'
import { STREAMS_SUBPROTOCOL } from '../../src/wire/frame.ts'
import { ask } from '../support/ask.ts'
import type { BoundedOptions } from '../support/bounded-server.ts'
import { codeOf, eventually, next } from '../support/events.ts'
import { closedAfterEach } from '../support/opened.ts'
import { RawOrigin, rawDial } from '../support/raw.ts'
import { control, frame, speakingServer } from '../support/speaker.ts'
import { startServer } from '../support/tunnel.ts'
import { within } from '../support/within.ts'

const { open, defer } = closedAfterEach()

async function server(options: BoundedOptions = {}): Promise<TunnelServer> {
  const started = await startServer(options)
  open(started)
  return started
}

function client(to: TunnelServer | number, options: Partial<TunnelClientOptions> = {}): TunnelClient {
  const port = typeof to === 'number' ? to : to.port
  const made = new TunnelClient({
    server: `127.0.0.1:${port}`,
    subdomain: 'app',
    wire: 'streams',
    fetch: () => new Response('hello'),
    ...options,
  })
  open(made)
  return made
}

// ── Connect and disconnect ───────────────────────────────────────────────────────────────────────────────────────

test('before the first connect there is no URL; after it there is, also after the end', async () => {
  const one = client(await server())
  expect(one.getState()).toBe('idle')
  expect(() => one.getTunnelUrl()).toThrow(expect.objectContaining({ code: 'STATE_INVALID' }))
  expect(() => one.getSubdomain()).toThrow(expect.objectContaining({ code: 'STATE_INVALID' }))
  const told = next(one, 'connected')
  await one.connect()
  expect(one.getState()).toBe('connected')
  expect(await told).toEqual({ url: one.getTunnelUrl(), subdomain: 'app', wire: 'streams' })
  await one.disconnect()
  expect(one.getState()).toBe('closed')
  expect(one.getSubdomain()).toBe('app')
})

test('connecting twice is STATE_INVALID, also while the first is under way', async () => {
  const one = client(await server())
  const first = one.connect()
  expect(await codeOf(one.connect())).toBe('STATE_INVALID')
  await first
  expect(await codeOf(one.connect())).toBe('STATE_INVALID')
  expect(one.isConnected()).toBe(true)
})

test('disconnect frees the name at once, and resolves when it is free', async () => {
  const there = await server()
  const one = client(there)
  await one.connect()
  const closed = next(one, 'close')
  await one.disconnect()
  expect(await closed).toEqual({})
  expect(there.getStats()).toMatchObject({ activeSubdomains: 0, connections: 0 })
  expect(await ask(there.port, 'app.localhost')).toMatchObject({ status: 404, code: 'TUNNEL_NOT_FOUND' })
  const two = client(there)
  await two.connect()
  expect(two.getSubdomain()).toBe('app')
})

test('a second disconnect waits for the same end; connecting again gets the same name', async () => {
  const there = await server()
  const one = client(there, { subdomain: undefined as never })
  await one.connect()
  const name = one.getSubdomain()
  let ends = 0
  one.on('close', () => ends++)
  await Promise.all([one.disconnect(), one.disconnect()])
  await one.disconnect()
  expect(ends).toBe(1)
  await one.connect()
  expect(one.getSubdomain()).toBe(name)
  expect((await ask(there.port, `${name}.localhost`)).body).toBe('hello')
})

test('requests under way are cut with 502 by a disconnect', async () => {
  using origin = new RawOrigin()
  const there = await server()
  const one = client(there, { fetch: undefined as never, port: origin.port })
  await one.connect()
  const asking = ask(there.port, 'app.localhost')
  const app = await origin.accept()
  await one.disconnect()
  expect(await asking).toMatchObject({ status: 502, code: 'CLIENT_GONE' })
  await app.closed()
})

test('a disconnect while dialling rejects the connect, and nothing goes on', async () => {
  // Takes the connection and never answers.
  using silent = new RawOrigin()
  const one = client(silent.port)
  const connecting = one.connect()
  const connection = await silent.accept()
  expect(one.getState()).toBe('connecting')
  await one.disconnect()
  expect(await codeOf(connecting)).toBe('STATE_INVALID')
  expect(one.getState()).toBe('closed')
  await connection.closed()
})

test('a disconnect while registering rejects the connect at once', async () => {
  using silent = new RawOrigin()
  const one = client(silent.port)
  const connecting = one.connect()
  const connection = await silent.accept()
  await acceptUpgrade(connection)
  // The registration, and a ping.
  await connection.when(() => connection.bytes.length > 40, 'the registration')
  await one.disconnect()
  expect(await codeOf(within(connecting, 'the connect to be given up'))).toBe('STATE_INVALID')
  await connection.closed()
})

test('a connect after a disconnect in the middle of one works', async () => {
  const there = await server()
  const one = client(there)
  const first = codeOf(one.connect())
  await one.disconnect()
  const second = one.connect()
  expect(await first).toBe('STATE_INVALID')
  await second
  expect(one.getState()).toBe('connected')
  expect((await ask(there.port, 'app.localhost')).body).toBe('hello')
})

test('await using gives the name back; connectTunnel returns a connected client', async () => {
  const there = await server()
  {
    await using one = await connectTunnel({
      server: `127.0.0.1:${there.port}`,
      fetch: () => new Response('x'),
    })
    expect((await ask(there.port, `${one.getSubdomain()}.localhost`)).body).toBe('x')
  }
  expect(there.getStats().activeSubdomains).toBe(0)
})

test('a probe goes the visitors’ way and does not ask the app; nobody else can send one', async () => {
  using origin = new RawOrigin()
  const there = await server()
  const one = client(there, { fetch: undefined as never, port: origin.port })
  await one.connect()
  expect(await one.probe()).toBe(true)
  expect(origin.connections).toHaveLength(0)
  const forged = ask(there.port, 'app.localhost', {
    method: 'HEAD',
    headers: { 'X-Localtunnels-Probe': 'x' },
  })
  const app = await origin.accept()
  expect(await app.until('\r\n\r\n')).toContain('X-Localtunnels-Probe: x')
  await app.send('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
  expect((await forged).status).toBe(200)
  await there.stop()
  expect(await one.probe(200)).toBe(false)
})

test('a probe does not show the resume secret to what stands in front of the public side', async () => {
  using front = new RawOrigin()
  using hostile = speakingServer(({ ref, name, type }, say) => {
    if (type !== 'register') return
    const url = `http://app.localhost:${front.port}`
    say(control({ type: 'granted', ref, tunnel: 1, name, url, resume: 'the-secret' }))
  })
  const one = client(hostile.port ?? 0)
  await one.connect()
  const probing = one.probe()
  const connection = await front.accept()
  expect(await connection.until('\r\n\r\n')).not.toContain('the-secret')
  connection.socket.terminate()
  expect(await probing).toBe(false)
})

// ── A connect that fails ─────────────────────────────────────────────────────────────────────────────────────────

async function unusedPort(): Promise<number> {
  const there = await startServer()
  await there.stop()
  return there.port
}

test('nobody at the address: SERVER_UNREACHABLE, and no second try behind the back', async () => {
  const port = await unusedPort()
  const one = client(port)
  let tries = 0
  one.on('reconnecting', () => tries++)
  expect(await codeOf(one.connect())).toBe('SERVER_UNREACHABLE')
  expect(one.getState()).toBe('idle')
  const there = new TunnelServer({ port, host: '127.0.0.1' })
  open(there)
  await there.start()
  await Bun.sleep(20)
  expect(tries).toBe(0)
  expect(there.getStats().totalConnections).toBe(0)
  await one.connect()
  expect(one.isConnected()).toBe(true)
})

test('a server that never answers the dial is SERVER_UNREACHABLE', async () => {
  using silent = new RawOrigin()
  const one = client(silent.port, { connectTimeoutMs: 50 })
  expect(await codeOf(one.connect())).toBe('SERVER_UNREACHABLE')
  await (await silent.accept()).closed()
})

test('a server that never answers the registration is SERVER_UNREACHABLE too', async () => {
  using silent = new RawOrigin()
  const one = client(silent.port, { connectTimeoutMs: 100 })
  const connecting = one.connect()
  const connection = await silent.accept()
  await acceptUpgrade(connection)
  expect(await codeOf(connecting)).toBe('SERVER_UNREACHABLE')
  expect(one.getState()).toBe('idle')
  await connection.closed()
})

test.each([
  ['a frame that no server sends', Buffer.from([0x82, 9, 0, 0, 1, 0, 0, 0, 0, 7, 0])],
  ['a masked message', Buffer.from([0x82, 0x81, 1, 2, 3, 4, 5])],
  ['a close', Buffer.from([0x88, 0])],
])('%s in one packet with the 101 fails the connect and nothing else', async (_, rubbish) => {
  using hostile = new RawOrigin()
  const one = client(hostile.port)
  const connecting = one.connect()
  const connection = await hostile.accept()
  await acceptUpgrade(connection, rubbish)
  expect(await codeOf(within(connecting, 'the connect to fail'))).toMatch(/^[A-Z_]+$/)
  expect(one.getState()).toBe('idle')
  await connection.closed()
})

test('a grant with a broken frame in the same packet fails the connect', async () => {
  using hostile = speakingServer(({ ref, name, type }, say) => {
    if (type !== 'register') return
    const grant = control({ type: 'granted', ref, tunnel: 1, name, url: 'http://app.localhost', resume: 'r' })
    say(Buffer.concat([grant, frame(99, 0)]))
  })
  const one = client(hostile.port ?? 0)
  const told: string[] = []
  for (const event of ['connected', 'disconnected', 'close'] as const) one.on(event, () => told.push(event))
  expect(await codeOf(one.connect())).toBe('PROTOCOL_ERROR')
  expect(one.getState()).toBe('idle')
  expect(told).toEqual([])
})

test('something that is no tunnel server is SERVER_REFUSED', async () => {
  using other = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('a shop') })
  expect(await codeOf(client(other.port ?? 0).connect())).toBe('SERVER_REFUSED')
})

test.each([
  ['the right token', 'second', undefined],
  ['a wrong token', 'third', 'TOKEN_REFUSED'],
  ['no token', undefined, 'TOKEN_REFUSED'],
  ['the beginning of a token', 'secon', 'TOKEN_REFUSED'],
])('a server with tokens and a client with %s', async (_, token, code) => {
  const there = await server({ tokens: ['first', 'second'] })
  const one = client(there, token === undefined ? {} : { token })
  if (code === undefined) await one.connect()
  else expect(await codeOf(one.connect())).toBe(code)
  expect(there.getStats().connections).toBe(code === undefined ? 1 : 0)
})

test('more clients than maxClients are refused with CLIENT_LIMIT, and one more fits when one left', async () => {
  const there = await server({ limits: { maxClients: 2 } })
  const [one, two, three] = ['one', 'two', 'three'].map(subdomain => client(there, { subdomain }))
  await one!.connect()
  await two!.connect()
  expect(await codeOf(three!.connect())).toBe('CLIENT_LIMIT')
  await one!.disconnect()
  await three!.connect()
  expect(there.getStats().connections).toBe(2)
})

test('control connections that register nothing are closed, and count as clients until then', async () => {
  const there = await server({ limits: { registerTimeoutMs: 100, maxClients: 3 } })
  const idle = await Promise.all([1, 2, 3].map(() => rawUpgrade(there.port, 'localhost')))
  expect(there.getStats().connections).toBe(3)
  expect(await codeOf(client(there).connect())).toBe('CLIENT_LIMIT')
  for (const connection of idle) await connection.end()
  await eventually(() => there.getStats().connections === 0, 'all to be forgotten')
  await client(there).connect()
})

test('an upgrade with an Origin header is refused: a web page is no client', async () => {
  const there = await server()
  const connection = await rawUpgrade(there.port, 'localhost', 'Origin: http://evil.example\r\n', 403)
  expect(connection.text).toContain('ORIGIN_HEADER_REFUSED')
})

test('control connections are taken on the control host only: a tunnel’s host belongs to the app', async () => {
  using origin = new RawOrigin()
  const there = await server()
  await client(there, { fetch: undefined as never, port: origin.port }).connect()
  const visitor = await rawDial(there.port)
  defer(async () => visitor.socket.terminate())
  await visitor.send(upgradeRequest('app.localhost'))
  const app = await origin.accept()
  expect(await app.until('\r\n\r\n')).toContain('Upgrade: websocket')
  await app.send('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n')
  expect(await visitor.until('\r\n\r\n')).toStartWith('HTTP/1.1 403')
  expect(there.getStats().connections).toBe(1)
  // Nor on a name that nobody holds.
  const nobody = await rawDial(there.port)
  await nobody.send(upgradeRequest('free.localhost'))
  expect(await nobody.until('\r\n\r\n')).toStartWith('HTTP/1.1 404')
  nobody.socket.terminate()
})

test.each(['localhost', 'api.localhost', '127.0.0.1', '[::1]'])('%s is a control host', async host => {
  const there = await server()
  await rawUpgrade(there.port, host)
  expect(there.getStats().connections).toBe(1)
})

// ── Names ────────────────────────────────────────────────────────────────────────────────────────────────────────

const ENVIRONMENT = ['TUNNEL_SUBDOMAIN', 'APP_NAME', 'TUNNEL_SERVER', 'TUNNEL_TOKEN']
afterEach(() => {
  for (const name of ENVIRONMENT) delete process.env[name]
})

test.each([
  [{ subdomain: 'wished' }, { TUNNEL_SUBDOMAIN: 'from-env', APP_NAME: 'My App' }, /^wished$/],
  [{ subdomain: 'WISHED' }, {}, /^wished$/],
  [{}, { TUNNEL_SUBDOMAIN: 'from-env', APP_NAME: 'My App' }, /^from-env$/],
  [{}, { TUNNEL_SUBDOMAIN: '', APP_NAME: 'My Shop (beta)!' }, /^my-shop-beta$/],
  [{}, { APP_NAME: '???' }, /^[a-z]+-[a-z]+$/],
  [{}, {}, /^[a-z]+-[a-z]+$/],
])('the name for %j in %j', async (options, environment, name) => {
  Object.assign(process.env, environment)
  const there = await server()
  const one = client(there, { subdomain: undefined as never, ...options })
  await one.connect()
  expect(one.getSubdomain()).toMatch(name)
  expect(one.getTunnelUrl()).toBe(`http://${one.getSubdomain()}.localhost:${there.port}`)
})

test('a name that is taken becomes name-2, name-3, then random ones', async () => {
  const there = await server()
  const names: string[] = []
  for (let count = 0; count < 5; count++) {
    const one = client(there)
    await one.connect()
    names.push(one.getSubdomain())
  }
  expect(names.slice(0, 3)).toEqual(['app', 'app-2', 'app-3'])
  expect(names[3]).toMatch(/^[a-z]+-[a-z]+$/)
  expect(new Set(names).size).toBe(5)
})

test('a server that has no name left to give is NAME_TAKEN, after ten tries', async () => {
  const asked: unknown[] = []
  using full = speakingServer((message, say) => {
    asked.push(message.name)
    say(control({ type: 'refused', ref: message.ref, code: 'NAME_TAKEN', message: 'Taken.' }))
  })
  const one = client(full.port ?? 0)
  expect(await codeOf(one.connect())).toBe('NAME_TAKEN')
  expect(asked.slice(0, 3)).toEqual(['app', 'app-2', 'app-3'])
  expect(new Set(asked).size).toBe(10)
})

test.each(['api', 'www', 'mine'])('the reserved name %s is refused', async subdomain => {
  const there = await server({ reservedNames: ['mine'] })
  const one = client(there, { subdomain })
  expect(await codeOf(one.connect())).toBe('NAME_RESERVED')
  expect(one.getState()).toBe('idle')
  expect(there.getStats().activeSubdomains).toBe(0)
})

test('server and token come from the environment', async () => {
  const there = await server({ tokens: ['secret'] })
  Object.assign(process.env, { TUNNEL_SERVER: `ws://127.0.0.1:${there.port}`, TUNNEL_TOKEN: 'secret' })
  const one = new TunnelClient({ fetch: () => new Response('x'), subdomain: 'app' })
  open(one)
  await one.connect()
  expect(there.getStats().connections).toBe(1)
})

test('a client without any tunnel has nothing to connect for', async () => {
  const refused = await new TunnelClient({}).connect().catch((error: unknown) => error)
  expect(refused).toMatchObject({ code: 'OPTION_INVALID' })
})

test.each([
  [{ port: 3000, fetch: () => new Response() }, 'OPTION_INVALID'],
  [{ port: 0 }, 'OPTION_INVALID'],
  [{ port: 99_999 }, 'OPTION_INVALID'],
  [{ port: 3000, subdomain: 'a_b' }, 'NAME_INVALID'],
  [{ port: 3000, server: 'ftp://x' }, 'OPTION_INVALID'],
  [{ port: 3000, server: '' }, 'OPTION_INVALID'],
  [{ port: 3000, wire: 'carrier pigeon' as never }, 'OPTION_INVALID'],
  [{ port: 3000, pingIntervalMs: 30_000 }, 'OPTION_INVALID'],
  [{ port: 3000, connectTimeoutMs: 1e12 }, 'OPTION_INVALID'],
  [{ port: 3000, hostHeader: 'a b' }, 'OPTION_INVALID'],
  [{ url: 'localhost:3000' }, 'OPTION_INVALID'],
  [{ port: 3000, limits: { maxStreams: 0 } }, 'OPTION_INVALID'],
  [{ port: 3000, limits: { maxLinks: -1 } }, 'OPTION_INVALID'],
  [{ port: 3000, limits: { maxLinks: 1.5 } }, 'OPTION_INVALID'],
  [{ port: 3000, limits: { maxLink: 1 } as never }, 'OPTION_INVALID'],
])('options that cannot be used are refused: %j is %s', (options, code) => {
  expect(() => new TunnelClient(options as TunnelClientOptions)).toThrow(expect.objectContaining({ code }))
})

// ── Raw ends ─────────────────────────────────────────────────────────────────────────────────────────────────────

function upgradeRequest(host: string, more = ''): string {
  return `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: ${STREAMS_SUBPROTOCOL}\r\n${more}\r\n`
}

async function rawUpgrade(port: number, host: string, more = '', status = 101) {
  const connection = await rawDial(port)
  defer(async () => connection.socket.terminate())
  await connection.send(upgradeRequest(host, more))
  await connection.when(() => connection.text.includes('\r\n\r\n'), 'an answer')
  expect(connection.text).toStartWith(`HTTP/1.1 ${status} `)
  return connection
}

type Raw = Awaited<ReturnType<typeof rawDial>>

/** Answers a client's upgrade as a server would, with `more` in the same packet. */
async function acceptUpgrade(connection: Raw, more: Uint8Array = new Uint8Array(0)): Promise<void> {
  const head = await connection.until('\r\n\r\n')
  const key = /sec-websocket-key: (\S+)/i.exec(head)?.[1] ?? ''
  const accept = new Bun.CryptoHasher('sha1')
    .update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
    .digest('base64')
  const answer = `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${accept}\r\nSec-WebSocket-Protocol: ${STREAMS_SUBPROTOCOL}\r\n\r\n`
  await connection.send(Buffer.concat([Buffer.from(answer), more]))
}
