// Visits that end in random ways at random moments: with guards that think, places that are short, breakers, pools, copies,
// middlewares, clients that are away, apps that answer garbage. Afterwards nothing of them is counted anywhere.
// Over 5 s on a busy machine: hundreds of visits, some of which end by a timeout.
//
// LT_FUZZ=25 makes ten thousand of each.

import { expect, test } from 'bun:test'
import { createSocket } from 'node:dgram'
import { connect, createServer, type Socket } from 'node:net'
import { type Guard, type Middleware, TunnelClient, type TunnelClientOptions } from '../../src/index.ts'
import { adminOptions, metricsOf, sampleOf } from '../support/admin.ts'
import { ask } from '../support/ask.ts'
import { eventually } from '../support/events.ts'
import { frame, u32 } from '../support/h2-frames.ts'
import { get, H2Peer, head, post } from '../support/h2-peer.ts'
import { FUZZ, Random } from '../support/random.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { TEST_CERT, TEST_KEY } from '../support/tls.ts'
import { startServer } from '../support/tunnel.ts'
import { within } from '../support/within.ts'

const VISITS = 400 * FUZZ
const AT_ONCE = 30
/** After so many visits the connection of one client is cut. */
const CUT_EVERY = 40
const LONGEST_MS = 40
/** Of the tunnel whose requests wait for each other. */
const PLACES = 2
const QUEUED = 3

