// Hostile control connections against a live server: each ends with a code, and another tunnel answers all the while.

import { afterAll, beforeAll, beforeEach, expect, spyOn, test } from 'bun:test'
import { connect } from 'node:net'
import { guarding, TunnelClient, type TunnelServer } from '../../src/index.ts'
import { Lanes } from '../../src/parts/lanes/lanes.ts'
import { ask } from '../support/ask.ts'
import { eventually, next } from '../support/events.ts'
import { rawDial } from '../support/raw.ts'
import { control, frame, SpeakingClient } from '../support/speaker.ts'
import { startServer } from '../support/tunnel.ts'
import { within } from '../support/within.ts'

let server: TunnelServer
let bystander: TunnelClient
const errors: Error[] = []

beforeAll(async () => {
  server = await startServer({
    guarding: guarding(),
    limits: { registerTimeoutMs: 300, headTimeoutMs: 500, drainTimeoutMs: 100 },
  })
  server.on('error', error => errors.push(error))
  bystander = new TunnelClient({
    server: `127.0.0.1:${server.port}`,
    subdomain: 'bystander',
    fetch: () => new Response('unharmed'),
  })
  await bystander.connect()
})
afterAll(async () => {
  await bystander.disconnect()
  await server.stop()
})
beforeEach(() => {
  errors.length = 0
})

/** The bystander's tunnel answers, over the very connection it had before. */
async function othersGoOn(): Promise<void> {
  expect(await ask(server.port, 'bystander.localhost')).toMatchObject({ status: 200, body: 'unharmed' })
  expect(bystander.isConnected()).toBe(true)
  expect(errors).toEqual([])
  await eventually(() => server.getStats().connections === 1, 'the hostile one to be forgotten')
  expect(server.getStats(true).subdomains).toEqual(['bystander'])
}

const register = (more: object = {}) =>
  control({ type: 'register', ref: 1, kind: 'http', name: 'evil', ...more })

const BROKEN: readonly [string, ...Uint8Array[]][] = [
  ['bad JSON', control('{"type":')],
  ['JSON that is no object', control('[1,2]')],
  ['a number', control('7')],
  ['no type', control({ name: 'x' })],
  ['not UTF-8', frame(7, 0, Buffer.from([0xff, 0xfe]))],
  ['a registration without a name', control({ type: 'register', ref: 1, kind: 'http' })],
  ['a name of 1 MB', frame(7, 0, Buffer.alloc(65_000, 'a'))],
  ['a header value that ends its line', register({ hostHeader: 'a\r\nX-Evil: 1' })],
  ['a control frame on a stream', frame(7, 3, '{}')],
  ['OPEN from a client', frame(1, 1, Buffer.from([0, 0, 0, 1]))],
  ['DATA for a stream that never was', frame(0, 99, 'x')],
  ['END for a stream that never was', frame(2, 99, Buffer.alloc(6))],
  ['RESET for a stream that never was', frame(3, 99, Buffer.alloc(8))],
  ['CREDIT for a stream that never was', frame(4, 99, Buffer.from([0, 0, 1, 0]))],
  ['an unknown frame type', frame(99, 0, 'x')],
  ['a frame over the limit', Buffer.concat([Buffer.from([1, 0, 1, 0, 0, 0, 0, 1]), Buffer.alloc(65_537)])],
  ['a frame that says 16 MB', Buffer.from([255, 255, 255, 7, 0, 0, 0, 0])],
  ['a flood of pings', ...Array.from({ length: 2_000 }, () => frame(5, 0, Buffer.alloc(8)))],
  ['a flood of control messages', ...Array.from({ length: 2_000 }, () => control({ type: 'what' }))],
  ['a flood of goaways', ...Array.from({ length: 2_000 }, () => frame(8, 0, Buffer.alloc(2)))],
]

test.each(BROKEN)('%s ends the connection, before a registration and after one', async (_, ...frames) => {
  for (const isRegistered of [false, true]) {
    const hostile = await SpeakingClient.connect(server.port)
    if (isRegistered) {
      hostile.say(register())
      const { tunnel } = await hostile.control('granted')
      expect(tunnel).toBeGreaterThan(0)
    }
    hostile.say(...frames)
    await within(hostile.closed, 'the server to close')
    expect(await ask(server.port, 'bystander.localhost')).toMatchObject({ body: 'unharmed' })
    // A name that is only leased is given back by its holder alone.
    if (isRegistered) await takeBack(hostile)
  }
  await othersGoOn()
})

/** Takes the leased name with its secret and releases it, so that the next test finds it free. */
async function takeBack(before: SpeakingClient): Promise<void> {
  const { resume } = await before.control('granted')
  const again = await SpeakingClient.connect(server.port)
  again.say(register({ resume }))
  const { tunnel } = await again.control('granted')
  again.say(control({ type: 'release', tunnel }))
  again.close()
  await again.closed
}

