// UDP tunnels on real sockets: boundaries, who gets which answer, what is dropped and counted, flows that end.

import { expect, test } from 'bun:test'
import { connect, createServer, type Socket } from 'node:net'
import { TunnelClient, type TunnelClientOptions, type TunnelServer } from '../../src/index.ts'
import { DatagramVisitor, datagramApp, seenBy } from '../support/datagrams.ts'
import { codeOf, eventually, next, until } from '../support/events.ts'
import { freePort } from '../support/ports.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { startServer } from '../support/tunnel.ts'
import { within } from '../support/within.ts'

const client = (serverPort: number, options: TunnelClientOptions = {}): TunnelClient =>
  new TunnelClient({ server: `http://127.0.0.1:${serverPort}`, maxBackoffMs: 20, ...options })

const droppedBy = (server: TunnelServer, port: number | undefined): number =>
  server.getStats(true).droppedDatagramsByTunnel?.[`udp-${port}`] ?? Number.NaN

const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)

test('datagrams of every size keep their boundaries, empty ones too, both ways and in order', async () => {
  await using app = await datagramApp()
  await using server = await startServer()
  await using tunnels = client(server.port)
  const tunnel = await tunnels.udp({ port: app.port })
  expect(tunnel.url).toBe(`udp://localhost:${tunnel.port}`)
  await using visitor = await DatagramVisitor.to(tunnel.port ?? 0)
  const sizes = [
    0, 1, 2, 3, 255, 256, 257, 1_399, 1_472, 1_473, 4_095, 9_000, 32_768, 61_439, 61_440, 65_506, 65_507, 0,
  ]
  for (const [index, size] of sizes.entries()) {
    await visitor.send(new Uint8Array(size).fill(index + 1))
    await visitor.received(index + 1)
  }
  expect(visitor.got.map(({ length }) => length)).toEqual(sizes)
  for (const [index, bytes] of visitor.got.entries())
    expect(bytes.every(byte => byte === index + 1)).toBe(true)
})

test('a burst stays in order', async () => {
  await using app = await datagramApp()
  await using server = await startServer()
  await using tunnels = client(server.port)
  const { port = 0 } = await tunnels.udp({ port: app.port })
  await using visitor = await DatagramVisitor.to(port)
  await Promise.all(Array.from({ length: 100 }, (_, index) => visitor.send(`${index}`)))
  const got = await visitor.received(100)
  expect(got.map(text)).toEqual(Array.from({ length: 100 }, (_, index) => `${index}`))
})

test('a thousand visitors at once each get their own answers, from a port of their own at the origin', async () => {
  await using app = await datagramApp()
  await using server = await startServer()
  await using tunnels = client(server.port)
  const { port = 0 } = await tunnels.udp({ port: app.port })
  const visitors = await Promise.all(Array.from({ length: 1_000 }, () => DatagramVisitor.to(port)))
  const answers = await within(
    Promise.all(visitors.map((visitor, index) => visitor.ask(`visitor ${index}`, 500))),
    'a thousand answers',
  )
  expect(answers.map(text)).toEqual(visitors.map((_, index) => `visitor ${index}`))
  // Asked again: nobody is mistaken for anybody else once all flows are there.
  const again = await within(
    Promise.all(visitors.map((visitor, index) => visitor.ask(`again ${index}`, 500))),
    'a thousand more',
  )
  expect(again.map(text)).toEqual(visitors.map((_, index) => `again ${index}`))
  expect(server.getStats().flows).toBe(1_000)
  expect(new Set(app.seen.map(({ port: from }) => from)).size).toBe(1_000)
  await Promise.all(visitors.map(visitor => visitor[Symbol.asyncDispose]()))
})

test('nothing is sent to a visitor unless the origin answered', async () => {
  await using app = await datagramApp(bytes =>
    text(bytes) === 'ask' ? new TextEncoder().encode('one') : undefined,
  )
  await using server = await startServer()
  await using tunnels = client(server.port)
  const { port = 0 } = await tunnels.udp({ port: app.port })
  await using visitor = await DatagramVisitor.to(port)
  for (let count = 0; count < 20; count++) await visitor.send('do not answer')
  await visitor.send('ask')
  await visitor.received(1)
  await seenBy(() => app.seen.length === 21)
  expect(visitor.got.map(text)).toEqual(['one'])
})

