// What clients may hold of a server: counted for each token, for each address where there are no tokens, and in total.

import { heapStats } from 'bun:jsc'
import { describe, expect, test } from 'bun:test'
import type { TunnelClientOptions } from '../../src/client/options.ts'
import { TunnelError } from '../../src/errors.ts'
import { TunnelClient, type TunnelServer } from '../../src/index.ts'
import { Deadlines } from '../../src/server/limits/deadlines.ts'
import { Quotas } from '../../src/server/limits/quotas.ts'
import { ANYTHING } from '../../src/server/settings/policy.ts'
import { PortRanges } from '../../src/server/settings/ports.ts'
import { serverSettings } from '../../src/server/settings/settings.ts'
import { claim } from '../../src/server/tunnels/claims.ts'
import { FreePorts } from '../../src/server/tunnels/free-ports.ts'
import { Tunnels } from '../../src/server/tunnels/tunnels.ts'
import { adminOptions, metricsOf, sampleOf } from '../support/admin.ts'
import { ask } from '../support/ask.ts'
import { codeOf, eventually, next } from '../support/events.ts'
import { statusOf } from '../support/exchange.ts'
import { NaiveJsonClient } from '../support/json-client.ts'
import { type RawConnection, rawDial } from '../support/raw.ts'
import { ServerProcess } from '../support/server-process.ts'
import { control, SpeakingClient } from '../support/speaker.ts'
import { startServer } from '../support/tunnel.ts'
import { workedMs } from '../support/within.ts'

const here = () => new Response('here')

const clientOf = (server: TunnelServer, options: TunnelClientOptions = {}) =>
  new TunnelClient({ server: `http://127.0.0.1:${server.port}`, wire: 'streams', ...options })

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

const http = (ref: number, name: string) => control({ type: 'register', ref, kind: 'http', name })
const tcp = (ref: number, port?: number) =>
  control({ type: 'register', ref, kind: 'tcp', ...(port !== undefined && { port }) })

const codes = (verdicts: readonly Record<string, unknown>[]) => verdicts.map(({ type, code }) => code ?? type)

