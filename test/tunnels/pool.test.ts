// Several clients behind one name: who gets what, and what visitors notice when one of them leaves, dies or has no room.

import { expect, test } from 'bun:test'
import { TunnelClient, type TunnelServer } from '../../src/index.ts'
import { ask } from '../support/ask.ts'
import { codeOf, eventually, next } from '../support/events.ts'
import { get, headerOf, ok, post, readAnswer, readRequest, statusOf } from '../support/exchange.ts'
import { load } from '../support/load.ts'
import { ClientProcess } from '../support/processes.ts'
import { FUZZ } from '../support/random.ts'
import { RawOrigin, rawDial } from '../support/raw.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { startServer } from '../support/tunnel.ts'

const HOST = 'app.localhost'

function clientOf(server: TunnelServer, more: Partial<ConstructorParameters<typeof TunnelClient>[0]> = {}) {
  return new TunnelClient({
    server: `127.0.0.1:${server.port}`,
    subdomain: 'app',
    host: '127.0.0.1',
    maxBackoffMs: 20,
    pool: true,
    ...more,
  })
}

/** A client whose app says its name. */
async function member(server: TunnelServer, name: string, more: Parameters<typeof clientOf>[1] = {}) {
  const client = clientOf(server, { fetch: () => new Response(name), ...more })
  await client.connect()
  return client
}

/** An app that counts what it was asked, and takes a moment for each answer. */
function slowApp(name: string) {
  const seen = new Map<string, number>()
  let busy = 0
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const id = new URL(request.url).pathname.slice(1) || (await request.text())
      seen.set(id, (seen.get(id) ?? 0) + 1)
      busy++
      await Bun.sleep(id.length % 7)
      busy--
      return new Response(id, { headers: { 'x-app': name } })
    },
  })
  return { seen, busy: () => busy, port: server.port ?? 0, [Symbol.asyncDispose]: () => server.stop(true) }
}

test('requests one after the other take turns', async () => {
  await using server = await startServer()
  await using one = await member(server, 'one')
  await using two = await member(server, 'two')
  await using three = await member(server, 'three')
  expect(new Set([one, two, three].map(client => client.getSubdomain()))).toEqual(new Set(['app']))
  const bodies = []
  for (let count = 0; count < 6; count++) bodies.push((await ask(server.port, HOST)).body)
  expect(bodies.toSorted()).toEqual(['one', 'one', 'three', 'three', 'two', 'two'])
  expect(server.getStats(true).subdomains).toEqual(['app'])
})

test('the member with the fewest under way takes the next', async () => {
  await using server = await startServer()
  using slow = new RawOrigin()
  await using _one = await member(server, '', { fetch: undefined, port: slow.port })
  await using _two = await member(server, 'two')
  const first = await rawDial(server.port)
  const second = await rawDial(server.port)
  await first.send(get(HOST))
  await second.send(get(HOST))
  const app = await slow.accept()
  await readRequest(app)
  // Whichever of the two visitors has the slow one: all others go to the other.
  for (let count = 0; count < 5; count++) expect((await ask(server.port, HOST)).body).toBe('two')
  await app.send(ok('slow'))
  const answers = await Promise.all([readAnswer(first), readAnswer(second)])
  expect(answers.map(({ payload }) => payload).toSorted()).toEqual(['slow', 'two'])
  first.socket.terminate()
  second.socket.terminate()
})

test('one of two client processes is killed under load: not one GET fails', async () => {
  await using one = slowApp('one')
  await using two = slowApp('two')
  await using server = await startServer()
  const at = `127.0.0.1:${server.port}`
  await using first = new ClientProcess(at, 'app', one.port, { isPooled: true })
  await using second = new ClientProcess(at, 'app', two.port, { isPooled: true })
  await Promise.all([first.event('connected'), second.event('connected')])
  const visitors = 16
  const requests = 60 * FUZZ
  let count = 0
  let wrong = 0
  let isKilled = false
  const counts = await load({
    port: server.port,
    host: HOST,
    visitors,
    requests,
    answered({ payload }, id) {
      if (payload !== id) wrong++
      // While it has work under way, some of which the other must do then.
      if (++count < 200 || isKilled || one.busy() < 3) return
      isKilled = true
      first.kill('SIGKILL')
    },
  })
  expect(counts).toEqual({ answers: { 200: visitors * requests }, cut: 0 })
  expect(wrong).toBe(0)
  // Both had their share, and some that the first had begun were done by the second.
  expect(one.seen.size).toBeGreaterThan(50)
  const twice = [...one.seen.keys()].filter(id => two.seen.has(id))
  expect(twice.length).toBeGreaterThan(0)
  expect(one.seen.size + two.seen.size - twice.length).toBe(visitors * requests)
  expect(server.getStats()).toMatchObject({ pendingResponses: 0, connections: 1 })
}, 60_000)

