// The life of TCP tunnels: who is told of connections, what waits, what is cut and when, and whose the port is.

import { expect, test } from 'bun:test'
import { TunnelClient } from '../../src/index.ts'
import { codeOf, eventually, next, until } from '../support/events.ts'
import { freePort } from '../support/ports.ts'
import { ClientProcess } from '../support/processes.ts'
import { RawOrigin, rawDial } from '../support/raw.ts'
import { control, frame, SpeakingClient, speakingServer } from '../support/speaker.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { startTcpTunnel } from '../support/tcp-tunnel.ts'
import { startServer } from '../support/tunnel.ts'
import { within } from '../support/within.ts'

/** What a connection to this port comes to. */
async function dialCode(port: number): Promise<string> {
  return codeOf(rawDial(port))
}

// ── Reports ────────────────────────────────────────────────────────────────────────────────────────────────────

test('server and client tell of each connection: whose, from where, how long, the bytes both ways', async () => {
  using service = new RawOrigin()
  await using live = await startTcpTunnel(service.port)
  // The client's own upgrade counts, too.
  const before = live.server.getStats()
  const began = [next(live.client, 'visitorConnected'), next(live.server, 'visitorConnected')]
  const ended = [next(live.client, 'visitorDisconnected'), next(live.server, 'visitorDisconnected')]
  const visitor = await rawDial(live.port)
  const source = visitor.socket.endpoints()?.source
  const about = { tunnel: `tcp-${live.port}`, remoteAddress: '127.0.0.1', remotePort: source?.port }
  for (const event of await Promise.all(began)) expect(event).toEqual({ id: 1, ...about })
  expect(live.server.getStats()).toMatchObject({ rawVisitors: 1, totalRawVisitors: 1, requests: 0 })
  const atService = await service.accept()
  await visitor.send('four')
  await atService.until('four')
  await atService.send('seven77')
  await visitor.until('seven77')
  visitor.socket.end()
  await atService.end()
  atService.socket.end()
  for (const event of await Promise.all(ended)) {
    const { durationMs, ...rest } = event
    expect(rest).toEqual({ id: 1, ...about, bytesIn: 4, bytesOut: 7 })
    expect(durationMs).toBeGreaterThan(0)
  }
  const stats = live.server.getStats()
  expect(stats).toMatchObject({ rawVisitors: 0, totalRawVisitors: 1, requests: 0 })
  expect(stats.bytesIn - before.bytesIn).toBe(4)
  expect(stats.bytesOut - before.bytesOut).toBe(7)
})

test('the code of a connection that failed says whose doing it was', async () => {
  using service = new RawOrigin()
  await using live = await startTcpTunnel(service.port)
  const code = async (act: () => Promise<void>) => {
    const ended = [next(live.client, 'visitorDisconnected'), next(live.server, 'visitorDisconnected')]
    await act()
    const [atClient, atServer] = await Promise.all(ended)
    expect(atServer?.error).toBe(atClient?.error)
    return atClient?.error
  }
  const byVisitor = await code(async () => {
    const visitor = await rawDial(live.port)
    await service.accept()
    visitor.socket.terminate()
  })
  expect(byVisitor).toBe('CANCELLED')
  const byService = await code(async () => {
    await rawDial(live.port)
    const atService = await service.accept()
    atService.socket.terminate()
  })
  expect(byService).toBe('ORIGIN_CLOSED')
})

test('a service that is down: the visitor is reset, the client hears why, and the tunnel goes on', async () => {
  const down = freePort()
  await using live = await startTcpTunnel(down)
  const failed = next(live.client, 'error')
  const ended = next(live.client, 'visitorDisconnected')
  const visitor = await rawDial(live.port)
  expect((await visitor.closed())?.message).toStartWith('ECONNRESET')
  expect(await failed).toMatchObject({ code: 'ORIGIN_REFUSED' })
  expect(await ended).toMatchObject({ error: 'ORIGIN_REFUSED', bytesIn: 0, bytesOut: 0 })
  using _late = Bun.listen({
    hostname: '127.0.0.1',
    port: down,
    socket: { open: socket => void socket.end('up'), data() {} },
  })
  expect(await (await rawDial(live.port)).end()).toBe('up')
})

test('nobody is told of what was not asked for: without listeners no report is sent', async () => {
  const server = await startServer()
  const client = await SpeakingClient.connect(server.port)
  client.say(control({ type: 'register', ref: 1, kind: 'tcp' }))
  const { port } = await client.control('granted')
  const visitor = await rawDial(Number(port))
  await eventually(() => server.getStats().rawVisitors === 1, 'the visitor')
  client.say(control({ type: 'watch', on: true }))
  client.say(control({ type: 'release', tunnel: 1 }))
  visitor.socket.terminate()
  await client.control('released')
  client.say(control({ type: 'register', ref: 2, kind: 'tcp' }))
  await eventually(() => client.frames.filter(({ type }) => type === 7).length === 3, 'the second grant')
  const types = client.frames
    .filter(({ type }) => type === 7)
    .map(one => JSON.parse(one.payload.toString()).type)
  expect(types).toEqual(['granted', 'released', 'granted'])
  client.close()
  await server.stop()
})

