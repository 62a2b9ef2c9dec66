// Visitors that stay with the client they had first: by a cookie, by their address, over HTTP and TCP.

import { expect, test } from 'bun:test'
import { connect, createServer } from 'node:net'
import { TunnelClient, type TunnelServer } from '../../src/index.ts'
import { hash } from '../../src/server/tunnels/pool.ts'
import { eventually, next } from '../support/events.ts'
import { get, headerOf, ok, readAnswer, statusOf } from '../support/exchange.ts'
import { RawOrigin, rawDial } from '../support/raw.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { startServer } from '../support/tunnel.ts'

const HOST = 'app.localhost'
type Affinity = 'none' | 'cookie' | 'address'

async function member(server: TunnelServer, name: string, affinity: Affinity, port = server.port) {
  const client = new TunnelClient({
    server: `127.0.0.1:${port}`,
    subdomain: 'app',
    maxBackoffMs: 20,
    pool: { affinity },
    fetch: request => new Response(`${name} ${request.headers.get('cookie') ?? ''}`),
  })
  await client.connect()
  return client
}

/** One request on a connection of its own. */
async function visit(server: TunnelServer, lines = '', path = '/') {
  const visitor = await rawDial(server.port)
  await visitor.send(get(HOST, path, `${lines}Connection: close\r\n`))
  const { head, payload } = await readAnswer(visitor)
  visitor.socket.terminate()
  const setCookie = headerOf(head, 'set-cookie')
  const [, cookie] = /^(lt_member=[\w-]{16}); /.exec(setCookie ?? '') ?? []
  return { status: statusOf(head), name: payload.split(' ')[0]!, payload, setCookie, cookie, head }
}

test('the first answer names the member, and a visitor that shows it stays there', async () => {
  await using server = await startServer()
  await using _one = await member(server, 'one', 'cookie')
  await using _two = await member(server, 'two', 'cookie')
  const names = new Set<string>()
  for (let who = 0; who < 4; who++) {
    const { name, cookie, setCookie } = await visit(server)
    names.add(name)
    expect(setCookie).toBe(`${cookie}; Path=/; HttpOnly; SameSite=Lax`)
    for (let count = 0; count < 3; count++) {
      const again = await visit(server, `Cookie: theme=dark; ${cookie}; lang=en\r\n`)
      expect(again.name).toBe(name)
      expect(again.setCookie).toBeUndefined()
      // What the visitor sent reaches the app untouched.
      expect(again.payload).toBe(`${name} theme=dark; ${cookie}; lang=en`)
    }
  }
  expect(names).toEqual(new Set(['one', 'two']))
})

test('a made-up cookie, one of another pool and one of an app beside it count for nothing; the first true one counts', async () => {
  await using server = await startServer()
  await using _one = await member(server, 'one', 'cookie')
  await using _two = await member(server, 'two', 'cookie')
  const { cookie, name } = await visit(server)
  for (const odd of [
    'lt_member=',
    'lt_member=one',
    `lt_member=${'A'.repeat(16)}`,
    `x${cookie}`,
    `${cookie}x`,
    'lt_member="',
    `LT_MEMBER${cookie?.slice(9)}`,
  ])
    expect((await visit(server, `Cookie: ${odd}\r\n`)).setCookie).toStartWith('lt_member=')
  for (let count = 0; count < 3; count++) {
    const tossed = await visit(server, `Cookie: lt_member=${'B'.repeat(16)}; ${cookie}\r\n`)
    expect([tossed.name, tossed.setCookie]).toEqual([name, undefined])
    expect((await visit(server, `Cookie: lt_member=x\r\nCookie: ${cookie}\r\n`)).name).toBe(name)
  }
})

test('the member of a cookie leaves: another one takes over and says so; it comes back: the old cookie holds again', async () => {
  await using server = await startServer()
  using proxy = new TcpProxy(server.port)
  await using one = await member(server, 'one', 'cookie', proxy.port)
  await using _two = await member(server, 'two', 'cookie')
  let first = await visit(server)
  while (first.name !== 'one') first = await visit(server)
  proxy.isDown = true
  proxy.cutAll('reset')
  await eventually(() => server.getStats().connections === 1, 'the first to be gone')
  const second = await visit(server, `Cookie: ${first.cookie}\r\n`)
  expect(second.name).toBe('two')
  expect(second.cookie).not.toBe(first.cookie)
  const back = next(one, 'connected')
  proxy.isDown = false
  await back
  expect((await visit(server, `Cookie: ${first.cookie}\r\n`)).name).toBe('one')
  expect((await visit(server, `Cookie: ${second.cookie}\r\n`)).name).toBe('two')
})

