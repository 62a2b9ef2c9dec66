// One address that has all there is of a tunnel gives way to visitors that have fewer: on both wires, whatever they speak.

import { expect, test } from 'bun:test'
import { Agent } from 'node:http'
import { createConnection, type Socket } from 'node:net'
import { type Answer, ask } from '../support/ask.ts'
import { startBehindProxy } from '../support/behind-proxy.ts'
import type { BoundedOptions } from '../support/bounded-server.ts'
import { TestCluster } from '../support/clusters.ts'
import { DatagramVisitor, datagramApp } from '../support/datagrams.ts'
import { eventually, next } from '../support/events.ts'
import { get, H2Peer, head } from '../support/h2-peer.ts'
import { closedAfterEach } from '../support/opened.ts'
import { startTcpTunnel } from '../support/tcp-tunnel.ts'
import { startTunnel } from '../support/tunnel.ts'

const GREEDY = '192.0.2.1'
const MODEST = '192.0.2.2'
const { defer } = closedAfterEach()

/** An app that never answers to `/slow`, and knows who waits for it. */
function startApp() {
  const waiting: string[] = []
  const app = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    fetch(request, server) {
      const { pathname } = new URL(request.url)
      if (pathname === '/ws') return server.upgrade(request) ? undefined : new Response('no')
      if (!pathname.startsWith('/slow')) return new Response('ok')
      waiting.push(pathname)
      request.signal.addEventListener('abort', () => waiting.splice(waiting.indexOf(pathname), 1))
      return new Promise<Response>(() => {})
    },
    websocket: { message: () => {} },
  })
  defer(() => app.stop(true))
  return { port: app.port ?? 0, waiting }
}

const limited = (limits: BoundedOptions['limits']): BoundedOptions => ({
  trustedProxies: ['127.0.0.1'],
  limits: { drainTimeoutMs: 0, ...limits },
})

const from = (address: string) => ({ 'x-forwarded-for': address })

/** Requests that are not answered, one after the other at the app; of each, what became of it. */
async function slow(
  app: ReturnType<typeof startApp>,
  port: number,
  host: string,
  address: string,
  count: number,
): Promise<Answer[]> {
  const ended: Answer[] = []
  for (let at = 0; at < count; at++) {
    const before = app.waiting.length
    const path = `/slow${at}`
    void ask(port, host, { path, headers: from(address) }).then(
      answer => ended.push(answer),
      () => {},
    )
    await eventually(() => app.waiting.length > before, 'the request at the app')
  }
  return ended
}

test.each(['streams', 'json'] as const)(
  'requests on the %s wire: the newest of who has most is 503, and no other',
  async wire => {
    const app = startApp()
    await using tunnel = await startTunnel({ port: app.port }, { wire, server: limited({ maxStreams: 4 }) })
    const { port, host } = tunnel
    const ended = await slow(app, port, host, GREEDY, 4)
    // Alone it may have all, and takes nothing from itself.
    expect(await ask(port, host, { headers: from(GREEDY) })).toMatchObject({
      status: 503,
      code: 'TUNNEL_BUSY',
    })
    expect(ended).toEqual([])
    expect(await ask(port, host, { headers: from(MODEST) })).toMatchObject({ status: 200, body: 'ok' })
    await eventually(() => ended.length === 1, 'the refusal')
    expect(ended[0]).toMatchObject({ status: 503, code: 'TUNNEL_BUSY' })
    await eventually(() => !app.waiting.includes('/slow3'), 'its end at the app')
    expect(app.waiting).toEqual(['/slow0', '/slow1', '/slow2'])
    // Both have half of them in the end, and neither takes more from the other.
    for (const path of ['/slow-a', '/slow-b']) {
      void ask(port, host, { path, headers: from(MODEST) }).catch(() => {})
      await eventually(() => app.waiting.includes(path), 'the request at the app')
    }
    await eventually(() => app.waiting.length === 4, 'the end of another one')
    expect(app.waiting.toSorted()).toEqual(['/slow-a', '/slow-b', '/slow0', '/slow1'])
    expect((await ask(port, host, { headers: from(MODEST) })).status).toBe(503)
    expect((await ask(port, host, { headers: from('192.0.2.3') })).status).toBe(200)
  },
)

test('streams of a client: who has most at one of its tunnels gives way to a visitor of another', async () => {
  const app = startApp()
  await using tunnel = await startTunnel({ port: app.port }, { server: limited({ maxClientStreams: 4 }) })
  const other = await tunnel.client.http({ port: app.port, subdomain: 'other' })
  const ended = await slow(app, tunnel.port, tunnel.host, GREEDY, 4)
  const host = new URL(other.url).hostname
  expect((await ask(tunnel.port, host, { headers: from(MODEST) })).status).toBe(200)
  await eventually(() => ended.length > 0, 'the refusal')
  expect(app.waiting).toHaveLength(3)
})