/** Random pieces of this become an app's answer; a piece that is `end`, `reset` or `wait` is what it says. */
const ANSWERS: readonly (readonly string[])[] = [
  ['HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'],
  ['HTTP/1.1 500 Internal Server Error\r\nContent-Length: 2\r\n\r\nno'],
  ['HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nhalf', 'reset'],
  ['HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nhalf', 'wait', 'end'],
  ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', 'wait', '2\r\nok\r\n', 'wait', '0\r\n\r\n'],
  ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n'],
  ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe', 'reset'],
  ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: 1\r\n', 'wait', 'end'],
  ['HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok'],
  ['HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'],
  [
    'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n',
    'bytes',
    'wait',
    'end',
  ],
  ['HTTP/1.1 100 Continue\r\n\r\n', 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n', 'reset'],
  ['HTTP/1.1 200 OK\r\n\r\nuntil ', 'wait', 'the end', 'end'],
  ['HTTP/1.1 204 No Content\r\n\r\n', 'surplus'],
  ['HTTP/1.1 200 OK\r\nContent-Le', 'wait', 'reset'],
  [`HTTP/1.1 200 OK\r\n${'X: y\r\n'.repeat(300)}\r\n`],
  ['HTTP/1.1 999999 OK\r\n\r\n'],
  ['\0\0\0\0\0\0\0\0\0\0\0\0\r\n\r\n'],
  ['wait', 'end'],
  ['reset'],
  ['end'],
  [],
  [`HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n${'x'.repeat(3_000_000)}`],
]

const REQUESTS: readonly (readonly string[])[] = [
  ['GET /NUMBER HTTP/1.1\r\nHost: HOST\r\n\r\n'],
  ['GET /NUMBER HTTP/1.1\r\nHost: HOST\r\n\r\n'],
  ['GET /NUMBER HTTP/1.1\r\nHost: HOST\r\n\r\nGET /NUMBER HTTP/1.1\r\nHost: HOST\r\n\r\n'],
  ['POST /NUMBER HTTP/1.1\r\nHost: HOST\r\nContent-Length: 10\r\n\r\nhalf', 'wait', 'of it!'],
  ['POST /NUMBER HTTP/1.1\r\nHost: HOST\r\nContent-Length: 10\r\n\r\nhalf'],
  [
    'POST /NUMBER HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n',
    'wait',
    '0\r\n\r\n',
  ],
  ['POST /NUMBER HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nz'],
  [
    'POST /NUMBER HTTP/1.1\r\nHost: HOST\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n',
    'wait',
    'body',
  ],
  [
    'GET /NUMBER HTTP/1.1\r\nHost: HOST\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
    'wait',
    'bytes',
  ],
  [`POST /NUMBER HTTP/1.1\r\nHost: HOST\r\nContent-Length: 300000\r\n\r\n${'b'.repeat(300_000)}`],
  ['GET /NUMBER HTTP/1.1\r\nHost: HO'],
]

/** An app that answers as the seed says, until it is silent. */
async function app(random: Random) {
  const sockets = new Set<Socket>()
  const state = { isSilent: false, asked: 0 }
  const server = createServer(socket => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    socket.on('data', () => {
      state.asked++
      if (!state.isSilent) void say(socket, random.pick(ANSWERS), random)
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    state,
    port: (server.address() as { port: number }).port,
    close() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

async function say(socket: Socket, pieces: readonly string[], random: Random): Promise<void> {
  for (const piece of pieces) {
    if (socket.destroyed) return
    if (piece === 'wait') await Bun.sleep(random.below(LONGEST_MS))
    else if (piece === 'end') socket.end()
    else if (piece === 'reset') socket.resetAndDestroy()
    else socket.write(piece)
  }
}

/** Leaves at a random moment, by FIN or RST, or when the other side does. */
async function visit(port: number, pieces: readonly string[], random: Random): Promise<void> {
  const socket = connect(port, '127.0.0.1')
  const closed = new Promise<void>(resolve => socket.on('close', () => resolve()))
  socket.on('error', () => {})
  if (random.chance(0.8)) socket.resume()
  await new Promise<void>(resolve => {
    socket.once('connect', resolve)
    socket.once('close', () => resolve())
  })
  void say(socket, pieces, random)
  await Promise.race([closed, Bun.sleep(random.below(LONGEST_MS))])
  const leave = random.below(3)
  if (leave === 0) socket.resetAndDestroy()
  if (leave === 1) socket.end()
  // One that waits for the other side does not wait for ever.
  await Promise.race([closed, Bun.sleep(LONGEST_MS)])
  socket.resetAndDestroy()
  await closed
}

/** Where both ends of many TLS handshakes are in one process, Bun leaves some of them unread: one after the other. */
let handshake: Promise<unknown> = Promise.resolve()

/** The same over TLS: each connection has a few streams, which end in ways of their own. */
async function visitByHttp2(port: number, host: string, random: Random): Promise<void> {
  const connected = handshake.then(() => H2Peer.connect(port))
  handshake = connected.catch(() => {})
  await using peer = await connected
  const streams = [1, 3, 5].slice(0, 1 + random.below(3))
  for (const stream of streams) {
    const kind = random.below(6)
    if (kind < 2) peer.send(head(stream, get(host, `/${stream}`)))
    else {
      const more = [['content-length', '100000']] as const
      peer.send(head(stream, post(host, `/${stream}`, kind === 2 ? more : []), false))
      peer.send(frame(0, 0, stream, 'x'.repeat(16_000)))
      // Shorter than it says.
      if (kind < 5) peer.send(frame(0, 1, stream))
    }
    if (random.chance(0.5)) peer.grow(1_000_000, stream)
    if (random.chance(0.3)) await Bun.sleep(random.below(LONGEST_MS))
    if (random.chance(0.3)) peer.send(frame(3, 0, stream, u32(random.below(14))))
  }
  if (random.chance(0.5)) peer.grow(1_000_000)
  if (random.chance(0.1)) peer.send(frame(7, 0, 0, [...u32(0), ...u32(0)]))
  if (random.chance(0.1)) peer.send(frame(0, 0, 0, 'of no stream'))
  await Bun.sleep(random.below(LONGEST_MS))
}

for (const way of ['HTTP/1.1', 'HTTP/2'] as const)
  test(
    `visits by ${way} that end in every way leave nothing in any count`,
    async () => {
      const isHttp2 = way === 'HTTP/2'
      const seed = Number(process.env.LT_SEED ?? Math.floor(Math.random() * 1e9))
      const random = new Random(seed)
      let kept = 0
      const guard: Guard = {
        name: 'thinks',
        tunnels: ['guarded', 'tcp-*', 'udp-*'],
        admit() {
          const pass = {
            whileOpen(cut: () => void) {
              kept++
              if (random.chance(0.1)) setTimeout(cut, random.below(LONGEST_MS))
              return () => void kept--
            },
          }
          const kind = random.below(8)
          if (kind === 0) return { code: 'GUARD_REFUSED' }
          if (kind === 1) return pass
          if (kind === 2) return Promise.reject(new Error('of a guard'))
          return Bun.sleep(random.below(LONGEST_MS)).then(() => (kind === 3 ? undefined : pass))
        },
      }
      const middleware: Middleware = {
        name: 'passes',
        tunnels: ['middle'],
        async handle(request, next) {
          const answer = await next(request)
          if (random.chance(0.2)) await Bun.sleep(random.below(LONGEST_MS))
          return random.chance(0.1) ? new Response('own') : answer
        },
      }
      const server = await startServer({
        ...(isHttp2 && { tls: { cert: TEST_CERT, key: TEST_KEY } }),
        admin: adminOptions(),
        guards: [guard],
        middlewares: [middleware],
        tunnelRules: [
          { tunnels: ['places'], maxInFlight: PLACES, maxQueued: QUEUED, queueTimeoutMs: 400 },
          { tunnels: ['breaker'], breaker: { minRequests: 2, openMs: 20 }, responseTimeoutMs: 250 },
          { tunnels: ['slow'], bandwidth: 1_000_000, maxContentLength: 200_000 },
        ],
        limits: { originTimeoutMs: 2_000, holdTimeoutMs: 400, flowIdleMs: 300, maxAddressRate: 0 },
      })
      const errors: unknown[] = []
      server.on('error', error => {
        const code = 'code' in error ? error.code : undefined
        if (code !== 'PLUGIN_FAILED') errors.push(error)
      })
      const urlOf = (port: number): string => `${isHttp2 ? 'https' : 'http'}://127.0.0.1:${port}`
      const origin = await app(random)
      using proxy = new TcpProxy(server.port)
      const clients: TunnelClient[] = []
      const start = async (options: TunnelClientOptions, port = server.port): Promise<TunnelClient> => {
        const client = new TunnelClient({
          server: urlOf(port),
          host: '127.0.0.1',
          port: origin.port,
          maxBackoffMs: 20,
          ca: TEST_CERT,
          ...options,
        } as TunnelClientOptions)
        client.on('error', () => {})
        clients.push(client)
        await client.connect()
        return client
      }
      const names = [
        'plain',
        'guarded',
        'middle',
        'places',
        'breaker',
        'slow',
        'json',
        'away',
        'pool',
        'copies',
      ]
      for (const subdomain of names.slice(0, 6)) await start({ subdomain })
      await start({ subdomain: 'json', wire: 'json' })
      await start({ subdomain: 'away' }, proxy.port)
      for (const port of [1, origin.port, origin.port]) await start({ subdomain: 'pool', pool: true, port })
      for (const port of [1, origin.port, origin.port])
        await start({ subdomain: 'copies', pool: { to: 'all' }, port })
      const raw = new TunnelClient({ server: urlOf(proxy.port), maxBackoffMs: 20, ca: TEST_CERT })
      raw.on('error', () => {})
      clients.push(raw)
      const tcp = await raw.tcp({ port: origin.port })
      const udp = await raw.udp({ port: origin.port })
      const datagrams = createSocket('udp4')
      datagrams.on('error', () => {})
      /** All places are free, and no more than there are. */
      const expectPlaces = async (): Promise<void> => {
        Object.assign(origin.state, { isSilent: true, asked: 0 })
        const waiting = Array.from({ length: PLACES + QUEUED }, () => connect(server.port, '127.0.0.1'))
        for (const socket of waiting) socket.write('GET / HTTP/1.1\r\nHost: places.localhost\r\n\r\n')
        const { state } = origin
        await eventually(
          () => state.asked === PLACES && server.getStats().pendingResponses === PLACES + QUEUED,
          'as many at the app as there are places, and the others in the queue',
        )
        expect((await ask(server.port, 'places.localhost')).code).toBe('TUNNEL_BUSY')
        for (const socket of waiting) socket.destroy()
        await eventually(() => server.getStats().pendingResponses === 0, 'those to be gone')
      }

      let number = 0
      const visitor = async (): Promise<void> => {
        while (number < VISITS) {
          if (++number % CUT_EVERY === 0) proxy.cutAll()
          const request = random.pick(REQUESTS)
          const kind = random.below(names.length + 2)
          if (kind === names.length) await visit(tcp.port ?? 0, request, random)
          else if (kind > names.length) datagrams.send('x', udp.port ?? 0, '127.0.0.1')
          else {
            const host = `${names[kind]}.localhost`
            if (isHttp2) {
              await visitByHttp2(server.port, host, random)
              continue
            }
            const pieces = request.map(piece =>
              piece.replaceAll('HOST', host).replaceAll('NUMBER', `${number}`),
            )
            await visit(server.port, pieces, random)
          }
        }
      }
      try {
        await Promise.all(Array.from({ length: AT_ONCE }, visitor))
        const left = async (): Promise<Record<string, unknown>> => {
          const { pendingResponses, rawVisitors, flows } = server.getStats()
          const metrics = await metricsOf(server)
          const bufferedBytes = sampleOf(metrics, 'localtunnels_buffered_bytes')
          return { pendingResponses, rawVisitors, flows, bufferedBytes, kept }
        }
        const nothing = { pendingResponses: 0, rawVisitors: 0, flows: 0, bufferedBytes: 0, kept: 0 }
        let now = await left()
        for (let tries = 0; tries < 100 && JSON.stringify(now) !== JSON.stringify(nothing); tries++) {
          await Bun.sleep(100)
          now = await left()
        }
        expect(now).toEqual(nothing)
        expect(errors).toEqual([])
        expect(server.getStats().requests).toBeGreaterThan(VISITS / 2)

        if (!isHttp2) await expectPlaces()

        // A client that gives its names back waits for the visitors that its tunnels count.
        await within(
          Promise.all(clients.map(client => client.close())),
          'the clients to find no visitor of theirs',
        )
        await eventually(() => server.getStats().connections === 0, 'no client to be left')
        await within(server.stop(), 'the server to find nothing under way')
      } catch (cause) {
        throw new Error(`LT_SEED=${seed}`, { cause })
      } finally {
        datagrams.close()
        origin.close()
        for (const client of clients) await client.disconnect()
        await server.stop()
      }
    },
    60_000 * FUZZ,
  )