describe('tunnels of a token', () => {
  test('are counted over all its connections', async () => {
    await using server = await startServer({ tokens: [{ token: 't', maxTunnels: 1 }, 'other'] })
    const outcomes: unknown[] = []
    const clients: SpeakingClient[] = []
    for (let index = 0; index < 20; index++) {
      const client = await SpeakingClient.connect(server.port, bearer('t'))
      clients.push(client)
      client.say(http(1, `app-${index}`))
      outcomes.push(...codes(await client.verdicts(1)))
    }
    expect(outcomes).toEqual(['granted', ...Array.from({ length: 19 }, () => 'CLIENT_LIMIT')])
    expect(server.getStats(true).subdomains).toEqual(['app-0'])
    // Another token has its own count.
    await using other = clientOf(server, { token: 'other', subdomain: 'other', fetch: here })
    await other.connect()
    for (const client of clients) client.close()
  })

  test('are counted on both wires together, and the refusal says which bound it is', async () => {
    await using server = await startServer({ tokens: [{ token: 't', maxTunnels: 2 }] })
    using json = new NaiveJsonClient(server.port, undefined, undefined, 't')
    expect((await json.register('one')).type).toBe('registered')
    const streams = await SpeakingClient.connect(server.port, bearer('t'))
    streams.say(http(1, 'two'), http(2, 'three'))
    const [, refused] = await streams.verdicts(2)
    expect(refused).toMatchObject({ code: 'CLIENT_LIMIT' })
    expect(refused?.message).toContain('This token holds 2 tunnels')
    expect((await json.register('three')).message).toContain('This token holds 2 tunnels')
    streams.close()
  })

  test('whose connection is lost count until their leases end', async () => {
    await using server = await startServer({
      tokens: [{ token: 't', maxTunnels: 2 }],
      limits: { leaseMs: 60_000 },
    })
    for (const name of ['one', 'two']) {
      const client = await SpeakingClient.connect(server.port, bearer('t'))
      client.say(http(1, name))
      expect(codes(await client.verdicts(1))).toEqual(['granted'])
      client.close()
      await eventually(() => server.getStats().connections === 0, 'the connection to be forgotten')
    }
    const third = await SpeakingClient.connect(server.port, bearer('t'))
    third.say(http(1, 'three'))
    expect(codes(await third.verdicts(1))).toEqual(['CLIENT_LIMIT'])
    expect(server.getStats(true).subdomains).toEqual(['one', 'two'])
    third.close()
  })

  test('that come back with their secret are not counted twice, and those given back not at all', async () => {
    await using server = await startServer({ tokens: [{ token: 't', maxTunnels: 1 }] })
    const first = await SpeakingClient.connect(server.port, bearer('t'))
    first.say(http(1, 'app'))
    const { resume } = await first.control('granted')
    const second = await SpeakingClient.connect(server.port, bearer('t'))
    second.say(control({ type: 'register', ref: 1, kind: 'http', name: 'app', resume }))
    const [granted] = await second.verdicts(1)
    expect(granted).toMatchObject({ type: 'granted', name: 'app' })
    await first.closed
    second.say(control({ type: 'release', tunnel: granted?.tunnel }), http(2, 'other'))
    expect(codes(await second.verdicts(2))).toEqual(['granted', 'granted'])
    second.close()
  })

  test('keep their count through a reload, which changes the bound', async () => {
    const tokens = (maxTunnels: number) => [{ token: 't', maxTunnels }]
    await using server = await startServer({ tokens: tokens(2) })
    const client = await SpeakingClient.connect(server.port, bearer('t'))
    client.say(http(1, 'one'), http(2, 'two'))
    await client.verdicts(2)
    await server.reload({ tokens: tokens(1) })
    client.say(http(3, 'three'), control({ type: 'release', tunnel: 1 }), http(4, 'four'))
    await server.reload({ tokens: tokens(1) })
    expect(codes(await client.verdicts(4)).slice(2)).toEqual(['CLIENT_LIMIT', 'CLIENT_LIMIT'])
    await server.reload({ tokens: tokens(3) })
    client.say(http(5, 'five'), http(6, 'six'), http(7, 'seven'))
    expect(codes(await client.verdicts(7)).slice(4)).toEqual(['granted', 'granted', 'CLIENT_LIMIT'])
    client.close()
  })

  test('given back by a client that registered it twice, by two tokens, are not given back again by a reload', async () => {
    const tokens = ['t', { token: 'one', maxTunnels: 1 }]
    await using server = await startServer({ tokens })
    const client = await SpeakingClient.connect(server.port, bearer('t'))
    client.say(http(1, 'app'))
    const { resume } = await client.control('granted')
    const own = { kind: 'http', token: 'one' }
    client.say(control({ type: 'register', ref: 2, name: 'app', resume, ...own }))
    const [, second] = await client.verdicts(2)
    client.say(control({ type: 'release', tunnel: second?.tunnel }))
    await client.control('released')
    await server.reload({ tokens })
    for (const [index, name] of ['b', 'c'].entries())
      client.say(control({ type: 'register', ref: 3 + index, name, ...own }))
    expect(codes((await client.verdicts(4)).slice(2))).toEqual(['granted', 'CLIENT_LIMIT'])
    client.close()
  })

  test('of an address that shows made-up tokens to a server without any are counted together', async () => {
    await using server = await startServer({ limits: { maxTokenTunnels: 3 } })
    const outcomes: unknown[] = []
    for (let index = 0; index < 5; index++) {
      const client = await SpeakingClient.connect(server.port, bearer(`made-up-${index}`))
      client.say(http(1, `app-${index}`))
      outcomes.push(...codes(await client.verdicts(1)))
    }
    expect(outcomes).toEqual(['granted', 'granted', 'granted', 'CLIENT_LIMIT', 'CLIENT_LIMIT'])
  })

  test('do not keep the messages that asked for them', async () => {
    await using server = await startServer()
    const heldBytes = () => {
      Bun.gc(true)
      const { heapSize, extraMemorySize } = heapStats()
      return heapSize + extraMemorySize
    }
    const labels = [40, 60, 60, 60].map(length => 'x'.repeat(length)).join('.')
    const clients = await Promise.all(Array.from({ length: 4 }, () => SpeakingClient.connect(server.port)))
    const before = heldBytes()
    for (const [first, client] of clients.entries()) {
      for (let ref = 0; ref < 30; ref++) {
        const hosts = Array.from({ length: 100 }, (_, host) => `${first}-${ref}-${host}.${labels}`)
        const name = `app-${first}-${ref}`
        client.say(control({ type: 'register', ref, kind: 'http', name, wildcard: true, hosts }))
      }
      expect(new Set(codes(await client.verdicts(30)))).toEqual(new Set(['granted']))
    }
    // 120 messages of 24 KB; with all that they were parsed into some 8 MB; 4 MB without.
    expect(heldBytes() - before).toBeLessThan(6_000_000)
    for (const client of clients) client.close()
  })

  test('names taken and dropped again and again stay within the bound of the server', async () => {
    await using server = await startServer({ limits: { maxAllTunnels: 100, leaseMs: 60_000 } })
    let refused = 0
    for (let round = 0; round < 20; round++) {
      const client = await SpeakingClient.connect(server.port)
      client.say(...Array.from({ length: 10 }, (_, index) => http(index, `n-${round}-${index}`)))
      const verdicts = await client.verdicts(10)
      refused += verdicts.filter(({ code }) => code === 'CLIENT_LIMIT').length
      client.close()
    }
    expect(refused).toBe(100)
    expect(server.getStats().activeSubdomains).toBe(100)
  })
})