test('a request that is pipelined behind the one that gave way does not get its place', async () => {
  const app = startApp()
  await using tunnel = await startTunnel({ port: app.port }, { server: limited({ maxStreams: 4 }) })
  const { port, host } = tunnel
  const sockets = [1, 2, 3, 4].map(() => createConnection({ port, host: '127.0.0.1' }))
  for (const socket of sockets) {
    const request = `GET /slow HTTP/1.1\r\nHost: ${host}\r\nX-Forwarded-For: ${GREEDY}\r\n\r\n`
    socket.on('error', () => {}).write(request.repeat(200))
    defer(() => socket.destroy())
  }
  await eventually(() => app.waiting.length === 4, 'the requests at the app')
  for (let asked = 0; asked < 3; asked++)
    expect((await ask(port, host, { headers: from(MODEST) })).status).toBe(200)
})

test('in a cluster: who has all streams to another server gives way there', async () => {
  const app = startApp()
  await using cluster = new TestCluster()
  const holder = await cluster.server({ trustedProxies: ['127.0.0.1'] })
  const other = await cluster.server(limited({ maxStreams: 3 }))
  await cluster.client({ server: holder.url, port: app.port, subdomain: 'app' })
  const ended = await slow(app, other.port, 'app.localhost', GREEDY, 3)
  expect((await ask(other.port, 'app.localhost', { headers: from(MODEST) })).status).toBe(200)
  await eventually(() => ended.length > 0, 'the refusal')
  expect(ended).toMatchObject([{ status: 503, code: 'TUNNEL_BUSY' }])
  expect(app.waiting).toEqual(['/slow0', '/slow1'])
})

test('WebSockets: the newest of who has most is cut', async () => {
  const app = startApp()
  await using tunnel = await startTunnel({ port: app.port }, { server: limited({ maxStreams: 3 }) })
  const sockets: WebSocket[] = []
  const closed: number[] = []
  for (let at = 0; at < 3; at++) {
    const socket = new WebSocket(`ws://127.0.0.1:${tunnel.port}/ws`, {
      headers: { Host: tunnel.host, ...from(GREEDY) },
    })
    socket.onclose = () => closed.push(at)
    await new Promise(resolve => (socket.onopen = resolve))
    sockets.push(socket)
  }
  expect((await ask(tunnel.port, tunnel.host, { headers: from(MODEST) })).status).toBe(200)
  await eventually(() => closed.length > 0, 'the cut')
  expect(closed).toEqual([2])
  for (const socket of sockets) socket.close()
})

test('by HTTP/2: the streams of one connection give way to a visitor of another address', async () => {
  const app = startApp()
  await using tunnel = await startTunnel({ port: app.port }, { server: limited({ maxStreams: 4 }) })
  await using peer = await H2Peer.plain(tunnel.port, undefined, '127.0.0.2')
  for (const [at, stream] of [1, 3, 5, 7].entries()) {
    peer.send(head(stream, get(tunnel.host, '/slow')))
    await eventually(() => app.waiting.length === at + 1, 'the request at the app')
  }
  expect((await ask(tunnel.port, tunnel.host, { headers: from(MODEST) })).status).toBe(200)
  await eventually(() => app.waiting.length === 3, 'the end of one')
})

test('lanes that are idle give way, and their visitors are served on', async () => {
  const app = startApp()
  await using tunnel = await startTunnel({ port: app.port }, { server: limited({ maxStreams: 3 }) })
  const agent = new Agent({ keepAlive: true, maxSockets: 3, localAddress: '127.0.0.2' })
  defer(() => agent.destroy())
  const round = () =>
    Promise.all([1, 2, 3].map(() => ask(tunnel.port, tunnel.host, { agent }).then(({ status }) => status)))
  for (let count = 0; count < 100; count++) expect(await round()).toEqual([200, 200, 200])
  for (let asked = 0; asked < 2; asked++)
    expect((await ask(tunnel.port, tunnel.host, { headers: from(MODEST) })).status).toBe(200)
  for (let count = 0; count < 20; count++) expect(await round()).toEqual([200, 200, 200])
})

/** A connection from this address of the loopback. */
function dial(port: number, localAddress: string): Socket & { isGone?: boolean } {
  const socket: Socket & { isGone?: boolean } = createConnection({ port, host: '127.0.0.1', localAddress })
  socket.on('error', () => {}).on('close', () => (socket.isGone = true))
  defer(() => socket.destroy())
  return socket
}

/** A service that sends back what it gets. */
function startEcho(): number {
  const echo = Bun.listen({
    port: 0,
    hostname: '127.0.0.1',
    socket: { data: (socket, bytes) => void socket.write(bytes) },
  })
  defer(() => echo.stop(true))
  return echo.port
}

async function echoed(socket: Socket): Promise<boolean> {
  const answer = new Promise<boolean>(resolve => {
    socket.once('data', () => resolve(true)).once('close', () => resolve(false))
  })
  socket.write('x')
  return answer
}