test.each([
  ['an unknown type', { type: 'of a newer version' }],
  ['__proto__ as a field', '{"type":"watch","on":true,"__proto__":{"type":"register","on":false}}'],
  ['constructor as a type', { type: 'constructor' }],
  ['a release of a tunnel that is not its own', { type: 'release', tunnel: 1 }],
  ['a link that was never opened', { type: 'linked', link: 4_000_000_000 }],
])('%s is ignored and harms nobody', async (_, message) => {
  const hostile = await SpeakingClient.connect(server.port)
  hostile.say(control(message), register())
  const { tunnel } = await hostile.control('granted')
  expect({}).not.toHaveProperty('on')
  hostile.say(control({ type: 'release', tunnel }))
  hostile.close()
  await hostile.closed
  await othersGoOn()
})

test('a client cannot answer, watch or release what belongs to another', async () => {
  const hostile = await SpeakingClient.connect(server.port)
  hostile.say(register(), control({ type: 'watch', on: true }))
  const { tunnel } = await hostile.control('granted')
  for (let number = 0; number < 10; number++)
    hostile.say(control({ type: 'release', tunnel: 1_000 + number }))
  const before = hostile.frames.length
  for (let count = 0; count < 5; count++) await ask(server.port, 'bystander.localhost')
  // Nothing of another tunnel's requests reaches it.
  expect(hostile.frames.slice(before).filter(({ type }) => type === 7)).toEqual([])
  hostile.say(control({ type: 'release', tunnel }))
  hostile.close()
  await hostile.closed
  await othersGoOn()
})

test('one that asks for name after name gets as many as there may be, and gives all back', async () => {
  const hostile = await SpeakingClient.connect(server.port)
  for (let ref = 0; ref < 300; ref++) {
    hostile.say(control({ type: 'register', ref, kind: 'http', name: `squat-${ref}` }))
  }
  expect(await hostile.control('refused')).toMatchObject({ code: 'CLIENT_LIMIT', ref: 256 })
  expect(server.getStats().activeSubdomains).toBe(257)
  for (let tunnel = 1; tunnel <= 256; tunnel++) hostile.say(control({ type: 'release', tunnel }))
  hostile.close()
  await hostile.closed
  await othersGoOn()
})

/** As a client sends it, with a mask that changes nothing. */
const masked = (bytes: Uint8Array) =>
  Buffer.concat([Buffer.from([0x82, 0x80 | bytes.length, 0, 0, 0, 0]), bytes])

test('one that watches and reads nothing is not cut for what visitors ask, and is told no more of it', async () => {
  await using strict = await startServer({ limits: { maxCarrierBacklogBytes: 1_048_576 } })
  const client = connect(strict.port, '127.0.0.1')
  let read = ''
  client.on('data', bytes => (read += bytes.toString('latin1')))
  client.write(
    'GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n' +
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: localtunnels.streams.1\r\n\r\n',
  )
  await eventually(() => read.includes('\r\n\r\n'), 'the upgrade')
  for (const message of [register(), control({ type: 'watch', on: true })]) client.write(masked(message))
  await eventually(() => read.includes('granted'), 'the tunnel')
  client.pause()
  read = ''
  // The kernel's buffers hold some of it.
  const request = `GET /${'x'.repeat(15_000)} HTTP/1.1\r\nHost: evil.localhost\r\n\r\n`
  for (let batch = 0; batch < 12; batch++) {
    const visitors = Array.from({ length: 100 }, () => connect(strict.port, '127.0.0.1'))
    for (const visitor of visitors) visitor.write(request)
    await eventually(() => strict.getStats().pendingResponses === 100, 'all of them')
    for (const visitor of visitors) visitor.resetAndDestroy()
    await eventually(() => strict.getStats().pendingResponses === 0, 'nobody')
  }
  expect(strict.getStats().connections).toBe(1)
  client.resume()
  const told = () => read.split('"type":"request"').length - 1
  await eventually(() => read.includes('"type":"response"'), 'what was told')
  expect(told()).toBeGreaterThan(10)
  expect(told()).toBeLessThan(1_200)
  expect(client.destroyed).toBe(false)
  client.destroy()
}, 60_000)

test('a stream of frames one byte a time is a session like any other', async () => {
  const slow = await SpeakingClient.connect(server.port)
  for (const byte of register()) slow.say(Buffer.from([byte]))
  const { tunnel } = await slow.control('granted')
  slow.say(control({ type: 'release', tunnel }))
  slow.close()
  await slow.closed
  await othersGoOn()
})

test('text on the streams wire ends the connection', async () => {
  const hostile = await SpeakingClient.connect(server.port)
  hostile.sayText('{"type":"ready","subdomain":"evil"}')
  await within(hostile.closed, 'the server to close')
  await othersGoOn()
})