describe('ports', () => {
  test('of a token are counted besides its tunnels', async () => {
    await using server = await startServer({
      tokens: [{ token: 't', maxPorts: 2 }],
      tcpPorts: '20000-20999',
      udpPorts: '20000-20999',
    })
    const client = await SpeakingClient.connect(server.port, bearer('t'))
    client.say(tcp(1), control({ type: 'register', ref: 2, kind: 'udp' }), tcp(3), http(4, 'app'))
    const verdicts = await client.verdicts(4)
    const byRef = verdicts.toSorted((one, other) => Number(one.ref) - Number(other.ref))
    expect(codes(byRef)).toEqual(['granted', 'granted', 'CLIENT_LIMIT', 'granted'])
    expect(byRef[2]?.message).toContain('This token holds 2 ports')
    client.close()
  })

  test('of an address, where there are no tokens', async () => {
    await using server = await startServer({ limits: { maxTokenPorts: 3 } })
    const first = await SpeakingClient.connect(server.port)
    first.say(tcp(1), tcp(2))
    await first.verdicts(2)
    const second = await SpeakingClient.connect(server.port)
    second.say(tcp(1), tcp(2))
    const verdicts = await second.verdicts(2)
    expect(new Set(codes(verdicts))).toEqual(new Set(['CLIENT_LIMIT', 'granted']))
    expect(verdicts.find(({ type }) => type === 'refused')?.message).toContain('This address holds 3 ports')
    first.close()
    second.close()
  })

  test('1,000 registrations for any port, all being taken, are refused without trying each', async () => {
    const deadlines = new Deadlines(error => {
      throw error
    })
    const settings = serverSettings({}, { maxAllTunnels: 20_000, maxTokenPorts: 20_000 })
    const tunnels = new Tunnels(() => settings.limits, deadlines)
    const holder = new Quotas(() => settings.limits).of(ANYTHING, '127.0.0.1')
    for (let port = 20_000; port < 30_000; port++) {
      expect(typeof tunnels.claimPort('tcp', port, { holder })).toBe('object')
    }
    const open = () => {
      throw new Error('no port is free')
    }
    const host = { tunnels, terms: settings, open: { tcp: open, udp: open } }
    const startedAt = workedMs()
    for (let ref = 0; ref < 1_000; ref++) {
      expect(await claim({ type: 'register', ref, kind: 'tcp' }, { rule: ANYTHING, holder }, host)).toBe(
        'CLIENT_LIMIT',
      )
    }
    // 7.3 s when each of the 10,000 was tried; some 10 ms now.
    expect(workedMs() - startedAt).toBeLessThan(1_500)
  })

  test('a holder that has nothing between two tries is not forgotten: what it gets next would be counted apart', async () => {
    const settings = serverSettings({})
    const tunnels = new Tunnels(() => settings.limits, new Deadlines(() => {}))
    const quotas = new Quotas(() => settings.limits)
    const holder = quotas.of(ANYTHING, '192.0.2.1')
    const areKnown: boolean[] = []
    const open = async (): Promise<never> => {
      areKnown.push(quotas.of(ANYTHING, '192.0.2.1') === holder)
      throw new TunnelError('PORT_TAKEN')
    }
    const host = { tunnels, terms: settings, open: { tcp: open, udp: open } }
    const claiming = claim({ type: 'register', ref: 1, kind: 'tcp' }, { rule: ANYTHING, holder }, host)
    let isOver = false
    const others = (async () => {
      for (let index = 0; !isOver; index++) {
        for (let other = 0; other < 1_100; other++)
          quotas.of(ANYTHING, `198.51.${index % 200}.${other % 250}-${other}`)
        await Promise.resolve()
      }
    })()
    await claiming
    isOver = true
    await others
    expect(areKnown).toEqual(Array(16).fill(true))
    // It has nothing, and nothing is under way for it.
    expect(quotas.of(ANYTHING, '192.0.2.1')).not.toBe(holder)
  })

  test('a free one is found wherever it is, within what the server and the token have', () => {
    const ports = new FreePorts()
    const server = new PortRanges('1-10,20000-20099,65535', 'tcpPorts')
    const token = new PortRanges('5-6,20050-20060,65535', 'tokens.tcpPorts')
    const expected = [5, 6, ...Array.from({ length: 11 }, (_, index) => 20_050 + index), 65_535]
    const found: number[] = []
    for (let round = 0; ; round++) {
      const port = ports.find(server, token, (round * 0.37) % 1)
      if (port === undefined) break
      ports.take(port)
      found.push(port)
    }
    expect(found.toSorted((one, other) => one - other)).toEqual(expected)
    ports.free(20_055)
    expect(ports.find(server, token, 0.99)).toBe(20_055)
    expect(ports.find(server, new PortRanges('11-19', 'x'), 0)).toBeUndefined()
  })

  test('one that the system refuses is left alone for a while, then tried again', () => {
    const ports = new FreePorts()
    const server = new PortRanges('7-8', 'tcpPorts')
    ports.avoid(7, 1_000)
    expect(ports.find(server, undefined, 0, 2_000)).toBe(8)
    ports.take(8)
    expect(ports.find(server, undefined, 0, 2_000)).toBeUndefined()
    expect(ports.find(server, undefined, 0, 61_001)).toBe(7)
  })

  test('of all ports there are: the first that comes is not always the first', () => {
    const ports = new FreePorts()
    const server = new PortRanges('20000-29999', 'tcpPorts')
    const starts = [0, 0.25, 0.5, 0.75].map(fraction => ports.find(server, undefined, fraction))
    expect(starts).toEqual([20_000, 22_500, 25_000, 27_500])
  })
})