// ── Bounds ─────────────────────────────────────────────────────────────────────────────────────────────────────

test('one connection above maxStreams is cut, and told as TUNNEL_BUSY; those that are open go on', async () => {
  using service = new RawOrigin()
  await using live = await startTcpTunnel(service.port, { server: { limits: { maxStreams: 2 } } })
  const [one, two] = [await rawDial(live.port), await rawDial(live.port)]
  const ended = next(live.server, 'visitorDisconnected')
  const third = await rawDial(live.port)
  expect(await third.closed()).toBeDefined()
  expect(await ended).toMatchObject({ error: 'TUNNEL_BUSY' })
  for (const visitor of [one, two]) {
    await visitor.send('x')
    await (await service.accept()).until('x')
  }
  one.socket.terminate()
  await next(live.server, 'visitorDisconnected')
  const fourth = await rawDial(live.port)
  await fourth.send('y')
  await (await service.accept()).until('y')
})

test('two clients use a range up; the next is CLIENT_LIMIT until one leaves in good order', async () => {
  const [first, second] = [freePort(), freePort()]
  const server = await startServer({ tcpPorts: `${first},${second}` })
  const clients = [1, 2, 3].map(() => new TunnelClient({ server: `127.0.0.1:${server.port}` }))
  const [one, two, three] = clients as [TunnelClient, TunnelClient, TunnelClient]
  const ports = [await one.tcp({ port: 1 }), await two.tcp({ port: 1 })].map(({ port }) => port)
  expect(new Set<unknown>(ports)).toEqual(new Set([first, second]))
  expect(await codeOf(three.tcp({ port: 1 }))).toBe('CLIENT_LIMIT')
  expect(await codeOf(three.tcp({ port: 1, remotePort: first }))).toBe('PORT_TAKEN')
  await one.disconnect()
  expect((await three.tcp({ port: 1 })).port).toBe(ports[0])
  for (const client of clients) await client.disconnect()
  expect(server.getStats().activeSubdomains).toBe(0)
  await server.stop()
})

// ── Release and leave ──────────────────────────────────────────────────────────────────────────────────────────

test('a tunnel that is closed takes its connections with it after drainTimeoutMs, and none of another', async () => {
  using service = new RawOrigin()
  await using live = await startTcpTunnel(service.port, { client: { drainTimeoutMs: 200 } })
  const other = await live.client.tcp({ port: service.port, host: '127.0.0.1' })
  const [here, there] = [await rawDial(live.port), await rawDial(other.port ?? 0)]
  await here.send('here')
  await there.send('there')
  const ends = [await service.accept(), await service.accept()]
  await Promise.all(ends.map(end => end.when(() => end.text.length > 0, 'bytes')))
  const atThere = ends.find(end => end.text === 'there')
  const ended = next(live.server, 'visitorDisconnected')
  await live.tunnel.close()
  await here.send('more')
  await ends.find(end => end.text.startsWith('here'))?.until('more')
  expect((await here.closed())?.message).toStartWith('ECONNRESET')
  expect(await ended).toMatchObject({ error: 'CLIENT_GONE' })
  await atThere?.send('still here')
  await there.until('still here')
  expect(await dialCode(live.port)).toBe('ECONNREFUSED')
})

test('a client that leaves in mid-transfer: both ends see a reset, never an end', async () => {
  using service = new RawOrigin()
  const live = await startTcpTunnel(service.port)
  const visitor = await rawDial(live.port)
  const atService = await service.accept()
  const sending = atService.send(Buffer.alloc(50_000_000))
  await visitor.when(() => visitor.bytes.length > 1_000_000, 'the first megabyte')
  await live.client.disconnect()
  expect(await visitor.closed()).toBeDefined()
  expect(visitor.hasEnded).toBe(false)
  expect(visitor.bytes.length).toBeLessThan(50_000_000)
  expect(await atService.closed()).toBeDefined()
  await sending
  expect(await dialCode(live.port)).toBe('ECONNREFUSED')
  await live.server.stop()
})

// ── A client that is away ──────────────────────────────────────────────────────────────────────────────────────

