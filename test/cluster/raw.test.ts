// TCP, UDP and TLS tunnels in a cluster: a visitor may come to any server, and bytes keep their ends.

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { createServer as createTlsServer, connect as secure, type TLSSocket } from 'node:tls'
import { MemoryDirectory } from '../../src/directories/memory.ts'
import type { TunnelServer } from '../../src/tunnel-server.ts'
import { makeCertificate } from '../support/certificates.ts'
import { TestCluster } from '../support/clusters.ts'
import { DatagramVisitor, datagramApp } from '../support/datagrams.ts'
import { codeOf, eventually } from '../support/events.ts'
import { type RawConnection, RawOrigin, rawDial } from '../support/raw.ts'
import { within } from '../support/within.ts'

/** On one machine, servers of the same ports need addresses of their own. */
const HOSTS = ['127.0.0.1', '127.0.0.2', '127.0.0.3'] as const
const RANGE = '31200-31219'

interface Site {
  readonly cluster: TestCluster
  readonly servers: readonly TunnelServer[]
}

async function site(cluster: TestCluster, count: number, options = {}): Promise<Site> {
  const servers: TunnelServer[] = []
  for (const host of HOSTS.slice(0, count))
    servers.push(await cluster.server({ host, tcpPorts: RANGE, udpPorts: RANGE, ...options }))
  return { cluster, servers }
}

const urlOf = (server: TunnelServer, at: number): string => `http://${HOSTS[at]}:${server.port}`

/** Dials until something listens there: the other servers hear of a port a moment after its client does. */
async function dialled(port: number, host: string): Promise<RawConnection> {
  for (let tries = 0; tries < 500; tries++) {
    const connection = await rawDial(port, host).catch(() => undefined)
    if (connection !== undefined) return connection
    await Bun.sleep(10)
  }
  throw new Error(`nothing listens at ${host}:${port}`)
}

/** Resolves once nothing listens there any more. */
async function closedPort(port: number, host: string): Promise<void> {
  for (let tries = 0; tries < 500; tries++) {
    const connection = await rawDial(port, host).catch(() => undefined)
    if (connection === undefined) return
    connection.socket.terminate()
    await Bun.sleep(10)
  }
  throw new Error(`something listens at ${host}:${port}`)
}

/** A client whose tunnels the test adds. */
const clientOf = (cluster: TestCluster, server: string | readonly string[], subdomain = 'shop') =>
  cluster.client({ server, subdomain, fetch: () => new Response() })

test('a TCP port is reached at every server: bytes both ways, and each side ends on its own', async () => {
  using origin = new RawOrigin()
  await using cluster = new TestCluster()
  const { servers } = await site(cluster, 3)
  const client = await clientOf(cluster, urlOf(servers[0]!, 0))
  const { port = 0 } = await client.tcp({ port: origin.port, host: '127.0.0.1' })
  for (const host of HOSTS) {
    const visitor = await dialled(port, host)
    const app = await origin.accept()
    await app.send('hello')
    await visitor.until('hello')
    await visitor.send('and ')
    await app.until('and ')
    const big = 'x'.repeat(2_000_000)
    void visitor.send(big).then(() => visitor.socket.end())
    await app.when(() => app.hasEnded && app.bytes.length === big.length, 'all of it, and its end')
    await app.send('the answer comes behind it')
    app.socket.end()
    expect(await visitor.end()).toBe('the answer comes behind it')
    expect(await visitor.closed()).toBeUndefined()
  }
  expect(cluster.errors).toEqual([])
})

test('a reset is a reset on the other side, whichever way, and not an end', async () => {
  using origin = new RawOrigin()
  await using cluster = new TestCluster()
  const { servers } = await site(cluster, 2)
  const client = await clientOf(cluster, urlOf(servers[0]!, 0))
  const { port = 0 } = await client.tcp({ port: origin.port, host: '127.0.0.1' })
  const left = await dialled(port, HOSTS[1])
  const app = await origin.accept()
  await left.send('x')
  await app.until('x')
  left.socket.terminate()
  expect(await app.closed()).toBeInstanceOf(Error)
  expect(app.hasEnded).toBeFalse()
  const visitor = await rawDial(port, HOSTS[1])
  const second = await origin.accept()
  await second.send('half an ans')
  await visitor.until('half an ans')
  second.socket.terminate()
  expect(await visitor.closed()).toBeInstanceOf(Error)
  expect(visitor.hasEnded).toBeFalse()
})

