// Links from end to end: a real server, a real client, and a man between them who sees, cuts and refuses.

import { afterEach, describe, expect, mock, spyOn, test } from 'bun:test'
import { createHash } from 'node:crypto'
import type { Accelerator, Trunk } from '../../src/accelerator.ts'
import { Links } from '../../src/client/carriers/links.ts'
import { eventLoop } from '../../src/event-loop.ts'
import { TunnelClient } from '../../src/index.ts'
import { SessionTrunk as ClientTrunk } from '../../src/parts/lanes/client/session-trunk.ts'
import { SessionTrunk } from '../../src/parts/lanes/session-trunk.ts'
import { type Deadline, Deadlines } from '../../src/server/limits/deadlines.ts'
import { LinkRegistry } from '../../src/server/registration/links.ts'
import { Link } from '../../src/session/link.ts'
import type { Address, Dial, Socket } from '../../src/socket.ts'
import { Between } from '../support/between.ts'
import { get, ok, post } from '../support/exchange.ts'
import { frame } from '../support/naive.ts'
import { Random } from '../support/random.ts'
import { RawOrigin, rawDial } from '../support/raw.ts'
import { Loner } from '../support/sessions.ts'
import { startServer } from '../support/tunnel.ts'
import { WireEnd } from '../support/wires.ts'

const MEGABYTES = new Random(5).bytes(65_536)
const bytes = (count: number) => Buffer.alloc(count, MEGABYTES)
const sha256 = (data: Uint8Array) => createHash('sha256').update(data).digest('hex')

/** An origin that serves and swallows bulk, and counts. */
function startOrigin() {
  const seen = { posts: 0 }
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    maxRequestBodySize: 64 * 1024 * 1024,
    async fetch(request) {
      const { pathname } = new URL(request.url)
      if (request.method === 'POST') {
        seen.posts++
        return new Response(sha256(await request.bytes()))
      }
      const size = Number(pathname.slice(1))
      return new Response(size > 0 ? bytes(size) : 'small')
    },
  })
  return { seen, port: server.port ?? 0, stop: () => server.stop(true) }
}

async function startLinked() {
  const origin = startOrigin()
  const server = await startServer()
  const between = await Between.inFrontOf(server.port)
  const client = new TunnelClient({
    server: `http://127.0.0.1:${between.port}`,
    host: '127.0.0.1',
    port: origin.port,
    subdomain: 'app',
    wire: 'streams',
    reconnect: false,
  })
  const ask = (path: string, init: RequestInit = {}) =>
    fetch(`http://127.0.0.1:${server.port}${path}`, {
      ...init,
      headers: { host: `${client.getSubdomain()}.localhost` },
    })
  await client.connect()
  return {
    origin,
    server,
    between,
    client,
    ask,
    async [Symbol.asyncDispose]() {
      await client.disconnect()
      await server.stop()
      await between[Symbol.asyncDispose]()
      await origin.stop()
    },
  }
}

const SIZE = 5_000_000
const LINK_REQUEST = (secret: string, number: number) =>
  `GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: localtunnels.link.1\r\nAuthorization: Link ${secret} ${number}\r\n\r\n`