test('connections wait for a client that is away, with what they said and their FIN, and the port stays', async () => {
  using service = new RawOrigin()
  let proxy: TcpProxy | undefined
  await using live = await startTcpTunnel(service.port, {
    via: port => {
      proxy = new TcpProxy(port)
      return proxy.port
    },
  })
  const lost = next(live.client, 'disconnected')
  proxy!.isDown = true
  proxy!.cutAll()
  await lost
  await until(live.server, 'disconnection', () => live.server.getStats().connections === 0)
  const waiting = await rawDial(live.port)
  await waiting.send('said while waiting')
  waiting.socket.end()
  const leaving = await rawDial(live.port)
  await eventually(() => live.server.getStats().rawVisitors === 2, 'both to be held')
  leaving.socket.terminate()
  await eventually(() => live.server.getStats().rawVisitors === 1, 'the one that left to be forgotten')
  const back = next(live.client, 'connected')
  proxy!.isDown = false
  await back
  expect(live.tunnel.port).toBe(live.port)
  const atService = await service.accept()
  expect(await atService.end()).toBe('said while waiting')
  await atService.send('answered')
  atService.socket.end()
  expect(await waiting.end()).toBe('answered')
  await eventually(() => live.server.getStats().rawVisitors === 0, 'all to be gone')
  expect(service.connections).toHaveLength(1)
  proxy![Symbol.dispose]()
})

test('no more than maxHeldRequests wait, none longer than holdTimeoutMs', async () => {
  using service = new RawOrigin()
  const limits = { maxHeldRequests: 2, holdTimeoutMs: 300, leaseMs: 60_000 }
  await using server = await startServer({ limits })
  await using client = new ClientProcess(`127.0.0.1:${server.port}`, 'tcp', service.port)
  const name = await client.event('connected')
  const port = Number(name.split('-')[1])
  client.kill('SIGKILL')
  await until(server, 'disconnection', () => server.getStats().connections === 0)
  const codes: unknown[] = []
  server.on('visitorDisconnected', ({ error }) => codes.push(error))
  const held = [await rawDial(port), await rawDial(port)]
  await eventually(() => server.getStats().rawVisitors === 2, 'two to be held')
  const third = await rawDial(port)
  await third.closed()
  expect(server.getStats().rawVisitors).toBe(2)
  for (const visitor of held) expect(await visitor.closed()).toBeDefined()
  await eventually(() => codes.length === 3, 'three ends')
  expect(codes).toEqual(Array(3).fill('CLIENT_RECONNECTING'))
})

test('kill -9 of the client: its connections are reset, its port is kept for the lease, then anybody may have it', async () => {
  using service = new RawOrigin()
  await using server = await startServer({ limits: { leaseMs: 500, holdTimeoutMs: 0 } })
  await using killed = new ClientProcess(`127.0.0.1:${server.port}`, 'tcp', service.port)
  const name = await killed.event('connected')
  const remotePort = Number(name.split('-')[1])
  const visitor = await rawDial(remotePort)
  await service.accept()
  killed.kill('SIGKILL')
  expect((await visitor.closed())?.message).toStartWith('ECONNRESET')
  const other = new TunnelClient({ server: `127.0.0.1:${server.port}` })
  expect(await codeOf(other.tcp({ port: 1, remotePort }))).toBe('PORT_TAKEN')
  await eventually(() => server.getStats().activeSubdomains === 0, 'the lease to end')
  await using again = new ClientProcess(`127.0.0.1:${server.port}`, name, service.port)
  expect(await again.event('connected')).toBe(name)
})

test('a client that thaws after its carrier was given up has its port again, and only the secret opens it', async () => {
  using service = new RawOrigin()
  await using server = await startServer({ limits: { pingIntervalMs: 50, deadAfterMs: 200 } })
  await using frozen = new ClientProcess(`127.0.0.1:${server.port}`, 'tcp', service.port)
  const name = await frozen.event('connected')
  const port = Number(name.split('-')[1])
  await frozen.freeze()
  await until(server, 'disconnection', () => server.getStats().connections === 0)
  const thief = new TunnelClient({ server: `127.0.0.1:${server.port}` })
  expect(await codeOf(thief.tcp({ port: 1, remotePort: port }))).toBe('PORT_TAKEN')
  const waiting = await rawDial(port)
  await waiting.send('hello')
  frozen.kill('SIGCONT')
  await (await service.accept()).until('hello')
  expect(await frozen.event('connected')).toBe(name)
})