test('a TCP tunnel and a UDP tunnel share a port, and each is given back alone', async () => {
  await using app = await datagramApp()
  using listener = await listening(socket => socket.end('tcp'))
  await using server = await startServer()
  await using tunnels = client(server.port)
  const tcp = await tunnels.tcp({ port: listener.port, host: '127.0.0.1' })
  const port = tcp.port ?? 0
  const udp = await tunnels.udp({ port: app.port, remotePort: port })
  expect(udp.port).toBe(port)
  await using visitor = await DatagramVisitor.to(port)
  expect(text(await visitor.ask('udp'))).toBe('udp')
  await tcp.close()
  expect(text(await visitor.ask('still'))).toBe('still')
  await udp.close()
  await eventually(() => server.getStats().activeSubdomains === 0, 'the port to be given back')
  expect(server.getStats().flows).toBe(0)
  await using rebound = await datagramApp(undefined, port)
  expect(rebound.port).toBe(port)
})

async function listening(accept: (socket: Socket) => void): Promise<Disposable & { readonly port: number }> {
  const server = createServer(accept)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return {
    port: address === null || typeof address === 'string' ? 0 : address.port,
    [Symbol.dispose]: () => server.close(),
  }
}

test('a flow without datagrams ends at both ends, and the next datagram begins another', async () => {
  await using app = await datagramApp()
  await using server = await startServer()
  await using tunnels = client(server.port)
  const { port = 0 } = await tunnels.udp({ port: app.port, idleTimeoutMs: 50 })
  await using visitor = await DatagramVisitor.to(port)
  await visitor.ask('first')
  await eventually(() => server.getStats().flows === 0, 'the flow to end')
  await visitor.ask('second')
  const ports = new Set(app.seen.map(({ port: from }) => from))
  expect(ports.size).toBe(2)
})

test('a server ends a flow of a client that does not', async () => {
  await using app = await datagramApp()
  await using server = await startServer({ limits: { flowIdleMs: 50 } })
  await using tunnels = client(server.port)
  const { port = 0 } = await tunnels.udp({ port: app.port })
  await using visitor = await DatagramVisitor.to(port)
  await visitor.ask('first')
  await eventually(() => server.getStats().flows === 0, 'the flow to end')
})

test('an origin that is down is told once, and one that starts later answers on the same flow', async () => {
  const gone = await datagramApp()
  const { port: appPort } = gone
  await gone[Symbol.asyncDispose]()
  await using server = await startServer()
  await using tunnels = client(server.port)
  const errors: string[] = []
  tunnels.on('error', error => errors.push('code' in error ? String(error.code) : error.message))
  const { port = 0 } = await tunnels.udp({ port: appPort })
  await using visitor = await DatagramVisitor.to(port)
  const refused = next(tunnels, 'error')
  await visitor.send('is anybody there?')
  await refused
  for (let count = 0; count < 10; count++) await visitor.send('hello?')
  await using app = await datagramApp(undefined, appPort)
  expect(text(await visitor.ask('now?'))).toMatch(/now\?|hello\?/)
  expect(errors).toEqual(['ORIGIN_REFUSED'])
  expect(server.getStats().flows).toBe(1)
  expect(new Set(app.seen.map(({ port: from }) => from)).size).toBe(1)
})

test('a client that is gone and back: what came meanwhile is dropped and counted, the port stays, new flows open at once', async () => {
  await using app = await datagramApp()
  await using server = await startServer()
  using proxy = new TcpProxy(server.port)
  await using tunnels = client(proxy.port)
  const { port = 0 } = await tunnels.udp({ port: app.port })
  await using visitor = await DatagramVisitor.to(port)
  await visitor.ask('before')
  proxy.isDown = true
  proxy.cutAll()
  await until(server, 'disconnection', () => server.getStats().connections === 0)
  expect(server.getStats().flows).toBe(0)
  for (let count = 0; count < 5; count++) await visitor.send('nobody is there')
  await eventually(() => droppedBy(server, port) === 5, 'five datagrams to be dropped')
  proxy.isDown = false
  await next(tunnels, 'connected')
  expect(text(await visitor.ask('after'))).toBe('after')
  expect(app.seen.map(({ bytes }) => text(bytes))).not.toContain('nobody is there')
  expect(server.getStats().droppedDatagrams).toBe(5)
})