test('a visitor of another server who reads nothing stops the app', async () => {
  using origin = new RawOrigin()
  await using cluster = new TestCluster()
  const { servers } = await site(cluster, 2)
  const client = await clientOf(cluster, urlOf(servers[0]!, 0))
  const { port = 0 } = await client.tcp({ port: origin.port, host: '127.0.0.1' })
  const visitor = await dialled(port, HOSTS[1])
  const app = await origin.accept()
  visitor.socket.pause()
  const bytes = new Uint8Array(32_000_000).fill(7)
  let sent = 0
  // What the kernel and the windows on the way hold is far less than all of it.
  for (let quiet = 0; quiet < 20; quiet++) {
    await Bun.sleep(10)
    for (let taken = 1; taken > 0; sent += taken) {
      taken = app.socket.write(bytes, sent)
      if (taken > 0) quiet = 0
    }
    expect(sent).toBeLessThan(bytes.length)
  }
  visitor.socket.resume()
  void app.send(bytes.subarray(sent)).then(() => app.socket.end())
  await visitor.when(() => visitor.hasEnded, 'the rest')
  expect(visitor.bytes.length).toBe(bytes.length)
})

test('the app learns the address of the visitor of another server, and guards see it once', async () => {
  using origin = new RawOrigin()
  const seen: string[] = []
  const guard = {
    name: 'note',
    admit: ({ address }: { readonly address: string }) => {
      seen.push(address)
    },
  }
  await using cluster = new TestCluster()
  const { servers } = await site(cluster, 2, { guards: [guard] })
  const client = await clientOf(cluster, urlOf(servers[0]!, 0))
  const { port = 0 } = await client.tcp({ port: origin.port, host: '127.0.0.1', proxyProtocol: 'v1' })
  const visitor = await dialled(port, HOSTS[1])
  const app = await origin.accept()
  const line = await app.until('\r\n')
  expect(line).toMatch(new RegExp(`^PROXY TCP4 127\\.0\\.0\\.1 127\\.0\\.0\\.2 \\d+ ${port}\r\n$`))
  expect(seen).toEqual(['127.0.0.1'])
  visitor.socket.end()
})

test('a port is held once: another server gives the same one to nobody else', async () => {
  using origin = new RawOrigin()
  await using cluster = new TestCluster()
  const { servers } = await site(cluster, 2)
  const [one, two] = await Promise.all(
    servers.map((server, at) => clientOf(cluster, urlOf(server, at), `name${at}`)),
  )
  const options = { port: origin.port, host: '127.0.0.1' }
  const first = await one!.tcp({ ...options, remotePort: 31_201 })
  expect(await codeOf(two!.tcp({ ...options, remotePort: 31_201 }))).toBe('PORT_TAKEN')
  await first.close()
  const again = await two!.tcp({ ...options, remotePort: 31_201 })
  expect(again.port).toBe(31_201)
  // Twenty ports for both: each is given once.
  const rest = await Promise.all(
    Array.from({ length: 19 }, (_, at) => (at % 2 === 0 ? one! : two!).tcp(options)),
  )
  expect(new Set([again.port, ...rest.map(({ port }) => port)]).size).toBe(20)
  expect(await codeOf(one!.tcp(options))).toBe('CLIENT_LIMIT')
})