describe('links', () => {
  test('carry bulk down, opened when it is first seen', async () => {
    await using live = await startLinked()
    expect(live.between.links).toEqual([])
    const answers = await Promise.all([1, 2, 3].map(async () => (await live.ask(`/${SIZE}`)).bytes()))
    for (const answer of answers) expect(sha256(answer)).toBe(sha256(bytes(SIZE)))
    expect(live.between.links.length).toBeGreaterThan(0)
    expect(live.between.links.reduce((sum, { down, up }) => sum + down + up, 0)).toBeGreaterThan(SIZE)
  })

  test('carry bulk up, when the server wishes for them', async () => {
    await using live = await startLinked()
    for (let round = 0; round < 2; round++) {
      const answer = await live.ask('/', { method: 'POST', body: bytes(SIZE) })
      expect(await answer.text()).toBe(sha256(bytes(SIZE)))
    }
    expect(live.between.links.reduce((sum, { down }) => sum + down, 0)).toBeGreaterThan(1_000_000)
    expect(live.origin.seen.posts).toBe(2)
  })

  test('carry both ways at once, beside small requests', async () => {
    await using live = await startLinked()
    const work = Array.from({ length: 12 }, async (_, index) => {
      if (index % 3 === 0) return sha256(await (await live.ask(`/${SIZE}`)).bytes())
      if (index % 3 === 1) return (await live.ask('/', { method: 'POST', body: bytes(SIZE) })).text()
      expect(await (await live.ask('/')).text()).toBe('small')
      return sha256(bytes(SIZE))
    })
    expect(new Set(await Promise.all(work))).toEqual(new Set([sha256(bytes(SIZE))]))
  })

  test('that lose their bytes without a word fail what is on them, and nothing else', async () => {
    await using server = await startServer({
      limits: { deadAfterMs: 1_000, pingIntervalMs: 250, originTimeoutMs: 3_000 },
    })
    await using between = await Between.inFrontOf(server.port)
    using origin = new RawOrigin()
    await using client = new TunnelClient({
      server: `http://127.0.0.1:${between.port}`,
      host: '127.0.0.1',
      port: origin.port,
      subdomain: 'app',
      reconnect: false,
      ...{ deadAfterMs: 1_000, pingIntervalMs: 250 },
    })
    await client.connect()
    const answer = ok('x'.repeat(SIZE), 'Connection: close\r\n')
    const download = async () => {
      const visitor = await rawDial(server.port)
      await visitor.send(get('app.localhost'))
      const app = await origin.accept()
      await app.until('\r\n\r\n')
      await app.send(answer)
      app.socket.end()
      return visitor
    }
    // Until a link carried some of it: the first one may come too late for the first download.
    while (!between.links.some(({ up }) => up > SIZE / 2)) {
      const whole = await download()
      await whole.until('\r\n\r\n')
      await whole.exactly(SIZE)
      whole.socket.terminate()
    }

    between.isSwallowing = true
    const began = performance.now()
    const down = await download()
    expect(await down.until('\r\n\r\n')).toStartWith('HTTP/1.1 502 ')
    expect(performance.now() - began).toBeLessThan(3_000)
    // The other way nobody says an end: the app's silence is what counts.
    const up = await rawDial(server.port)
    await up.send(post('app.localhost', 'x'.repeat(SIZE)))
    await origin.accept()
    expect(await up.until('\r\n\r\n')).toStartWith('HTTP/1.1 504 ')

    // Small things go their way as before.
    const small = await rawDial(server.port)
    await small.send(get('app.localhost', '/small'))
    const app = await origin.accept()
    await app.until('/small')
    await app.send(ok('small'))
    await small.until('small')
    expect(client.getState()).toBe('connected')
    for (const { socket } of [down, up, small]) socket.terminate()
  }, 60_000)

  test('are not needed: behind a proxy that lets only WebSockets pass all goes over the carrier', async () => {
    await using live = await startLinked()
    live.between.refusal = 'HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n'
    for (let round = 0; round < 3; round++) {
      expect(sha256(await (await live.ask(`/${SIZE}`)).bytes())).toBe(sha256(bytes(SIZE)))
      const answer = await live.ask('/', { method: 'POST', body: bytes(SIZE) })
      expect(await answer.text()).toBe(sha256(bytes(SIZE)))
    }
    expect(live.between.links).toEqual([])
    // Asked for once or a few times at once, and then not for a while.
    expect(live.between.refusedLinks).toBeWithin(1, 5)
  })

  test('that are cut break the answer on them, which never looks whole, and nothing else', async () => {
    await using live = await startLinked()
    const answer = await live.ask(`/${60_000_000}`)
    await live.between.until(() => live.between.links.some(({ up }) => up > 100_000), 'bulk on a link')
    for (const link of live.between.links) link.cut()
    expect(
      await answer.bytes().then(
        () => 'whole',
        () => 'cut',
      ),
    ).toBe('cut')
    expect(await (await live.ask('/')).text()).toBe('small')
    expect(sha256(await (await live.ask(`/${SIZE}`)).bytes())).toBe(sha256(bytes(SIZE)))
    expect(live.between.carriers.length).toBe(1)
  })

  test('that are cut under an upload fail it, and never send it twice', async () => {
    await using live = await startLinked()
    const upload = live.ask('/', { method: 'POST', body: bytes(40_000_000) }).then(
      answer => answer.status,
      () => 'cut',
    )
    await live.between.until(() => live.between.links.some(({ down }) => down > 200_000), 'bulk on a link')
    for (const link of live.between.links) link.cut()
    expect(['cut', 502]).toContain(await upload)
    expect(live.origin.seen.posts).toBeLessThanOrEqual(1)
    expect(await (await live.ask('/')).text()).toBe('small')
  })

  test('go with their carrier', async () => {
    await using live = await startLinked()
    await (await live.ask(`/${SIZE}`)).bytes()
    await live.between.until(() => live.between.links.length > 0, 'a link')
    live.between.carriers[0]?.cut()
    await live.between.until(() => live.between.openCount === 0, 'all links to close')
  })

  test('go when the client leaves', async () => {
    await using live = await startLinked()
    await (await live.ask(`/${SIZE}`)).bytes()
    await live.client.disconnect()
    await live.between.until(() => live.between.openCount === 0, 'all links to close')
  })
})