test('a client that reads no more: datagrams are dropped and counted in bounded memory, and other clients go on', async () => {
  await using app = await datagramApp()
  await using server = await startServer({ limits: { maxLinks: 0 } })
  using proxy = new TcpProxy(server.port)
  await using stuck = client(proxy.port)
  await using well = client(server.port)
  const { port = 0 } = await stuck.udp({ port: app.port })
  const other = await well.udp({ port: app.port })
  using listener = await listening(socket => socket.pipe(socket))
  const tcp = await well.tcp({ port: listener.port, host: '127.0.0.1' })
  await using visitor = await DatagramVisitor.to(port)
  await visitor.ask('before')
  proxy.isSilent = true
  // Twice the first credit of a stream, in parts that the kernel's buffer has room for.
  const datagram = new Uint8Array(8_192)
  while (!(droppedBy(server, port) > 50)) await visitor.send(datagram)
  const socket = connect(tcp.port ?? 0, '127.0.0.1')
  const echoed = new Promise(resolve => socket.once('data', piece => resolve(piece.toString())))
  socket.write('tcp goes on')
  expect(await within(echoed, 'the echo')).toBe('tcp goes on')
  socket.destroy()
  await using neighbour = await DatagramVisitor.to(other.port ?? 0)
  expect(text(await neighbour.ask('and so do others'))).toBe('and so do others')
  expect(droppedBy(server, other.port)).toBe(0)
  expect(server.getStats().droppedDatagrams).toBeGreaterThan(50)
  // Who says goodbye to nobody waits for an answer.
  proxy.isDown = true
  proxy.cutAll()
})

test('answers that the way to the server cannot take are dropped by the client, and counted at the tunnel', async () => {
  await using app = await datagramApp()
  await using server = await startServer({ limits: { maxLinks: 0 } })
  using proxy = new TcpProxy(server.port)
  await using stuck = client(proxy.port)
  const tunnel = await stuck.udp({ port: app.port })
  await using visitor = await DatagramVisitor.to(tunnel.port ?? 0)
  await visitor.ask('before')
  expect(tunnel.droppedDatagrams).toBe(0)
  proxy.isSilent = true
  const { port } = app.seen[0]!
  const answer = new Uint8Array(8_192)
  while (tunnel.droppedDatagrams <= 50) {
    app.socket.send(answer, port, '127.0.0.1')
    // Everybody has a turn: the client is in this process, too.
    await new Promise<void>(resolve => setImmediate(resolve))
  }
  // Who says goodbye to nobody waits for an answer.
  proxy.isDown = true
  proxy.cutAll()
})

test('made-up addresses cost bounded flows: who was answered stays, the others make room, and all is counted', async () => {
  await using app = await datagramApp(bytes => (text(bytes) === 'answer me' ? bytes : undefined))
  await using server = await startServer({ limits: { maxFlows: 8 } })
  await using tunnels = client(server.port)
  const { port = 0 } = await tunnels.udp({ port: app.port })
  await using known = await DatagramVisitor.to(port)
  await known.ask('answer me')
  const flood = await Promise.all(Array.from({ length: 40 }, () => DatagramVisitor.to(port)))
  await Promise.all(flood.map(one => one.send('x')))
  await eventually(() => droppedBy(server, port) === 33, 'what is beyond to be dropped')
  expect(server.getStats().flows).toBe(8)
  // It has been answered: nobody takes its place.
  await known.ask('answer me')
  // And a visitor who goes on asking gets in once the others have had their second.
  await using late = await DatagramVisitor.to(port)
  await within(late.ask('answer me'), 'the late visitor')
  expect(server.getStats().flows).toBe(8)
  expect(app.seen.filter(({ bytes }) => text(bytes) === 'x').length).toBeGreaterThan(0)
  const before = app.seen.length
  await known.ask('answer me')
  expect(app.seen[before]?.port).toBe(app.seen[0]?.port ?? -1)
  await Promise.all(flood.map(one => one[Symbol.asyncDispose]()))
})

test('new visitors are bounded by the second: those beyond are dropped and counted, and come in later', async () => {
  await using app = await datagramApp()
  await using server = await startServer({ limits: { maxFlowRate: 10 } })
  await using tunnels = client(server.port)
  const { port = 0 } = await tunnels.udp({ port: app.port })
  const visitors = await Promise.all(Array.from({ length: 40 }, () => DatagramVisitor.to(port)))
  await Promise.all(visitors.map(one => one.send('x')))
  // One at once, one at the end of the tenth of a second, and ten for each second that a busy machine takes.
  await eventually(() => droppedBy(server, port) >= 20, 'what is beyond to be dropped')
  expect(server.getStats().flows).toBeGreaterThan(0)
  expect(server.getStats().flows + droppedBy(server, port)).toBeLessThanOrEqual(40)
  await within(visitors[39]!.ask('later', 100), 'the last visitor')
  await Promise.all(visitors.map(one => one[Symbol.asyncDispose]()))
})

test('flows of all tunnels together have a bound, too, of which one owner has half', async () => {
  await using app = await datagramApp()
  await using server = await startServer({ limits: { maxAllFlows: 4 } })
  await using tunnels = client(server.port)
  const one = await tunnels.udp({ port: app.port })
  const two = await tunnels.udp({ port: app.port })
  await using first = await DatagramVisitor.to(one.port ?? 0)
  await using second = await DatagramVisitor.to(two.port ?? 0)
  await using third = await DatagramVisitor.to(two.port ?? 0)
  await first.ask('1')
  await second.ask('2')
  await third.send('3')
  await eventually(() => droppedBy(server, two.port) === 1, 'the third to be dropped')
  await one.close()
  expect(text(await third.ask('3'))).toBe('3')
})