describe('connections', () => {
  test('of a token above its bound are refused at the upgrade; one that left makes room', async () => {
    await using server = await startServer({ tokens: [{ token: 't', maxClients: 2 }, 'other'] })
    const [one, two, three] = Array.from({ length: 3 }, (_, index) =>
      clientOf(server, { token: 't', subdomain: `app-${index}`, fetch: here }),
    )
    await one!.connect()
    await two!.connect()
    expect(await codeOf(three!.connect())).toBe('CLIENT_LIMIT')
    await using other = clientOf(server, { token: 'other', subdomain: 'other', fetch: here })
    await other.connect()
    await one!.disconnect()
    await eventually(() => server.getStats().connections === 2, 'the connection to be forgotten')
    expect(await codeOf(three!.connect())).toBe('resolved')
    await Promise.all([two!.disconnect(), three!.disconnect()])
  })

  test('of an address, where there are no tokens', async () => {
    await using server = await startServer({ limits: { maxTokenClients: 1 } })
    await using one = clientOf(server, { subdomain: 'one', fetch: here })
    await one.connect()
    await using two = clientOf(server, { subdomain: 'two', fetch: here })
    expect(await codeOf(two.connect())).toBe('CLIENT_LIMIT')
  })
})

describe('links', () => {
  /** A connection that asks to be the link `number` of the session with this secret. */
  async function link(server: TunnelServer, secret: unknown, number: number) {
    const raw = await rawDial(server.port)
    await raw.send(
      'GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: localtunnels.link.1\r\n' +
        `Authorization: Link ${String(secret)} ${number}\r\n\r\n`,
    )
    const status = statusOf(await raw.until('\r\n\r\n'))
    if (status !== 101) raw.socket.terminate()
    return { raw, status }
  }

  /** A client with this token that holds a tunnel, and the secret for its links. */
  async function session(server: TunnelServer, name: string, token: string) {
    const client = await SpeakingClient.connect(server.port, bearer(token))
    client.say(http(1, name))
    const { linkSecret } = await client.control('granted')
    return { client, secret: linkSecret }
  }

  test('of a token above its bound are refused, over all its clients; one that closes makes room', async () => {
    await using server = await startServer({ tokens: ['t', 'other'], limits: { maxTokenLinks: 3 } })
    const one = await session(server, 'one', 't')
    const two = await session(server, 'two', 't')
    const other = await session(server, 'other', 'other')
    const links = [
      await link(server, one.secret, 1),
      await link(server, one.secret, 2),
      await link(server, two.secret, 1),
    ]
    expect(links.map(({ status }) => status)).toEqual([101, 101, 101])
    expect((await link(server, two.secret, 2)).status).toBe(503)
    expect((await link(server, one.secret, 3)).status).toBe(503)
    expect((await link(server, other.secret, 1)).status).toBe(101)
    // Taken into use, and given up by the client.
    one.client.say(control({ type: 'linked', link: 1 }), control({ type: 'link-retired', link: 1 }))
    await links[0]!.raw.closed()
    expect((await link(server, two.secret, 2)).status).toBe(101)
    expect((await link(server, two.secret, 3)).status).toBe(503)
    // A client that leaves gives back all of its own.
    one.client.close()
    await eventually(() => server.getStats().connections === 2, 'the connection to be forgotten')
    expect((await link(server, two.secret, 3)).status).toBe(101)
    for (const { client } of [two, other]) client.close()
  })

  test('of all clients above the bound of the server are refused', async () => {
    await using server = await startServer({ tokens: ['t', 'other'], limits: { maxAllLinks: 2 } })
    const one = await session(server, 'one', 't')
    const other = await session(server, 'other', 'other')
    const statuses = [
      await link(server, one.secret, 1),
      await link(server, other.secret, 1),
      await link(server, other.secret, 2),
    ].map(({ status }) => status)
    expect(statuses).toEqual([101, 101, 503])
    for (const { client } of [one, other]) client.close()
  })

  test('keep their count through a reload that moves their client to another holder', async () => {
    await using server = await startServer({ limits: { maxTokenLinks: 2 } })
    const { client, secret } = await session(server, 'app', 't')
    const first = await link(server, secret, 1)
    // From the address to the token, which now counts.
    await server.reload({ tokens: ['t'] })
    expect((await link(server, secret, 2)).status).toBe(101)
    expect((await link(server, secret, 3)).status).toBe(503)
    first.raw.socket.terminate()
    while ((await link(server, secret, 4)).status !== 101);
    expect((await link(server, secret, 5)).status).toBe(503)
    client.close()
  })
})