test('links that were idle at two looks in a row are retired, once, and those in use are not', () => {
  const loner = new Loner('client')
  const { links } = loner.session
  const [idle, used] = [1, 2].map(number => new Link(number, new WireEnd(1000), links))
  if (idle === undefined || used === undefined) throw new Error('two links')
  links.add(used)
  links.add(idle)
  loner.hear(frame('OPEN', 1, [7, 4]), frame('LINK', 1, [2, 4], [0, 6]))
  const keeper = new Links(loner.session, undefined)
  const retirements = () => {
    loner.clock.tick()
    return loner.frames
      .filter(({ type }) => type === 'CONTROL')
      .map(({ payload }) => String.fromCharCode(...payload))
  }
  keeper.sweep()
  expect(retirements()).toEqual([])
  keeper.sweep()
  keeper.sweep()
  expect(retirements()).toEqual(['{"type":"link-retired","link":1}'])
  expect([idle.isFree, idle.isClosed, used.isFree]).toEqual([false, false, true])
})

/** An end in memory that can be a trunk. */
class TrunkEnd extends WireEnd {}

const TRUNK: Trunk = { nextLane: () => 0, enter: () => undefined, refuse() {} }

const ACCELERATOR: Accelerator = {
  isPossible: true,
  splice: () => undefined,
  ready: () => Promise.resolve(true),
  openTrunk: (socket: Socket) => (socket instanceof TrunkEnd ? TRUNK : undefined),
  watchFaults: () => () => {},
}

/** What was planned for the end of this turn of the event loop has happened. */
const turn = () => new Promise(resolve => setImmediate(resolve))

const LINK_ANSWER = Buffer.from(
  'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: localtunnels.link.1\r\n\r\n',
)
const NO_ANSWER = Buffer.from('HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n')

/** A client whose links end in memory, where the test answers. */
class Dialler {
  readonly loner: Loner = new Loner('client')
  readonly ends: WireEnd[] = []
  readonly keeper: Links
  readonly trunk: ClientTrunk
  /** How often it was asked to start what carries lanes. */
  readyAsked = 0
  hasAccelerator = true
  /** Whether the sockets dialled from now on can be trunks. */
  knowsLanes = false

  constructor(address: Address = { port: 1 }) {
    const dial: Dial = (_, handler) => {
      const end = this.knowsLanes ? new TrunkEnd(1000) : new WireEnd(1000)
      end.handler = handler
      this.ends.push(end)
      return Promise.resolve(end)
    }
    const server = { address, host: 'localhost', path: '', isSecure: address.tls !== undefined }
    const accelerator = () => {
      this.readyAsked++
      return Promise.resolve(this.hasAccelerator ? ACCELERATOR : undefined)
    }
    this.keeper = new Links(this.loner.session, { server, dial, maxLinks: 8 })
    this.trunk = new ClientTrunk(this.loner.session, this.keeper, accelerator)
    this.keeper.allow('secret')
  }

  /** The server answers the last dial. */
  async answer(head = LINK_ANSWER): Promise<void> {
    await turn()
    this.ends.at(-1)?.handler?.received(head)
    await turn()
  }

  get messages(): string[] {
    this.loner.clock.tick()
    return this.loner.frames
      .filter(({ type }) => type === 'CONTROL')
      .map(({ payload }) => String.fromCharCode(...payload))
  }
}

