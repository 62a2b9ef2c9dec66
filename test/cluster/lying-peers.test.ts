// A server of the cluster that lies, as one that was taken over or is broken: it harms its own visitors at most, and never others.

import { expect, test } from 'bun:test'
import { MemoryDirectory } from '../../src/directories/memory.ts'
import { CLUSTER_TIMES } from '../../src/parts/cluster/options.ts'
import { answerTo, PEER_PROTOCOL, peerProof } from '../../src/parts/cluster/peer-wire.ts'
import type { TunnelServer } from '../../src/tunnel-server.ts'
import { ask } from '../support/ask.ts'
import { TestCluster } from '../support/clusters.ts'
import { eventually } from '../support/events.ts'
import { freePort } from '../support/ports.ts'
import { type RawConnection, RawOrigin, rawDial } from '../support/raw.ts'

const SECRET = 'a-secret-of-32-characters-at-least'
const NAME = 'lies'

/** What it says when it is called. */
class Liar implements Disposable {
  readonly #listening = new RawOrigin()

  /** The directory believes that it holds the name. */
  async hold(directory: MemoryDirectory, name: string): Promise<void> {
    const times = { ...CLUSTER_TIMES, earlyMs: 0 }
    await directory.beat({ id: NAME, url: `http://127.0.0.1:${this.#listening.port}` }, times, 0)
    await directory.claim(NAME, { name, shown: '', next: 'p', isShared: false }, times)
  }

  /** The next connection, greeted. `also`: what it says behind that. */
  async taken(also = ''): Promise<RawConnection> {
    const caller = await this.called()
    await caller.send(`${Buffer.from(answerTo(PEER_PROTOCOL)).toString('latin1')}${also}`)
    return caller
  }

  /** The next connection, with its greeting. */
  async called(): Promise<RawConnection> {
    const caller = await this.#listening.accept()
    await caller.until('\r\n\r\n')
    return caller
  }

  [Symbol.dispose](): void {
    this.#listening[Symbol.dispose]()
  }
}

interface Scene extends AsyncDisposable {
  readonly server: TunnelServer
  readonly liar: Liar
  readonly directory: MemoryDirectory
  /** A visitor of another tunnel gets its own bytes, nothing is left of the others, and nothing was thrown. */
  unharmed(): Promise<void>
}

async function scene(port?: number): Promise<Scene> {
  const directory = new MemoryDirectory()
  const cluster = new TestCluster({}, () => Promise.resolve(directory))
  const liar = new Liar()
  const server = await cluster.server({
    cluster: { secret: SECRET },
    ...(port !== undefined && { tcpPorts: `${port}` }),
  })
  await cluster.client({
    server: server.url,
    subdomain: 'shop',
    fetch: async request => new Response(`${new URL(request.url).pathname} ${await request.text()}`),
  })
  return {
    server,
    liar,
    directory,
    async unharmed() {
      const answer = await ask(server.port, 'shop.localhost', { method: 'POST', path: '/own', body: 'bytes' })
      expect(answer).toMatchObject({ status: 200, body: '/own bytes' })
      await eventually(() => server.getStats().pendingResponses === 0, 'all requests to be over')
      expect(
        cluster.errors.filter(error => !('code' in error) && !/cannot be reached/.test(error.message)),
      ).toEqual([])
    },
    async [Symbol.asyncDispose]() {
      await cluster[Symbol.asyncDispose]()
      liar[Symbol.dispose]()
    },
  }
}

const ok = (body: string, lines = ''): string =>
  `HTTP/1.1 200 OK\r\n${lines}Content-Length: ${body.length}\r\n\r\n${body}`
const CHUNKED = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n0\r\n\r\n'

/** What it answers, whether it ends its side behind that, and what the visitor of its own tunnel has of it. */
test.each([
  ['two answers', ok('one') + ok('stolen'), false, '200 one'],
  ['an answer that ends twice', `${CHUNKED}0\r\n\r\n`, false, '200 one'],
  ['an end twice', CHUNKED, true, '200 one'],
  ['a count that is too small', ok('one').replace('3', '1'), false, '200 o'],
  ['a count that is too large', ok('one').replace('3', '1000'), true, 'cut'],
  ['two counts', ok('one', 'Content-Length: 5\r\n'), false, '502 ORIGIN_INVALID'],
  [
    'a count and chunks',
    CHUNKED.replace('Transfer', 'Content-Length: 3\r\nTransfer'),
    false,
    '502 ORIGIN_INVALID',
  ],
  ['a head without end', `HTTP/1.1 200 OK\r\nx: ${'x'.repeat(1_000_000)}`, false, '502 ORIGIN_INVALID'],
  ['another protocol', ok('').replace('200', '101'), false, '502 ORIGIN_INVALID'],
  ['no HTTP', '\0\0\xff\xff'.repeat(10_000), false, '502 ORIGIN_INVALID'],
])('an answer: %s', async (_what, lie, ends, seen) => {
  await using world = await scene()
  const { server, liar } = world
  await liar.hold(world.directory, NAME)
  const visit = async (path: string) => {
    const answered = ask(server.port, `${NAME}.localhost`, { path })
    return answered.then(
      ({ status, body, code }) => `${status} ${code ?? body}`,
      () => 'cut',
    )
  }
  const first = visit('/1')
  const caller = await liar.taken()
  expect(await caller.until('\r\n\r\n')).toContain('GET /1 ')
  await caller.send(lie)
  if (ends) caller.socket.end()
  expect(await first).toBe(seen)
  // What it has said is nobody else's: the next one has a connection of its own.
  const second = visit('/2')
  const next = await liar.taken()
  expect(await next.until('\r\n\r\n')).toContain('GET /2 ')
  await next.send(ok('two'))
  expect(await second).toBe('200 two')
  await world.unharmed()
})