describe('streams', () => {
  for (const wire of ['streams', 'json'] as const) {
    test(`${wire}: of a token above its bound are TUNNEL_BUSY, over all its clients; another token has its own`, async () => {
      await using server = await startServer({ tokens: ['t', 'other'], limits: { maxTokenStreams: 3 } })
      const waiting: (() => void)[] = []
      const slow = () => new Promise<Response>(resolve => waiting.push(() => resolve(here())))
      await using one = clientOf(server, { wire, token: 't', subdomain: 'one', fetch: slow })
      await using two = clientOf(server, { wire, token: 't', subdomain: 'two', fetch: slow })
      await using other = clientOf(server, { wire, token: 'other', subdomain: 'other', fetch: here })
      await Promise.all([one.connect(), two.connect(), other.connect()])
      const first = ['one', 'one', 'two'].map(name => ask(server.port, `${name}.localhost`))
      await eventually(() => waiting.length === 3, 'three requests at the apps')
      expect(await ask(server.port, 'two.localhost')).toMatchObject({ status: 503 })
      expect(await ask(server.port, 'other.localhost')).toMatchObject({ status: 200 })
      for (const answer of waiting.splice(0)) answer()
      expect((await Promise.all(first)).map(({ status }) => status)).toEqual([200, 200, 200])
      const again = ask(server.port, 'one.localhost')
      await eventually(() => waiting.length === 1, 'one more request')
      waiting[0]?.()
      expect(await again).toMatchObject({ status: 200 })
    })
  }

  test('that wait for their next request give way to those of other tunnels', async () => {
    await using server = await startServer({ limits: { maxClientStreams: 2 } })
    await using client = clientOf(server, { subdomain: 'name0', fetch: here })
    await client.connect()
    for (let index = 1; index < 6; index++) await client.http({ subdomain: `name${index}`, fetch: here })
    for (let round = 0; round < 2; round++)
      for (let index = 0; index < 6; index++)
        expect((await ask(server.port, `name${index}.localhost`)).status).toBe(200)
  })

  test('of all clients above the bound of the server', async () => {
    await using server = await startServer({ limits: { maxAllStreams: 1 } })
    const waiting: (() => void)[] = []
    const slow = () => new Promise<Response>(resolve => waiting.push(() => resolve(here())))
    await using client = clientOf(server, { subdomain: 'app', fetch: slow })
    await client.connect()
    const first = ask(server.port, 'app.localhost')
    await eventually(() => waiting.length === 1, 'a request at the app')
    expect((await ask(server.port, 'app.localhost')).status).toBe(503)
    waiting[0]?.()
    expect((await first).status).toBe(200)
  })
})