describe('a trunk', () => {
  afterEach(() => mock.restore())
  const clockAt = (ms: number) => spyOn(eventLoop, 'now').mockReturnValue(ms)

  test('is dialled and announced as one, and never retired', async () => {
    const client = new Dialler()
    client.knowsLanes = true
    client.trunk.wanted()
    await client.answer()
    expect(client.messages).toEqual(['{"type":"linked","link":1,"trunk":true}'])
    const link = client.loner.session.links.get(1)
    expect([client.trunk.on(1), client.trunk.on(2), link?.isClosed]).toEqual([TRUNK, undefined, false])
    client.keeper.sweep()
    client.keeper.sweep()
    expect([client.messages.length, link?.isRetired]).toEqual([1, false])
    client.keeper.close()
  })

  test('is not dialled over TLS, where links are', async () => {
    const client = new Dialler({ port: 1, tls: {} })
    client.trunk.wanted()
    await turn()
    expect([client.ends.length, client.readyAsked]).toEqual([0, 0])
    expect(client.messages).toEqual(['{"type":"no-trunk"}'])
    client.keeper.want()
    expect(client.ends.length).toBe(1)
    client.keeper.close()
  })

  test('is dialled one at a time, beside links', async () => {
    const client = new Dialler()
    client.knowsLanes = true
    for (let wishes = 0; wishes < 5; wishes++) client.trunk.wanted()
    await turn()
    expect(client.ends.length).toBe(1)
    await client.answer()
    client.keeper.want()
    await client.answer()
    expect(client.messages).toEqual(['{"type":"linked","link":1,"trunk":true}', '{"type":"linked","link":2}'])
    client.ends[0]?.handler?.closed(new Error('reset'))
    client.trunk.wanted()
    await turn()
    expect(client.ends.length).toBe(3)
    client.keeper.close()
  })

  test('that the server refuses is not asked for again for a minute', async () => {
    clockAt(1_000)
    const client = new Dialler()
    client.trunk.wanted()
    await client.answer(NO_ANSWER)
    clockAt(60_999)
    client.trunk.wanted()
    await turn()
    expect([client.ends.length, client.ends[0]?.isOpen]).toEqual([1, false])
    clockAt(61_000)
    client.trunk.wanted()
    await turn()
    expect(client.ends.length).toBe(2)
    client.keeper.close()
  })

  test('is tried after ever longer pauses where sockets know no lanes, until they do', async () => {
    const client = new Dialler()
    let now = 1_000
    const dials = async (ms: number) => {
      now += ms
      clockAt(now)
      const before = client.ends.length
      client.trunk.wanted()
      await turn()
      return client.ends.length - before
    }
    const failsAt = async (ms: number) => {
      expect(await dials(ms)).toBe(1)
      await client.answer()
      expect([client.ends.at(-1)?.isOpen, client.loner.session.links.size]).toEqual([false, 0])
    }
    await failsAt(0)
    for (const pauseMs of [50, 100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 51_200, 60_000]) {
      expect(await dials(pauseMs - 1)).toBe(0)
      await failsAt(1)
    }
    client.knowsLanes = true
    expect(await dials(60_000)).toBe(1)
    await client.answer()
    expect(client.messages.at(-1)).toBe('{"type":"linked","link":14,"trunk":true}')
    // It is as if there had been no failure.
    client.ends.at(-1)?.handler?.closed(new Error('reset'))
    client.knowsLanes = false
    await failsAt(0)
    expect(await dials(49)).toBe(0)
    await failsAt(1)
    client.keeper.close()
  })

  test('that comes up when its session is over is closed', async () => {
    const client = new Dialler()
    client.knowsLanes = true
    client.trunk.wanted()
    await turn()
    client.loner.session.close('CANCELLED')
    await client.answer()
    expect([client.ends[0]?.isOpen, client.loner.session.links.size]).toEqual([false, 0])
    client.trunk.wanted()
    await turn()
    expect(client.ends.length).toBe(1)
  })
})