test('the resume secret gives the port to whoever has it, at once, though the old connection looks alive', async () => {
  const server = await startServer()
  const first = await SpeakingClient.connect(server.port)
  first.say(control({ type: 'register', ref: 1, kind: 'tcp' }))
  const { port, resume, name } = await first.control('granted')
  for (const wrong of [undefined, 'wrong', `${String(resume)}x`]) {
    const thief = await SpeakingClient.connect(server.port)
    thief.say(control({ type: 'register', ref: 1, kind: 'tcp', port, resume: wrong }))
    expect(await thief.control('refused')).toMatchObject({ code: 'PORT_TAKEN' })
    thief.close()
  }
  const second = await SpeakingClient.connect(server.port)
  second.say(control({ type: 'register', ref: 1, kind: 'tcp', port, resume }))
  expect(await second.control('granted')).toMatchObject({ name, port, resume })
  await first.closed
  await rawDial(Number(port))
  await eventually(() => second.frames.some(({ type }) => type === 1), 'OPEN')
  second.close()
  await server.stop()
})

// ── Draining ───────────────────────────────────────────────────────────────────────────────────────────────────

test('stop() takes no visitor more, lets open connections go on, and ends when the last is done', async () => {
  using service = new RawOrigin()
  const live = await startTcpTunnel(service.port, { client: { reconnect: false } })
  const visitor = await rawDial(live.port)
  const atService = await service.accept()
  let isStopped = false
  const stopping = live.server.stop().then(() => {
    isStopped = true
  })
  // The port closes behind a turn of the event loop.
  for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate)
  expect(await dialCode(live.port)).toBe('ECONNREFUSED')
  // Nor does a client get another port now.
  expect(await codeOf(live.client.tcp({ port: 1 }))).toBe('SERVER_DRAINING')
  await visitor.send('a last question')
  await atService.until('a last question')
  await atService.send('an answer')
  await visitor.until('an answer')
  expect(isStopped).toBe(false)
  visitor.socket.end()
  atService.socket.end()
  await within(stopping, 'the stop')
  expect(live.server.getStats()).toMatchObject({ rawVisitors: 0, activeSubdomains: 0 })
})

test('stop() cuts what is still open after drainTimeoutMs', async () => {
  using service = new RawOrigin()
  const server = { limits: { drainTimeoutMs: 50 } }
  const live = await startTcpTunnel(service.port, { server, client: { reconnect: false } })
  const ended = next(live.server, 'visitorDisconnected')
  const visitor = await rawDial(live.port)
  const atService = await service.accept()
  await within(live.server.stop(), 'the stop')
  expect((await visitor.closed())?.message).toStartWith('ECONNRESET')
  expect(await atService.closed()).toBeDefined()
  expect(await ended).toMatchObject({ error: 'SERVER_DRAINING' })
})

test('stop() lets nobody wait for a client that is away', async () => {
  using service = new RawOrigin()
  const server = await startServer()
  const client = new ClientProcess(`127.0.0.1:${server.port}`, 'tcp', service.port)
  const port = Number((await client.event('connected')).split('-')[1])
  client.kill('SIGKILL')
  await until(server, 'disconnection', () => server.getStats().connections === 0)
  const visitor = await rawDial(port)
  await eventually(() => server.getStats().rawVisitors === 1, 'the visitor to be held')
  const ended = next(server, 'visitorDisconnected')
  await within(server.stop(), 'the stop')
  expect(await visitor.closed()).toBeDefined()
  expect(await ended).toMatchObject({ error: 'SERVER_DRAINING' })
})

// ── Strangers ──────────────────────────────────────────────────────────────────────────────────────────────────

test('a server that opens streams of a tunnel that was released reaches nobody', async () => {
  using service = new RawOrigin()
  const resets = new Map<number, number>()
  using server = speakingServer(
    (message, say) => {
      if (message.type === 'register') {
        const { ref } = message
        const tunnel = Number(ref)
        const port = 20_000 + tunnel
        say(
          control({
            type: 'granted',
            ref,
            tunnel,
            name: `tcp-${port}`,
            port,
            url: `tcp://x:${port}`,
            resume: 's',
          }),
        )
      }
      if (message.type === 'release') {
        const tunnel = (number: number) => Uint8Array.of(0, 0, 0, number)
        say(control({ type: 'released', tunnel: 1 }))
        say(frame(1, 1, tunnel(1)))
        say(frame(0, 1, 'not for you'))
        say(frame(1, 2, tunnel(9)))
        say(frame(1, 3, tunnel(2)))
      }
    },
    ({ type, stream, payload }) => {
      if (type === 3) resets.set(stream, payload.readUInt16BE(0))
    },
  )
  await using client = new TunnelClient({ server: `127.0.0.1:${server.port}` })
  const released = await client.tcp({ port: service.port, host: '127.0.0.1' })
  await client.tcp({ port: service.port, host: '127.0.0.1' })
  await released.close()
  // The one that is still granted arrives, and it alone.
  await service.accept()
  await eventually(() => resets.size === 2, 'two resets')
  expect([...resets]).toEqual([
    [1, 40],
    [2, 40],
  ])
  expect(service.connections).toHaveLength(1)
  expect(client.isConnected()).toBe(true)
})