describe('bytes for slow readers', () => {
  const MEGABYTE = new Uint8Array(1_048_576)
  const endless = () =>
    new Response(
      new ReadableStream({
        pull(controller) {
          controller.enqueue(MEGABYTE)
        },
      }),
    )

  /** A visitor that asks and reads nothing. */
  async function reader(server: TunnelServer, name: string): Promise<RawConnection> {
    const visitor = await rawDial(server.port)
    visitor.socket.pause()
    await visitor.send(`GET / HTTP/1.1\r\nHost: ${name}.localhost\r\n\r\n`)
    return visitor
  }

  /** A client of the JSON wire that holds `app`, byte by byte. */
  async function jsonClient(
    server: { readonly port: number },
    name = 'app',
    token = 'none',
  ): Promise<RawConnection> {
    const raw = await rawDial(server.port)
    await raw.send(
      `GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n` +
        'Connection: Upgrade\r\nUpgrade: websocket\r\n' +
        'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
    )
    const ready = JSON.stringify({ type: 'ready', subdomain: name })
    // Masked with zeros.
    await raw.send(Buffer.concat([Buffer.from([0x81, 0x80 | ready.length, 0, 0, 0, 0]), Buffer.from(ready)]))
    await raw.until('"registered"')
    return raw
  }

  /** Sends to each connection, for as long as it is read. */
  function endlessApp() {
    const fill = (socket: { write(bytes: Uint8Array): number }) => {
      while (socket.write(MEGABYTE) === MEGABYTE.length);
    }
    return Bun.listen({
      hostname: '127.0.0.1',
      port: 0,
      socket: { open: fill, drain: fill, data() {} },
    })
  }

  test('of a token above its bound: answers are cut with BUFFERS_FULL, those of another token go on', async () => {
    await using server = await startServer({
      tokens: ['t', 'other'],
      // Without links bulk stays in this process.
      limits: { maxLinks: 0, maxStreamWindowBytes: 0, maxTokenBufferedBytes: 600_000 },
    })
    await using client = clientOf(server, { token: 't', subdomain: 'app', fetch: endless })
    await using other = clientOf(server, { token: 'other', subdomain: 'other', fetch: endless })
    await Promise.all([client.connect(), other.connect()])
    const errors: unknown[] = []
    server.on('request', ({ subdomain, error }) => errors.push([subdomain, error]))
    const patient = await reader(server, 'other')
    const visitors = await Promise.all(Array.from({ length: 6 }, () => reader(server, 'app')))
    // Each may hold 256 KiB: two of them fit, and one more begins.
    await eventually(() => errors.length >= 3, 'three answers to be cut')
    expect(new Set(errors.map(String))).toEqual(new Set(['app,BUFFERS_FULL']))
    expect(patient.isClosed).toBe(false)
    for (const visitor of [...visitors, patient]) visitor.socket.terminate()
    // What they held is given back.
    await eventually(() => errors.length === 7, 'all to be over')
    const last = await reader(server, 'app')
    last.socket.resume()
    await last.until('HTTP/1.1 200')
    last.socket.terminate()
  })

  test('of a raw tunnel likewise', async () => {
    await using server = await startServer({
      limits: { maxLinks: 0, maxStreamWindowBytes: 0, maxAllBufferedBytes: 300_000 },
    })
    using app = endlessApp()
    await using client = clientOf(server)
    const tunnel = await client.tcp({ port: app.port })
    const over: unknown[] = []
    server.on('visitorDisconnected', ({ error }) => over.push(error))
    const visitors: RawConnection[] = []
    for (let index = 0; index < 4; index++) {
      const visitor = await rawDial(tunnel.port ?? 0)
      visitor.socket.pause()
      visitors.push(visitor)
    }
    await eventually(() => over.length >= 2, 'two connections to be cut')
    expect(new Set(over)).toEqual(new Set(['BUFFERS_FULL']))
    for (const visitor of visitors) visitor.socket.terminate()
  })

  test('of raw visitors that leave are not counted any more, whatever end of theirs it is', async () => {
    await using server = await startServer({ admin: adminOptions(), limits: { maxLinks: 0 } })
    using app = endlessApp()
    await using client = clientOf(server)
    const tunnel = await client.tcp({ port: app.port })
    const held = async () => sampleOf(await metricsOf(server), 'localtunnels_buffered_bytes') ?? 0
    for (const leave of ['terminate', 'end'] as const) {
      const visitors: RawConnection[] = []
      for (let index = 0; index < 4; index++) {
        const visitor = await rawDial(tunnel.port ?? 0)
        visitor.socket.pause()
        visitors.push(visitor)
      }
      while ((await held()) === 0) await Bun.sleep(10)
      for (const { socket } of visitors) socket[leave]()
      if (leave === 'end') for (const { socket } of visitors) socket.terminate()
      await eventually(() => server.getStats().rawVisitors === 0, 'the visitors to be gone')
      expect(await held()).toBe(0)
    }
  })

  test('a JSON client that reads nothing: what waits for it counts, and more requests are TUNNEL_BUSY', async () => {
    await using server = await startServer({ limits: { maxTokenBufferedBytes: 6_000_000 } })
    const raw = await jsonClient(server)
    raw.socket.pause()
    const post = () =>
      fetch(`http://127.0.0.1:${server.port}/`, {
        method: 'POST',
        headers: { host: 'app.localhost' },
        body: new Uint8Array(1_000_000),
      }).then(({ status }) => status)
    const statuses: number[] = []
    const posts: Promise<void>[] = []
    // One after the other: what is being collected at a time is less than the bound, and what waits is more.
    while (statuses.length === 0 && posts.length < 40) {
      posts.push(post().then(status => void statuses.push(status)))
      for (let turn = 0; turn < 5; turn++) await ask(server.port, 'localhost', { path: '/health' })
    }
    // On a busy machine more than one has its answer by now.
    expect(new Set(statuses)).toEqual(new Set([503]))
    raw.socket.terminate()
    await Promise.all(posts)
    expect(new Set(statuses)).toEqual(new Set([502, 503]))
    // Nothing is left of it in the count.
    using client = new NaiveJsonClient(server.port)
    await client.register('app')
    expect(await post()).toBe(200)
  })

  test('a JSON message that does not end counts, and ends its client', async () => {
    await using server = await startServer({ limits: { maxTokenBufferedBytes: 200_000 } })
    const raw = await jsonClient(server)
    const gone = next(server, 'disconnection')
    await owe(server, raw, 'app')
    await raw.send(BEGUN_TEXT)
    await raw.send(Buffer.alloc(400_000, 0x20))
    expect(await gone).toEqual({ subdomain: 'app', reason: 'BUFFERS_FULL' })
    await raw.closed()
  })

  test('unfinished JSON messages are counted in total: who sent most is cut, others finish theirs', async () => {
    await using server = await startServer({
      limits: { maxMessageBytes: 400_000, maxUnfinishedMessageBytes: 400_000 },
    })
    const small = await jsonClient(server, 'small')
    const large = await jsonClient(server, 'large')
    const answer = await owe(server, small, 'small')
    await owe(server, large, 'large')
    const gone = next(server, 'disconnection')
    const text = JSON.stringify({
      type: 'response',
      id: 1,
      status: 200,
      headers: {},
      body: 'x'.repeat(150_000),
    })
    await small.send(beginning(text.length))
    await small.send(text.slice(0, 150_000))
    await large.send(beginning(390_000))
    await large.send(Buffer.alloc(380_000, 0x20))
    expect(await gone).toEqual({ subdomain: 'large', reason: 'BUFFERS_FULL' })
    await small.send(text.slice(150_000))
    expect((await answer.response).status).toBe(200)
    small.socket.terminate()
  })

  test('unfinished JSON messages of one token, however many, do not cut the long answer of another', async () => {
    await using server = await startServer({
      tokens: ['many', 'one'],
      limits: { maxMessageBytes: 400_000, maxUnfinishedMessageBytes: 400_000 },
    })
    const long = await jsonClient(server, 'long', 'one')
    const answer = await owe(server, long, 'long')
    // Each of them is too short to be cut.
    const crowd = await Promise.all(
      Array.from({ length: 10 }, (_, index) => jsonClient(server, `app-${index}`, 'many')),
    )
    for (const client of crowd) {
      await client.send(beginning(100_000))
      await client.send(Buffer.alloc(60_000, 0x20))
    }
    const [body, fields] = ['x'.repeat(150_000), { type: 'response', id: 1, status: 200, headers: {} }]
    const text = JSON.stringify({ ...fields, body })
    await long.send(beginning(text.length))
    // What the server took of it is on its way before the rest is.
    for (let at = 0; at < text.length; at += 30_000) {
      await long.send(text.slice(at, at + 30_000))
      await ask(server.port, 'localhost', { path: '/health' })
    }
    expect((await answer.response).status).toBe(200)
    for (const { socket } of [long, ...crowd]) socket.terminate()
  })

  test('a JSON message that finds no room waits, and goes on once there is some', async () => {
    await using server = await startServer({
      limits: { maxMessageBytes: 400_000, maxUnfinishedMessageBytes: 400_000 },
    })
    const text = JSON.stringify({
      type: 'response',
      id: 1,
      status: 200,
      headers: {},
      body: 'x'.repeat(390_000),
    })
    const clients = await Promise.all(['a', 'b', 'c'].map(name => jsonClient(server, name)))
    const answers = await Promise.all(clients.map((client, index) => owe(server, client, 'abc'[index]!)))
    await Promise.all(clients.map(client => client.send(beginning(text.length))))
    // Together they are three times what there is room for.
    for (let at = 0; at < text.length - 1; at += 50_000)
      for (const client of clients) void client.send(text.slice(at, Math.min(at + 50_000, text.length - 1)))
    await ask(server.port, 'localhost', { path: '/health' })
    for (const client of clients) void client.send(text.slice(-1))
    const statuses = await Promise.all(answers.map(async ({ response }) => (await response).status))
    expect(statuses).toEqual([200, 200, 200])
    for (const { socket } of clients) socket.terminate()
  })

  test.skipIf(process.platform !== 'linux')(
    'JSON answers that do not end take the memory of their bound, and of what was read on top of it',
    async () => {
      await using server = await ServerProcess.start({}, 1_024)
      const clients = await Promise.all(Array.from({ length: 128 }, (_, i) => jsonClient(server, `app-${i}`)))
      await Promise.all(clients.map((client, index) => owe(server, client, `app-${index}`)))
      const { now } = await server.memory()
      const piece = Buffer.alloc(1_048_576, 0x20)
      let cut = 0
      for (const client of clients) {
        void client.closed().then(
          () => cut++,
          () => {},
        )
        void client.send(beginning(66_000_000)).then(async () => {
          for (let sent = 0; sent < 60 && !client.isClosed; sent++) await client.send(piece)
        })
      }
      await eventually(() => cut > 100, 'most of them to be cut')
      const { peak } = await server.memory()
      // 128 MiB of messages; a read of 512 KiB at most for each client; and as much that the collector has not seen yet.
      expect(peak - now).toBeLessThan(420)
    },
    60_000,
  )

  test('in total above the bound: the token that holds most is cut, others go on up to an equal share', async () => {
    await using server = await startServer({
      tokens: ['t', 'other'],
      limits: { maxLinks: 0, maxStreamWindowBytes: 0, maxAllBufferedBytes: 1_000_000 },
    })
    await using client = clientOf(server, { token: 't', subdomain: 'app', fetch: endless })
    await using other = clientOf(server, { token: 'other', subdomain: 'other', fetch: endless })
    await Promise.all([client.connect(), other.connect()])
    const errors: unknown[] = []
    server.on('request', ({ subdomain, error }) => errors.push([subdomain, error]))
    const visitors = await Promise.all(Array.from({ length: 8 }, () => reader(server, 'app')))
    await eventually(() => errors.length >= 3, 'three answers to be cut')
    const patient = await reader(server, 'other')
    visitors.push(...(await Promise.all(Array.from({ length: 3 }, () => reader(server, 'app')))))
    await eventually(() => errors.length >= 6, 'more answers to be cut')
    expect(new Set(errors.map(String))).toEqual(new Set(['app,BUFFERS_FULL']))
    expect(patient.isClosed).toBe(false)
    for (const visitor of [...visitors, patient]) visitor.socket.terminate()
  })

  test('a JSON client that owes no answer may not send a long message', async () => {
    await using server = await startServer()
    const raw = await jsonClient(server)
    const gone = next(server, 'disconnection')
    await raw.send(BEGUN_TEXT)
    expect(await gone).toMatchObject({ subdomain: 'app' })
    await raw.when(() => raw.hasEnded, 'the end')
    raw.socket.terminate()
  })
})