test('a killed client: what was answering is cut, never more; a POST that was delivered fails and is not repeated', async () => {
  await using one = slowApp('one')
  await using two = slowApp('two')
  await using server = await startServer()
  const at = `127.0.0.1:${server.port}`
  await using first = new ClientProcess(at, 'app', one.port, { isPooled: true })
  await using second = new ClientProcess(at, 'app', two.port, { isPooled: true })
  await Promise.all([first.event('connected'), second.event('connected')])
  let count = 0
  const counts = await load({
    port: server.port,
    host: HOST,
    visitors: 16,
    requests: 60 * FUZZ,
    request: id => post(HOST, id),
    answered() {
      if (++count === 200) first.kill('SIGKILL')
    },
  })
  const { 200: fine = 0, CLIENT_GONE: gone = 0 } = counts.answers
  expect(Object.keys(counts.answers).toSorted()).toEqual(gone > 0 ? ['200', 'CLIENT_GONE'] : ['200'])
  expect(counts.cut).toBe(0)
  expect(fine + gone).toBe(16 * 60 * FUZZ)
  // At most what was under way at that moment.
  expect(gone).toBeLessThanOrEqual(16)
  const times = [...one.seen.values(), ...two.seen.values()]
  expect(Math.max(...times)).toBe(1)
  expect([...one.seen.keys()].filter(id => two.seen.has(id))).toEqual([])
}, 60_000)

test('a client leaves in good order under load: not one GET fails', async () => {
  await using server = await startServer()
  const answer = async (request: Request) => {
    await Bun.sleep(3)
    return new Response(new URL(request.url).pathname)
  }
  const leaving = await member(server, '', { fetch: answer })
  await using _staying = await member(server, '', { fetch: answer })
  let count = 0
  const counts = await load({
    port: server.port,
    host: HOST,
    visitors: 12,
    requests: 40,
    answered() {
      if (++count === 100) void leaving.disconnect()
    },
  })
  expect(counts).toEqual({ answers: { 200: 480 }, cut: 0 })
})

/** Two raw origins behind a pool of two, one of them with a request that the test chose to send. */
async function twoOrigins(server: TunnelServer) {
  const [one, two] = [new RawOrigin(), new RawOrigin()]
  const clients = [
    await member(server, '', { fetch: undefined, port: one.port }),
    await member(server, '', { fetch: undefined, port: two.port }),
  ] as const
  for (const client of clients) client.on('error', () => {})
  return {
    one,
    two,
    clients,
    async [Symbol.asyncDispose]() {
      for (const client of clients) await client.disconnect()
      one[Symbol.dispose]()
      two[Symbol.dispose]()
    },
  }
}

/** Sends a request; says which of two origins has it. */
async function sendTo(
  server: TunnelServer,
  { one, two, clients }: Awaited<ReturnType<typeof twoOrigins>>,
  request: string,
) {
  const visitor = await rawDial(server.port)
  await visitor.send(request)
  await eventually(() => one.connections.length + two.connections.length === 1, 'the request')
  const isFirst = one.connections.length === 1
  const app = await (isFirst ? one : two).accept()
  await app.until('\r\n\r\n')
  return { visitor, app, holder: clients[isFirst ? 0 : 1], other: isFirst ? two : one }
}

test.each(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE'])(
  '%s goes to another client with its body, also with what comes later of it',
  async method => {
    await using server = await startServer()
    await using pair = await twoOrigins(server)
    const request = `${method} / HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 10\r\n\r\nhello`
    const { visitor, app, holder, other } = await sendTo(server, pair, request)
    await app.until('hello')
    void holder.disconnect()
    const again = await other.accept()
    expect(await again.until('hello')).toStartWith(`${method} / `)
    await visitor.send('world')
    await again.until('world')
    await again.send(ok(method === 'HEAD' ? '' : 'done'))
    expect(statusOf((await readAnswer(visitor, method)).head)).toBe(200)
    // The connection is sound: the next request uses it.
    await visitor.send(get(HOST, '/next'))
    expect((await readRequest(again)).head).toStartWith('GET /next ')
    visitor.socket.terminate()
  },
)