test('when the client moves to another server, its port goes along, and visitors wait', async () => {
  using origin = new RawOrigin()
  await using cluster = new TestCluster()
  const { servers } = await site(cluster, 2)
  const client = await clientOf(cluster, servers.map(urlOf))
  const { port = 0 } = await client.tcp({ port: origin.port, host: '127.0.0.1' })
  const before = await dialled(port, HOSTS[1])
  const first = await origin.accept()
  const stopped = servers[0]!.stop()
  await eventually(
    () => servers[1]!.getStats(true).subdomains?.includes(`tcp-${port}`) === true,
    'the port to move',
  )
  const visitor = await rawDial(port, HOSTS[1])
  const app = await origin.accept()
  await app.send('here')
  await visitor.until('here')
  // What is under way goes on until it ends.
  await first.send('still')
  await before.until('still')
  before.socket.end()
  first.socket.end()
  await stopped
})

test('a port is closed at all servers when it is given back, and open at one that starts later', async () => {
  using origin = new RawOrigin()
  await using cluster = new TestCluster()
  const { servers } = await site(cluster, 2)
  const client = await clientOf(cluster, urlOf(servers[0]!, 0))
  const tunnel = await client.tcp({ port: origin.port, host: '127.0.0.1' })
  const { port = 0 } = tunnel
  ;(await dialled(port, HOSTS[1])).socket.terminate()
  await cluster.server({ host: HOSTS[2], tcpPorts: RANGE })
  ;(await rawDial(port, HOSTS[2])).socket.terminate()
  await tunnel.close()
  for (const host of HOSTS) await closedPort(port, host)
})

test('above maxPeerStreams, of which one tunnel has half, a visitor is cut', async () => {
  using origin = new RawOrigin()
  await using cluster = new TestCluster()
  const { servers } = await site(cluster, 2, { limits: { maxPeerStreams: 2 } })
  const client = await clientOf(cluster, urlOf(servers[0]!, 0))
  const { port = 0 } = await client.tcp({ port: origin.port, host: '127.0.0.1' })
  const first = await dialled(port, HOSTS[1])
  const app = await origin.accept()
  const second = await rawDial(port, HOSTS[1])
  expect(await second.closed()).toBeInstanceOf(Error)
  first.socket.end()
  app.socket.end()
  await first.end()
  const next = origin.accept()
  for (let isThere = false; !isThere; ) {
    const visitor = await rawDial(port, HOSTS[1])
    isThere = await Promise.race([visitor.closed().then(() => false), next.then(() => true)])
    visitor.socket.terminate()
  }
})

test('datagrams of a visitor at another server keep their boundaries, and answers come back to it', async () => {
  await using app = await datagramApp()
  await using cluster = new TestCluster()
  const { servers } = await site(cluster, 2)
  const client = await clientOf(cluster, urlOf(servers[0]!, 0))
  const { port = 0 } = await client.udp({ port: app.port })
  for (const host of [HOSTS[1], HOSTS[0]]) {
    await using visitor = await DatagramVisitor.to(port, host)
    expect(Buffer.from(await visitor.ask('first')).toString()).toBe('first')
    const before = visitor.got.length
    const sizes = [0, 1, 2, 255, 1_472, 9_000, 65_507]
    for (const [at, size] of sizes.entries()) {
      await visitor.send(new Uint8Array(size).fill(at))
      await visitor.received(before + at + 1)
    }
    expect(visitor.got.slice(before).map(({ length }) => length)).toEqual(sizes)
  }
  expect(servers[1]!.getStats().flows).toBe(1)
})

test('when the client of a UDP port moves to another server, datagrams of visitors at a third follow it', async () => {
  await using app = await datagramApp()
  await using cluster = new TestCluster()
  const { servers } = await site(cluster, 3)
  const client = await clientOf(cluster, servers.slice(0, 2).map(urlOf))
  const { port = 0 } = await client.udp({ port: app.port })
  await using visitor = await DatagramVisitor.to(port, HOSTS[2])
  expect(Buffer.from(await visitor.ask('before')).toString()).toBe('before')
  const stopped = servers[0]!.stop()
  await eventually(
    () => servers[1]!.getStats(true).subdomains?.includes(`udp-${port}`) === true,
    'the port to move',
  )
  await stopped
  const answered = await within(visitor.ask('after'), 'an answer through the other server')
  expect(Buffer.from(answered).toString()).toBe('after')
  expect(servers[1]!.getStats().flows).toBe(1)
})