test('the cookie is Secure where visitors come by https', async () => {
  await using server = await startServer({ publicUrl: 'https://localhost' })
  await using _one = await member(server, 'one', 'cookie')
  expect((await visit(server)).setCookie).toEndWith('; SameSite=Lax; Secure')
})

test('the line stands in the head of the final answer, whatever that is, and nothing else of the head changes', async () => {
  await using server = await startServer()
  using origin = new RawOrigin()
  await using client = new TunnelClient({
    server: `127.0.0.1:${server.port}`,
    subdomain: 'app',
    port: origin.port,
    host: '127.0.0.1',
    pool: { affinity: 'cookie' },
  })
  await client.connect()
  const line = /Set-Cookie: lt_member=[\w-]{16}; Path=\/; HttpOnly; SameSite=Lax\r\n/
  const ask = async (request: string, answer: string) => {
    const visitor = await rawDial(server.port)
    await visitor.send(request)
    const app = await origin.accept()
    await app.until('\r\n\r\n')
    await app.send(answer)
    return { visitor, app }
  }
  const plain = await ask(
    get(HOST),
    `HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n${ok('hello', 'Set-Cookie: mine=1\r\nX-Y:z\r\n')}`,
  )
  expect(await plain.visitor.until('\r\n\r\n')).not.toMatch(line)
  const { head, payload } = await readAnswer(plain.visitor)
  expect(head.match(new RegExp(line, 'g'))?.length).toBe(1)
  expect(head.replace(line, '')).toBe(
    'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nSet-Cookie: mine=1\r\nX-Y:z\r\n\r\n',
  )
  expect(payload).toBe('hello')
  // The next request on the connection brings no cookie either: it is asked again.
  await plain.visitor.send(get(HOST))
  await plain.app.until('\r\n\r\n')
  await plain.app.send(ok('', 'Connection: close\r\n'))
  expect((await readAnswer(plain.visitor)).head).toMatch(line)
  plain.visitor.socket.terminate()

  const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\n'
  const switched = await ask(
    get(HOST, '/', upgrade),
    `HTTP/1.1 101 Switching Protocols\r\n${upgrade}\r\nbytes`,
  )
  expect(await switched.visitor.until('\r\n\r\n')).toMatch(line)
  expect(await switched.visitor.exactly(5)).toBe('bytes')
  switched.visitor.socket.terminate()

  const old = await ask(
    `GET / HTTP/1.0\r\nHost: ${HOST}\r\n\r\n`,
    'HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n',
  )
  const got = await old.visitor.end()
  expect(got).toMatch(line)
  expect(got).toEndWith('\r\n\r\nhi')
  old.visitor.socket.terminate()

  const large = await ask(
    get(HOST),
    `HTTP/1.1 200 OK\r\nX: ${'y'.repeat(60_000)}\r\nContent-Length: 300000\r\n\r\n${'z'.repeat(300_000)}`,
  )
  const all = await readAnswer(large.visitor)
  expect(all.head).toMatch(line)
  expect(all.payload).toBe('z'.repeat(300_000))
  large.visitor.socket.terminate()
})

test('a cookie is for the host that it was made for, also when one connection asks for several', async () => {
  await using server = await startServer()
  await using _one = await member(server, 'one', 'cookie')
  await using plain = new TunnelClient({ server: `127.0.0.1:${server.port}` })
  await plain.http({ subdomain: 'plain', fetch: () => new Response('plain') })
  const visitor = await rawDial(server.port)
  await visitor.send(get(HOST))
  expect((await readAnswer(visitor)).head).toContain('lt_member')
  await visitor.send(get('plain.localhost'))
  const { head, payload } = await readAnswer(visitor)
  expect(payload).toBe('plain')
  expect(head).not.toContain('lt_member')
  visitor.socket.terminate()
})

test('with other affinities no answer has a cookie', async () => {
  await using server = await startServer()
  await using _one = await member(server, 'one', 'address')
  await using _two = await member(server, 'two', 'cookie')
  // The first one's affinity counts.
  expect((await visit(server)).setCookie).toBeUndefined()
})

test('an address stays with its member; one that leaves moves its own share only, and gets it back', async () => {
  await using server = await startServer({ trustedProxies: ['127.0.0.1', '10.0.0.0/8'] })
  using proxy = new TcpProxy(server.port)
  await using _one = await member(server, 'one', 'address')
  await using two = await member(server, 'two', 'address', proxy.port)
  await using _three = await member(server, 'three', 'address')
  const addresses = Array.from({ length: 60 }, (_, index) => `198.51.${index % 7}.${index}`)
  const nameOf = async (address: string) =>
    (await visit(server, `X-Forwarded-For: 6.6.6.6, ${address}, 10.1.1.1\r\n`)).name
  const shares = async () => Promise.all(addresses.map(nameOf))
  const before = await shares()
  expect(new Set(before)).toEqual(new Set(['one', 'two', 'three']))
  expect(await shares()).toEqual(before)
  // Some proxies add the port, which is another one for each connection.
  const [address = ''] = addresses
  const withPorts = Array.from({ length: 12 }, (_, index) => nameOf(`${address}:${40_000 + index}`))
  expect(new Set(await Promise.all(withPorts))).toEqual(new Set(before.slice(0, 1)))
  proxy.isDown = true
  proxy.cutAll('reset')
  await eventually(() => server.getStats().connections === 2, 'one to be gone')
  const without = await shares()
  expect(without.filter((name, index) => before[index] !== 'two' && name !== before[index])).toEqual([])
  expect(without).not.toContain('two')
  const back = next(two, 'connected')
  proxy.isDown = false
  await back
  expect(await shares()).toEqual(before)
})