test.each([
  [
    'a head of 1 MB',
    `GET / HTTP/1.1\r\nHost: localhost\r\nX: ${'a'.repeat(1_000_000)}\r\n\r\n`,
    /^HTTP\/1\.1 431 /,
  ],
  [
    'a target of 1 MB',
    `GET /${'a'.repeat(1_000_000)} HTTP/1.1\r\nHost: localhost\r\n\r\n`,
    /^HTTP\/1\.1 4[13][14] /,
  ],
  [
    'an upgrade with a body',
    'POST / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 3\r\n\r\nabc',
    /^HTTP\/1\.1 400 /,
  ],
  [
    'an upgrade without a key',
    'GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n',
    /^HTTP\/1\.1 400 /,
  ],
  [
    'a link without a session',
    'GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: localtunnels.link.1\r\nAuthorization: Link guess 1\r\n\r\n',
    /^HTTP\/1\.1 401 /,
  ],
])('%s is refused, and the connection closes', async (_, bytes, answer) => {
  const hostile = await rawDial(server.port)
  await hostile.send(bytes)
  await hostile.when(() => hostile.text.includes('\r\n\r\n') || hostile.isClosed, 'an answer')
  expect(hostile.text).toMatch(answer)
  // It does not close its side: the server does not wait for that for long.
  await hostile.closed()
  await othersGoOn()
})

test('a head that drips one byte at a time is given up after headTimeoutMs', async () => {
  const hostile = await rawDial(server.port)
  const dripping = (async () => {
    for (const byte of 'GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: '.padEnd(1_000, 'x')) {
      if (hostile.hasEnded || hostile.isClosed) return
      await hostile.send(byte)
      await Bun.sleep(5)
    }
  })()
  expect(await hostile.end()).toMatch(/^HTTP\/1\.1 408 /)
  await dripping
  hostile.socket.terminate()
  await othersGoOn()
})

test('hundreds of idle control connections cost nothing and are gone in time', async () => {
  const idle = await Promise.all(Array.from({ length: 300 }, () => SpeakingClient.connect(server.port)))
  expect(server.getStats().connections).toBe(301)
  expect(await ask(server.port, 'bystander.localhost')).toMatchObject({ body: 'unharmed' })
  await Promise.all(idle.map(one => within(one.closed, 'the server to close')))
  await othersGoOn()
})

test('messages that change nothing recall no lane, and one that does recalls those of its client at once', async () => {
  const client = await SpeakingClient.connect(server.port)
  for (const ref of [1, 2, 3])
    client.say(control({ type: 'register', ref, kind: 'http', name: `still-${ref}` }))
  const granted = await client.verdicts(3)
  const numbers = granted.map(({ tunnel }) => tunnel)
  const said = async (...messages: object[]): Promise<number[]> => {
    using recall = spyOn(Lanes.prototype, 'recall')
    client.say(...messages.map(message => control(message)), frame(5, 0, Buffer.alloc(8, messages.length)))
    const pongs = client.frames.filter(({ type }) => type === 6).length
    await eventually(() => client.frames.filter(({ type }) => type === 6).length > pongs, 'the pong')
    return recall.mock.calls.map(([tunnels]) => tunnels.length)
  }
  const many = (message: object) => Array.from({ length: 300 }, () => message)
  expect(await said(...many({ type: 'watch', on: false }))).toEqual([])
  expect(await said(...many({ type: 'health', tunnel: numbers[0], isHealthy: true }))).toEqual([])
  expect(await said({ type: 'watch', on: true, rate: 30 })).toEqual([3])
  expect(await said({ type: 'watch', on: true, rate: 30 }, { type: 'watch', on: true })).toEqual([3])
  expect(await said({ type: 'health', tunnel: numbers[1], isHealthy: false })).toEqual([1])
  client.say(...numbers.map(tunnel => control({ type: 'release', tunnel })))
  await eventually(
    () => client.messages.filter(({ type }) => type === 'released').length === 3,
    'the releases',
  )
  client.close()
  await othersGoOn()
})

test.each<[string, (tunnel: unknown, index: number) => object]>([
  ['reports', (_, index) => ({ type: 'watch', on: index % 2 === 0 })],
  ['health', (tunnel, index) => ({ type: 'health', tunnel, isHealthy: index % 2 === 1 })],
  [
    'guards',
    // Complete, as a client sends it: a guard without a key is refused, which may end the connection before the flood does.
    (tunnel, index) => ({
      type: 'guard',
      tunnel,
      guard: { deny: [`198.51.100.${index}`], key: 'k'.repeat(43), sessionMs: 60_000 },
    }),
  ],
])('changes of %s without end are a flood', async (_, message) => {
  const client = await SpeakingClient.connect(server.port)
  client.say(register())
  const { tunnel } = await client.control('granted')
  client.say(control(message(tunnel, 0)), frame(5, 0, Buffer.alloc(8, 1)))
  await eventually(() => client.frames.some(({ type }) => type === 6), 'the pong: one change is taken')
  const ended = next(server, 'disconnection')
  client.say(...Array.from({ length: 200 }, (_one, index) => control(message(tunnel, index))))
  expect((await ended).reason).toBe('FLOOD')
  await within(client.closed, 'the server to close')
  await takeBack(client)
  await othersGoOn()
})