test('a guard lets datagrams of a visitor at another server pass, or not', async () => {
  await using app = await datagramApp()
  const seen: string[] = []
  let isOpen = false
  const guard = {
    name: 'door',
    admit: async ({ address }: { readonly address: string }) => {
      seen.push(address)
      return isOpen ? undefined : { code: 'GUARD_REFUSED' as const }
    },
  }
  await using cluster = new TestCluster()
  const { servers } = await site(cluster, 2, { guards: [guard] })
  const client = await clientOf(cluster, urlOf(servers[0]!, 0))
  const { port = 0 } = await client.udp({ port: app.port })
  await using visitor = await DatagramVisitor.to(port, HOSTS[1])
  // One that has passed is not asked again.
  while (seen.length < 5) await visitor.send('no')
  expect(app.seen).toEqual([])
  isOpen = true
  await within(visitor.ask('yes'), 'an answer')
  expect(new Set(seen)).toEqual(new Set(['127.0.0.1']))
})

test('while the directory is asked about a UDP port, the first datagram of a visitor waits, and those behind it are dropped and counted', async () => {
  await using app = await datagramApp()
  let held: Promise<void> | undefined
  let asked = 0
  const memory = new (class extends MemoryDirectory {
    override async find(name: string) {
      asked++
      await held
      return super.find(name)
    }
  })()
  await using cluster = new TestCluster({}, async () => memory)
  const { servers } = await site(cluster, 2)
  const client = await clientOf(cluster, urlOf(servers[0]!, 0))
  const { port = 0 } = await client.udp({ port: app.port })
  // No datagram may ask for the name before.
  const row = `0200007F:${port.toString(16).toUpperCase().padStart(4, '0')}`
  await eventually(() => readFileSync('/proc/net/udp', 'utf8').includes(row), 'the port to be open')
  const { promise, resolve } = Promise.withResolvers<void>()
  held = promise
  await using visitor = await DatagramVisitor.to(port, HOSTS[1])
  const before = asked
  for (const one of ['first', 'second', 'third']) await visitor.send(one)
  await eventually(() => servers[1]!.getStats().droppedDatagrams === 2, 'two datagrams to be dropped')
  expect(asked).toBe(before + 1)
  resolve()
  await within(visitor.received(1), 'the answer to the first')
  await visitor.ask('fourth')
  expect(app.seen.map(({ bytes }) => Buffer.from(bytes).toString()).slice(0, 2)).toEqual(['first', 'fourth'])
})

test('TLS goes to the client of another server unread', async () => {
  const own = await makeCertificate(['shop.localhost'])
  const app = createTlsServer(own, socket => socket.on('error', () => {}).end(`for ${socket.servername}`))
  await new Promise<void>(resolve => app.listen(0, '127.0.0.1', resolve))
  const { port: appPort } = app.address() as { port: number }
  await using cluster = new TestCluster()
  const { servers } = await site(cluster, 2, { tlsPort: 31_230 })
  try {
    const client = await clientOf(cluster, urlOf(servers[0]!, 0), 'web')
    await client.tls({ port: appPort, host: '127.0.0.1', subdomain: 'shop' })
    for (const host of HOSTS.slice(0, 2)) {
      const text = await within(said(host, 'shop.localhost', own.cert), 'the answer')
      expect(text).toBe('for shop.localhost')
    }
    // A name of another kind, and one that no server has, get the alert at once.
    for (const name of ['web.localhost', 'other.localhost'])
      expect(await codeOf(said(HOSTS[1], name, own.cert))).toBe('ERR_SSL_TLSV1_ALERT_UNRECOGNIZED_NAME')
  } finally {
    app.close()
  }
})

function said(host: string, servername: string, ca: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  let text = ''
  const socket: TLSSocket = secure({ host, port: 31_230, servername, ca })
  socket.on('data', piece => (text += piece))
  socket.on('end', () => resolve(text))
  socket.on('error', reject)
  return promise
}