test('an answer to a request that was not sent yet is that of no later visitor', async () => {
  await using world = await scene()
  const { server, liar } = world
  await liar.hold(world.directory, NAME)
  const first = ask(server.port, `${NAME}.localhost`)
  const caller = await liar.taken()
  await caller.until('\r\n\r\n')
  await caller.send(ok('one'))
  expect((await first).body).toBe('one')
  // The connection waits for the next request.
  await caller.send(ok('early'))
  await caller.closed()
  const second = ask(server.port, `${NAME}.localhost`)
  const next = await liar.taken()
  await next.until('\r\n\r\n')
  await next.send(ok('two'))
  expect((await second).body).toBe('two')
  await world.unharmed()
})

test('a server that never has the name that it holds is asked a few times', async () => {
  await using world = await scene()
  const { server, liar } = world
  await liar.hold(world.directory, NAME)
  const visit = ask(server.port, `${NAME}.localhost`)
  let isAnswered = false
  void visit.finally(() => (isAnswered = true))
  for (let calls = 0; !isAnswered; calls++) {
    expect(calls).toBeLessThan(20)
    const caller = await Promise.race([liar.taken(), visit.then(() => undefined)])
    await caller?.until('\r\n\r\n')
    await caller?.send(ok('', 'localtunnels-moved: 1\r\n').replace('200 OK', '421 Misdirected Request'))
  }
  expect((await visit).status).toBe(421)
  await world.unharmed()
})

test.each([
  ['without end', 'HTTP/1.1 102 Processing\r\n\r\n'.repeat(100_000)],
  ['that are too long', `HTTP/1.1 102 Processing\r\nx: ${'x'.repeat(1_000_000)}`],
])('answers to a raw visitor %s cut it', async (_what, lie) => {
  const port = freePort()
  await using world = await scene(port)
  const { liar } = world
  await liar.hold(world.directory, `tcp-${port}`)
  let visitor: RawConnection | undefined
  while (visitor === undefined) visitor = await rawDial(port).catch(() => undefined)
  const caller = await liar.called()
  await caller.send(lie)
  await caller.closed()
  await world.unharmed()
  visitor.socket.terminate()
})

/** What a proven caller says, in place of a request of one of its visitors. */
test.each([
  ['a request that does not say whose it is', 'GET / HTTP/1.1\r\nHost: shop.localhost\r\n\r\n', 400],
  [
    'a request that says it too late',
    'GET / HTTP/1.1\r\nHost: shop.localhost\r\nlocaltunnels-visitor: https 1 6.6.6.6\r\n\r\n',
    400,
  ],
  ['a name that is not here', request('Host: none.localhost\r\n'), 421],
  ['a webhook for the tunnel of another owner', request('Host: shop.localhost\r\n', ' kept=other'), 421],
  ['two lengths', request('Host: shop.localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n'), 400],
  ['a head without end', request(`Host: shop.localhost\r\nx: ${'x'.repeat(1_000_000)}`), 431],
  ['half a body', request('Host: shop.localhost\r\nContent-Length: 10\r\n', '', 'POST'), 0],
  ['no HTTP', '\0\0\xff\xff'.repeat(10_000), 400],
])('a caller: %s', async (_what, lie, status) => {
  await using world = await scene()
  const caller = await proven(world)
  await caller.send(lie)
  if (status === 0) caller.socket.terminate()
  else expect(await caller.until('\r\n')).toStartWith(`HTTP/1.1 ${status} `)
  await world.unharmed()
  caller.socket.terminate()
})

function request(lines: string, note = '', method = 'GET'): string {
  return `${method} / HTTP/1.1\r\nlocaltunnels-visitor: http 0 192.0.2.1${note}\r\n${lines}\r\n`
}

/** A connection that the server takes for that of another server. */
async function proven({ server, directory }: Scene): Promise<RawConnection> {
  const [{ id } = { id: '' }] = await directory.nodes()
  const caller = await rawDial(server.port)
  const head = (shown: string): string =>
    `GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: ${PEER_PROTOCOL}\r\n${shown}\r\n`
  await caller.send(head(''))
  const number = /^WWW-Authenticate: Peer (.+)\r$/m.exec(await caller.until('\r\n\r\n'))?.[1] ?? ''
  await caller.send(head(`Authorization: Peer ${peerProof(SECRET, id, number)}\r\n`))
  expect(await caller.until('\r\n\r\n')).toStartWith('HTTP/1.1 101 ')
  return caller
}