describe('the gate of links', () => {
  test('lets nobody in without a secret, with a number in use, or beyond `maxLinks`', async () => {
    await using live = await startLinked()
    await (await live.ask(`/${SIZE}`)).bytes()
    await live.between.until(() => live.between.links.length > 0, 'a link')
    const { secret = '', number = 0 } = live.between.links[0] ?? {}
    const statusOf = async (request: string) => {
      const raw = await rawDial(live.server.port)
      raw.socket.write(Buffer.from(request))
      return Number((await raw.until('\r\n\r\n')).slice(9, 12))
    }
    expect(await statusOf(LINK_REQUEST('wrong', 900))).toBe(401)
    expect(await statusOf(LINK_REQUEST('', 900))).toBe(401)
    expect(await statusOf(LINK_REQUEST(secret, number))).toBe(503)
    expect(await statusOf(LINK_REQUEST(secret, 4_294_967_296))).toBe(503)
    expect(await statusOf(LINK_REQUEST(secret, 900))).toBe(101)
    expect(await statusOf(LINK_REQUEST(secret, 900))).toBe(503)
    const flood = await Promise.all(
      Array.from({ length: 80 }, (_, index) => statusOf(LINK_REQUEST(secret, 1000 + index))),
    )
    expect(flood.filter(status => status === 101).length).toBe(31 - live.between.links.length)
    expect(flood.filter(status => status === 503).length).toBe(80 - 31 + live.between.links.length)
    // Strangers with the secret harm nobody: their links were never announced.
    expect(sha256(await (await live.ask(`/${SIZE}`)).bytes())).toBe(sha256(bytes(SIZE)))
  })

  test('closes a link that its client does not announce in time, and takes its number again', () => {
    const armed: { deadline: Deadline; ms: number }[] = []
    class Watched extends Deadlines {
      override arm(deadline: Deadline, ms: number): void {
        armed.push({ deadline, ms })
        super.arm(deadline, ms)
      }
    }
    const { session } = new Loner('server')
    const registry = new LinkRegistry()
    const links = registry.open(session, new Watched(() => {}), 64)
    expect(registry.find(links.secret)).toBe(links)
    const end = new WireEnd(1000)
    end.handler = links.accept(7, end)
    end.handler.received(new Uint8Array(10))
    expect(end.isPaused).toBe(true)
    expect(links.hasRoomFor(7)).toBe(false)
    expect(armed.map(({ ms }) => ms)).toEqual([10_000])
    armed[0]?.deadline.expired()
    expect(end.isOpen).toBe(false)
    end.handler.closed(new Error('reset'))
    expect(links.hasRoomFor(7)).toBe(true)
    links.linked(7)
    expect(session.links.size).toBe(0)
    links.close()
    expect(registry.find(links.secret)).toBeUndefined()
  })

  test('knows only links of the session whose secret was shown', () => {
    const [ours, theirs] = [new Loner('server'), new Loner('server')]
    const registry = new LinkRegistry()
    const deadlines = new Deadlines(() => {})
    const mine = registry.open(ours.session, deadlines, 64)
    const other = registry.open(theirs.session, deadlines, 64)
    const end = new WireEnd(1000)
    end.handler = mine.accept(1, end)
    other.linked(1)
    expect(theirs.session.links.size).toBe(0)
    mine.linked(1)
    expect([ours.session.links.size, theirs.session.links.size]).toEqual([1, 0])
  })

  test('takes a trunk of a client whose end here can be one, and closes any other', () => {
    const { session } = new Loner('server')
    const links = new LinkRegistry().open(session, new Deadlines(() => {}), 64)
    const trunk = new SessionTrunk(session, ACCELERATOR)
    const announced = (number: number, end: WireEnd) => {
      end.handler = links.accept(number, end)
      links.linked(number, link => trunk.take(link))
      return end.isOpen
    }
    expect(announced(1, new WireEnd(1000))).toBe(false)
    expect([session.links.size, trunk.current, links.hasRoomFor(1)]).toEqual([0, undefined, true])
    expect(announced(2, new TrunkEnd(1000))).toBe(true)
    expect([session.links.size, trunk.current?.link.number]).toEqual([1, 2])
    // A session has one.
    expect(announced(3, new TrunkEnd(1000))).toBe(false)
    expect([session.links.size, trunk.current?.link.number]).toEqual([1, 2])
    // A client that would have its trunk back finds that it is in use.
    links.retired(2)
    expect(trunk.current?.link.isClosed).toBe(false)
  })
})