test('an address that no trusted proxy vouches for is that of the connection', async () => {
  await using server = await startServer()
  for (const name of ['one', 'two', 'three']) await member(server, name, 'address')
  const names = new Set<string>()
  for (let index = 0; index < 12; index++)
    names.add((await visit(server, `X-Forwarded-For: 198.51.100.${index}\r\n`)).name)
  expect(names.size).toBe(1)
})

test('the hash spreads addresses that are much alike', () => {
  const shares = new Map<string, number>()
  const tags = ['one-tag', 'two-tag', 'three-tag', 'four-tag']
  for (let index = 0; index < 4_000; index++) {
    const lots = tags.map(tag => hash(`${tag} 10.0.${index >> 8}.${index & 255}`))
    const tag = tags[lots.indexOf(Math.max(...lots))]!
    shares.set(tag, (shares.get(tag) ?? 0) + 1)
  }
  for (const share of shares.values()) expect(Math.abs(share - 1_000)).toBeLessThan(150)
})

/** A service that says its name to each connection and keeps it open. */
async function service(name: string) {
  const listening = createServer(socket => {
    socket.on('error', () => {})
    socket.write(`${name}\n`)
  })
  await new Promise<void>(resolve => listening.listen(0, '127.0.0.1', resolve))
  const address = listening.address()
  return {
    port: address !== null && typeof address === 'object' ? address.port : 0,
    stop: () => listening.close(),
  }
}

async function dialled(port: number) {
  const socket = connect({ port, host: '127.0.0.1' })
  socket.on('error', () => {})
  const piece = await new Promise<Buffer>((resolve, reject) => {
    socket.once('data', resolve)
    socket.once('close', () => reject(new Error('closed')))
  })
  return { socket, name: piece.toString().trim() }
}

test('TCP clients share a port: each connection goes to the one with the fewest open', async () => {
  await using server = await startServer()
  const services = [await service('one'), await service('two')]
  const clients = services.map(() => new TunnelClient({ server: `127.0.0.1:${server.port}` }))
  const first = await clients[0]!.tcp({ port: services[0]!.port, host: '127.0.0.1', pool: true })
  const remotePort = first.port ?? 0
  const join = { port: services[1]!.port, host: '127.0.0.1', remotePort }
  expect(await clients[1]!.tcp(join).catch(error => error.code)).toBe('PORT_TAKEN')
  const second = await clients[1]!.tcp({ ...join, pool: true })
  expect(second.url).toBe(first.url)
  const open: Awaited<ReturnType<typeof dialled>>[] = []
  for (let count = 0; count < 6; count++) open.push(await dialled(remotePort))
  const named = (name: string) => open.filter(one => one.name === name)
  expect([named('one').length, named('two').length]).toEqual([3, 3])
  const closed = named('one').map(
    ({ socket }) => new Promise(resolve => socket.destroy().once('close', resolve)),
  )
  await Promise.all(closed)
  // The server may hear of the ends a moment later.
  let later = await dialled(remotePort)
  while (later.name !== 'one') later = await dialled(remotePort)
  await clients[0]!.disconnect()
  expect((await dialled(remotePort)).name).toBe('two')
  await clients[1]!.disconnect()
  expect(await dialled(remotePort).catch(() => 'refused')).toBe('refused')
  for (const one of services) one.stop()
})

test('two clients ask for one port in the same moment', async () => {
  await using server = await startServer()
  const one = await service('one')
  await using client = new TunnelClient({ server: `127.0.0.1:${server.port}` })
  const probe = await client.tcp({ port: one.port, host: '127.0.0.1' })
  const remotePort = probe.port ?? 0
  await probe.close()
  const ask = () =>
    client.tcp({ port: one.port, host: '127.0.0.1', remotePort, pool: { affinity: 'address' } })
  const both = await Promise.all([ask(), ask()])
  expect(both.map(({ port }) => port)).toEqual([remotePort, remotePort])
  expect((await dialled(remotePort)).name).toBe('one')
  one.stop()
})