test('flows of one token leave room for those of another', async () => {
  await using app = await datagramApp()
  await using server = await startServer({ tokens: ['many', 'one'], limits: { maxAllFlows: 8 } })
  await using greedy = client(server.port, { token: 'many' })
  await using patient = client(server.port, { token: 'one' })
  const [many, one] = [await greedy.udp({ port: app.port }), await patient.udp({ port: app.port })]
  const visitors = await Promise.all(Array.from({ length: 8 }, () => DatagramVisitor.to(many.port ?? 0)))
  for (const visitor of visitors) await visitor.send('x')
  await eventually(() => droppedBy(server, many.port) === 4, 'half of them to be dropped')
  await using other = await DatagramVisitor.to(one.port ?? 0)
  expect(text(await other.ask('1'))).toBe('1')
  await Promise.all(visitors.map(visitor => visitor[Symbol.asyncDispose]()))
})

test('a guard is asked about a bounded number of visitors at once, and about each once; later ones come in when it has answered', async () => {
  await using app = await datagramApp()
  const asked: (() => void)[] = []
  const admit = () => new Promise<undefined>(resolve => asked.push(() => resolve(undefined)))
  await using server = await startServer({ guards: [{ name: 'slow', admit }], limits: { maxAskedFlows: 2 } })
  await using tunnels = client(server.port)
  const { port = 0 } = await tunnels.udp({ port: app.port })
  const visitors = await Promise.all(Array.from({ length: 5 }, () => DatagramVisitor.to(port)))
  for (const visitor of [...visitors, ...visitors]) await visitor.send('x')
  await eventually(() => droppedBy(server, port) === 10, 'all to be dropped')
  expect(asked).toHaveLength(2)
  for (const answer of asked) answer()
  const late = visitors[4]!.ask('late')
  await eventually(() => asked.length > 2, 'the guard to be asked about the late one')
  for (const answer of asked) answer()
  expect(text(await within(late, 'the late visitor'))).toBe('late')
  expect(app.seen.map(({ bytes }) => text(bytes))).not.toContain('x')
  await Promise.all(visitors.map(one => one[Symbol.asyncDispose]()))
})

test('ports: outside, taken by another program, none at all; options that cannot be used', async () => {
  await using app = await datagramApp()
  await using server = await startServer({ host: '127.0.0.1', udpPorts: `${app.port}` })
  await using tunnels = client(server.port)
  expect(await codeOf(tunnels.udp({ port: 53, remotePort: 1 }))).toBe('NOT_ALLOWED')
  expect(await codeOf(tunnels.udp({ port: 53, remotePort: app.port }))).toBe('PORT_TAKEN')
  expect(await codeOf(tunnels.udp({ port: 53 }))).toBe('CLIENT_LIMIT')
  expect(await codeOf(tunnels.udp({ port: 0 }))).toBe('OPTION_INVALID')
  expect(await codeOf(tunnels.udp({ port: 53, remotePort: 70_000 }))).toBe('OPTION_INVALID')
  expect(await codeOf(tunnels.udp({ port: 53, idleTimeoutMs: 0 }))).toBe('OPTION_INVALID')
  await using closed = await startServer({ udpPorts: '' })
  await using other = client(closed.port)
  expect(await codeOf(other.udp({ port: 53 }))).toBe('KIND_REFUSED')
})

test('a token opens the kinds and UDP ports of its rule', async () => {
  await using app = await datagramApp()
  const [open, shut] = [freePort(), freePort()]
  await using server = await startServer({
    udpPorts: `${open},${shut}`,
    tokens: [
      { token: 'web', kinds: ['http'] },
      { token: 'dns', udpPorts: `${open}` },
    ],
  })
  const ask = async (token: string, remotePort: number) => {
    await using tunnels = new TunnelClient({ server: `http://127.0.0.1:${server.port}`, token })
    return await codeOf(tunnels.udp({ port: app.port, remotePort }))
  }
  expect(await ask('web', open)).toBe('NOT_ALLOWED')
  expect(await ask('dns', shut)).toBe('NOT_ALLOWED')
  expect(await ask('dns', open)).toBe('resolved')
})

test('the JSON wire has no datagrams: KIND_REFUSED', async () => {
  await using server = await startServer()
  await using tunnels = new TunnelClient({ server: `http://127.0.0.1:${server.port}`, wire: 'json' })
  expect(await codeOf(tunnels.udp({ port: 53 }))).toBe('KIND_REFUSED')
})