test('a POST, an answer that has begun, and a body that is not kept stay where they are', async () => {
  for (const [request, answer, wanted] of [
    [post(HOST, 'pay'), '', 'CLIENT_GONE'],
    [get(HOST), 'HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-', 'CLIENT_GONE'],
    [get(HOST), 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel', 'cut'],
    [
      `PUT / HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 70000\r\n\r\n${'x'.repeat(70_000)}`,
      '',
      'CLIENT_GONE',
    ],
  ] as const) {
    await using server = await startServer()
    await using pair = await twoOrigins(server)
    const { visitor, app, holder, other } = await sendTo(server, pair, request)
    await app.when(() => !request.startsWith('PUT') || app.bytes.length === 70_000, 'the body')
    if (answer !== '') await app.send(answer)
    if (answer !== '') await visitor.until(wanted === 'cut' ? 'hel' : '\r\n\r\n')
    await holder.disconnect()
    if (wanted === 'cut') await visitor.closed()
    else expect(headerOf((await readAnswer(visitor)).head, 'x-localtunnels-error')).toBe(wanted)
    expect(other.connections.length).toBe(0)
    visitor.socket.terminate()
  }
})

test('an app that refuses connections: any request goes to another client, for not a byte of it was delivered', async () => {
  await using server = await startServer()
  await using down = await member(server, '', { fetch: undefined, port: 1 })
  down.on('error', () => {})
  const served: string[] = []
  await using up = await member(server, '', {
    fetch: async request => new Response(`up ${await request.text()}`),
  })
  for (const [client, name] of [
    [down, 'down'],
    [up, 'up'],
  ] as const)
    client.on('response', ({ error }) => served.push(`${name} ${error ?? 'fine'}`))
  for (let count = 0; count < 4; count++) {
    const answer = await ask(server.port, HOST, { method: 'POST', body: `${count}` })
    expect(answer).toMatchObject({ status: 200, body: `up ${count}` })
  }
  await eventually(() => served.filter(one => one === 'up fine').length === 4, 'the reports')
  // Each is reported to who served it, and as failed to who could not.
  expect(served.filter(one => one === 'down ORIGIN_REFUSED').length).toBe(served.length - 4)
  await up.disconnect()
  expect(await ask(server.port, HOST)).toMatchObject({ status: 502, code: 'ORIGIN_REFUSED' })
})

test('a request that makes an app close goes to one app only', async () => {
  await using server = await startServer()
  await using pair = await twoOrigins(server)
  const { visitor, app, other } = await sendTo(server, pair, get(HOST))
  app.socket.end()
  expect(headerOf((await readAnswer(visitor)).head, 'x-localtunnels-error')).toBe('ORIGIN_CLOSED')
  expect(other.connections.length).toBe(0)
  visitor.socket.terminate()
})

test('a client without room passes the request on; with no room anywhere it is TUNNEL_BUSY', async () => {
  await using server = await startServer({ limits: { maxStreams: 1 } })
  await using pair = await twoOrigins(server)
  const visitors = await Promise.all([1, 2, 3].map(() => rawDial(server.port)))
  const [first, second, third] = visitors
  await first!.send(get(HOST, '/1'))
  await second!.send(get(HOST, '/2'))
  await (await pair.one.accept()).until('\r\n\r\n')
  await (await pair.two.accept()).until('\r\n\r\n')
  await third!.send(post(HOST, 'x'))
  expect(headerOf((await readAnswer(third!)).head, 'x-localtunnels-error')).toBe('TUNNEL_BUSY')
  for (const visitor of visitors) visitor.socket.terminate()
})

test('a name is shared only by those that all ask for it', async () => {
  await using server = await startServer()
  await using _one = await member(server, 'one')
  const alone = clientOf(server, { pool: false, port: 1 })
  await alone.connect()
  // Names of its own: what a client without a pool does when its name is taken.
  expect(alone.getSubdomain()).toBe('app-2')
  const other = clientOf(server, { subdomain: 'app-2', port: 1 })
  expect(await codeOf(other.connect())).toBe('NAME_TAKEN')
  const json = clientOf(server, { wire: 'json', port: 1 })
  expect(await codeOf(json.connect())).toBe('KIND_REFUSED')
  const oldJson = clientOf(server, { wire: 'json', pool: false, port: 1 })
  await oldJson.connect()
  expect(oldJson.getSubdomain()).not.toBe('app')
  await alone.disconnect()
  await oldJson.disconnect()
})

test('a token that does not allow the name does not open the pool', async () => {
  await using server = await startServer({
    tokens: [{ token: 'a', names: ['app'] }, { token: 'b', names: ['other'] }, 'c'],
  })
  await using _one = await member(server, 'one', { token: 'a' })
  expect(await codeOf(clientOf(server, { token: 'b', port: 1 }).connect())).toBe('NOT_ALLOWED')
  await using three = await member(server, 'three', { token: 'c' })
  expect(three.getSubdomain()).toBe('app')
})

test('a member that loses its connection comes back as the same; its name is kept while others are there, and for a lease after the last', async () => {
  await using server = await startServer({ limits: { leaseMs: 300 } })
  using proxy = new TcpProxy(server.port)
  const lost = await member(server, 'lost', { server: `127.0.0.1:${proxy.port}`, maxBackoffMs: 60_000 })
  const stays = await member(server, 'stays')
  const back = next(lost, 'connected')
  proxy.cutAll('reset')
  await back
  const bodies = [await ask(server.port, HOST), await ask(server.port, HOST)].map(({ body }) => body)
  expect(bodies.toSorted()).toEqual(['lost', 'stays'])
  await lost.disconnect()
  expect((await ask(server.port, HOST)).body).toBe('stays')
  await stays.disconnect()
  expect(await ask(server.port, HOST)).toMatchObject({ code: 'TUNNEL_NOT_FOUND' })
  expect(server.getStats().activeSubdomains).toBe(0)
})

test('requests are held only when no member is there', async () => {
  await using server = await startServer()
  using proxy = new TcpProxy(server.port)
  const through = { server: `127.0.0.1:${proxy.port}`, maxBackoffMs: 10 }
  await using one = await member(server, 'one', through)
  await using two = await member(server, 'two', through)
  proxy.isDown = true
  proxy.cutAll('reset')
  await eventually(() => server.getStats().connections === 0, 'both to be gone')
  const waiting = ask(server.port, HOST)
  await eventually(() => server.getStats().pendingResponses === 1, 'the request to be held')
  proxy.isDown = false
  expect(await waiting).toMatchObject({ status: 200 })
  await eventually(() => one.isConnected() && two.isConnected(), 'both to be back')
})

test('one client may bring two apps to a pool', async () => {
  await using server = await startServer()
  await using client = new TunnelClient({ server: `127.0.0.1:${server.port}` })
  await client.http({ subdomain: 'app', pool: true, fetch: () => new Response('one') })
  const two = await client.http({ subdomain: 'app', pool: true, fetch: () => new Response('two') })
  const bodies = async () =>
    [(await ask(server.port, HOST)).body, (await ask(server.port, HOST)).body].toSorted()
  expect(await bodies()).toEqual(['one', 'two'])
  await two.close()
  expect(await bodies()).toEqual(['one', 'one'])
})

test('more clients than a pool takes are refused; one that is gone makes room', async () => {
  await using server = await startServer()
  await using client = new TunnelClient({ server: `127.0.0.1:${server.port}` })
  const join = () => client.http({ subdomain: 'app', pool: true, fetch: () => new Response('x') })
  const joined = await Promise.all(Array.from({ length: 64 }, join))
  await using other = clientOf(server, { fetch: () => new Response('other') })
  expect(await codeOf(other.connect())).toBe('CLIENT_LIMIT')
  await joined[0]?.close()
  await eventually(() => true, '')
  await other.connect()
  expect(other.getSubdomain()).toBe('app')
})

test('probes are answered to the member that asks', async () => {
  await using server = await startServer()
  await using one = await member(server, 'one')
  await using two = await member(server, 'two')
  expect(await Promise.all([one.probe(), two.probe()])).toEqual([true, true])
})