test.each([{ maxStreams: 3 }, { maxClientStreams: 3 }])(
  'raw connections, %j: the newest of who has most is reset',
  async limits => {
    await using live = await startTcpTunnel(startEcho(), { server: { limits } })
    const greedy: (Socket & { isGone?: boolean })[] = []
    for (let at = 0; at < 3; at++) {
      greedy.push(dial(live.port, '127.0.0.2'))
      expect(await echoed(greedy[at]!)).toBe(true)
    }
    expect(await echoed(dial(live.port, '127.0.0.2'))).toBe(false)
    expect(await echoed(dial(live.port, '127.0.0.3'))).toBe(true)
    expect(greedy.map(({ isGone = false }) => isGone)).toEqual([false, false, true])
    expect(await echoed(greedy[0]!)).toBe(true)
  },
)

test('flows of a UDP tunnel: an address with many ports gives one up', async () => {
  await using app = await datagramApp()
  await using tunnel = await startTunnel({ port: app.port }, { server: { limits: { maxFlows: 3 } } })
  const { port = 0 } = await tunnel.client.udp({ port: app.port })
  for (let at = 0; at < 3; at++) {
    const visitor = await DatagramVisitor.to(port, '127.0.0.1', '127.0.0.2')
    defer(() => visitor[Symbol.asyncDispose]())
    await visitor.ask('x')
  }
  await using modest = await DatagramVisitor.to(port, '127.0.0.1', '127.0.0.3')
  expect(Buffer.from(await modest.ask('hello')).toString()).toBe('hello')
})

test('requests that wait for a client: the newest of who has most is 503', async () => {
  const app = startApp()
  await using live = await startBehindProxy(
    { port: app.port },
    { maxHeldRequests: 3 },
    { trustedProxies: ['127.0.0.1'] },
  )
  live.proxy.isDown = true
  const lost = next(live.server, 'disconnection')
  live.proxy.cutAll()
  await lost
  const ended: string[] = []
  const wait = (name: string, address: string) =>
    ask(live.port, live.host, { headers: from(address) }).then(({ status }) =>
      ended.push(`${name} ${status}`),
    )
  const all: Promise<unknown>[] = []
  for (const name of ['one', 'two', 'three']) {
    all.push(wait(name, GREEDY))
    await eventually(() => live.server.getStats().pendingResponses === all.length, 'the request')
  }
  all.push(wait('modest', MODEST))
  await eventually(() => ended.length > 0, 'the refusal')
  expect(ended).toEqual(['three 503'])
  live.proxy.isDown = false
  await Promise.all(all)
  expect(ended.toSorted()).toEqual(['modest 200', 'one 200', 'three 503', 'two 200'])
})

test('the queue of a tunnel: its places are shared, and who has fewest under way is next', async () => {
  const app = startApp()
  await using tunnel = await startTunnel(
    { port: app.port },
    { server: { ...limited({}), tunnelRules: [{ tunnels: ['app'], maxInFlight: 2, maxQueued: 2 }] } },
  )
  const { port, host } = tunnel
  const held = new AbortController()
  for (const path of ['/slow0', '/slow1']) {
    void ask(port, host, {
      path,
      headers: from(GREEDY),
      ...(path === '/slow0' && { signal: held.signal }),
    }).catch(() => {})
    await eventually(() => app.waiting.includes(path), 'the request at the app')
  }
  const ended: string[] = []
  const wait = (name: string, path: string, address: string) =>
    void ask(port, host, { path, headers: from(address) }).then(
      ({ status }) => ended.push(`${name} ${status}`),
      () => {},
    )
  wait('third', '/slow2', GREEDY)
  await eventually(() => tunnel.server.getStats().pendingResponses === 3, 'the queue')
  wait('fourth', '/slow3', GREEDY)
  await eventually(() => tunnel.server.getStats().pendingResponses === 4, 'the queue')
  wait('modest', '/', MODEST)
  await eventually(() => ended.length === 1, 'the refusal')
  expect(ended).toEqual(['fourth 503'])
  held.abort()
  await eventually(() => ended.length === 2, 'its turn')
  expect(ended[1]).toBe('modest 200')
})

test('the queue of a tunnel: who has waited for too long takes the place of a visitor that has them all', async () => {
  const app = startApp()
  const tunnelRules = [{ tunnels: ['app'], maxInFlight: 2, queueTimeoutMs: 500 }]
  await using tunnel = await startTunnel({ port: app.port }, { server: { ...limited({}), tunnelRules } })
  const { port, host } = tunnel
  const ended = await slow(app, port, host, GREEDY, 2)
  expect((await ask(port, host, { headers: from(GREEDY) })).status).toBe(503)
  expect(ended).toEqual([])
  expect((await ask(port, host, { headers: from(MODEST) })).status).toBe(200)
  expect(ended[0]).toMatchObject({ status: 503, code: 'TUNNEL_BUSY' })
  expect(app.waiting).toEqual(['/slow0'])
})