/** The header of a text message of a client, with a mask that changes nothing. */
function beginning(bytes: number): Buffer {
  const header = Buffer.alloc(14)
  header[0] = 0x81
  header[1] = 0xff
  header.writeUInt32BE(bytes, 6)
  return header
}

/** A text of 1 MiB, of which no more comes. */
const BEGUN_TEXT = beginning(1_048_576)

/** A visitor asks, and the client has the request. */
async function owe(server: { readonly port: number }, client: RawConnection, name: string) {
  const response = fetch(`http://127.0.0.1:${server.port}/`, { headers: { host: `${name}.localhost` } })
  response.catch(() => {})
  await client.until('"type":"request"')
  return { response }
}

describe('refused registrations', () => {
  test('above the bound of a second are answered without a look', async () => {
    await using server = await startServer({ limits: { maxTokenRefusals: 20 } })
    const client = await SpeakingClient.connect(server.port)
    client.say(...Array.from({ length: 100 }, (_, index) => http(index, 'www')))
    const verdicts = codes(await client.verdicts(100))
    // The clock's second may change once on the way.
    const looked = verdicts.filter(code => code === 'NAME_RESERVED').length
    expect(looked).toBeGreaterThanOrEqual(20)
    expect(looked).toBeLessThanOrEqual(40)
    expect(verdicts.filter(code => code === 'TOO_MANY_REFUSALS').length).toBe(100 - looked)
    client.close()
  })
})

describe('what a refusal says', () => {
  test('a port outside of the ranges: these', async () => {
    await using server = await startServer({
      tcpPorts: '20000-20009,2222',
      tokens: [{ token: 't', tcpPorts: '20005-20009' }, 'all'],
    })
    await using narrow = clientOf(server, { token: 't' })
    await using wide = clientOf(server, { token: 'all' })
    const messageOf = (promise: Promise<unknown>) => promise.catch((error: Error) => error.message)
    expect(await messageOf(narrow.tcp({ port: 1, remotePort: 20_001 }))).toContain('20005-20009')
    expect(await messageOf(wide.tcp({ port: 1, remotePort: 1 }))).toContain('20000-20009,2222')
  })

  test('a reserved name: which', async () => {
    await using server = await startServer({ reservedNames: ['shop'] })
    const client = await SpeakingClient.connect(server.port)
    client.say(http(1, 'shop'), http(2, 'www'))
    const [shop, www] = await client.verdicts(2)
    expect(shop?.message).toContain('"shop"')
    expect(www?.message).toContain('"www"')
    using json = new NaiveJsonClient(server.port)
    expect((await json.register('shop')).message).toContain('"shop"')
    client.close()
  })
})
