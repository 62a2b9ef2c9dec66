// Connections between servers while the directory, or the other server, is not what it should be.

import { expect, test } from 'bun:test'
import { type AddressInfo, connect, createServer } from 'node:net'
import { MemoryDirectory } from '../../src/directories/memory.ts'
import type { Directory, DirectoryListener } from '../../src/directory.ts'
import { CLUSTER_TIMES } from '../../src/parts/cluster/options.ts'
import { ask } from '../support/ask.ts'
import { TestCluster } from '../support/clusters.ts'
import { freePort } from '../support/ports.ts'
import { within } from '../support/within.ts'

/** Views of one directory, which loses all that it has when the test says. */
class Forgetful {
  #inner = new MemoryDirectory()
  readonly #listeners: DirectoryListener[] = []
  readonly beats: string[] = []
  /** The server, by its number, whose signs of life do not arrive. */
  cutOff: number | undefined
  #count = 0

  readonly open = (): Promise<Directory> => {
    const number = this.#count++
    const view: Directory = {
      listen: async listener => {
        this.#listeners.push(listener)
        return this.#inner.listen(listener)
      },
      beat: (...args) => {
        this.beats.push(args[0].id)
        return this.cutOff === number ? Promise.reject(new Error('cut off')) : this.#inner.beat(...args)
      },
      claim: (...args) => this.#inner.claim(...args),
      restore: (...args) => this.#inner.restore(...args),
      release: (...args) => this.#inner.release(...args),
      find: name => this.#inner.find(name),
      ports: () => this.#inner.ports(),
      leave: node => this.#inner.leave(node),
      nodes: () => this.#inner.nodes(),
      secret: fresh => this.#inner.secret(fresh),
      close: () => Promise.resolve(),
    }
    return Promise.resolve(view)
  }

  /** Only the first of the servers is connected again at first. */
  async forget(first: number): Promise<void> {
    this.#inner = new MemoryDirectory()
    for (const listener of this.#listeners) await this.#inner.listen(listener)
    this.#listeners[first]?.reconnected()
  }
}

test('a directory that is back empty, where only one server is known again, cuts nothing between servers', async () => {
  const directory = new Forgetful()
  await using cluster = new TestCluster({}, directory.open)
  const [a, b] = [await cluster.server(), await cluster.server()]
  const { promise: asked, resolve: isAsked } = Promise.withResolvers<void>()
  const { promise: answer, resolve: answerNow } = Promise.withResolvers<Response>()
  await cluster.client({
    server: a.url,
    subdomain: 'shop',
    fetch: () => {
      isAsked()
      return answer
    },
  })
  const visit = ask(b.port, 'shop.localhost', { method: 'POST' })
  await asked
  const before = directory.beats.length
  await directory.forget(1)
  while (directory.beats.length === before) await Bun.sleep(1)
  // What the server does behind its beat takes turns of the event loop, not time.
  for (let turns = 0; turns < 20; turns++) await new Promise(resolve => setImmediate(resolve))
  answerNow(new Response('hello'))
  expect((await visit).body).toBe('hello')
})

for (const first of ['a server that was there', 'the new server'])
  test(`a directory is back empty, and a server starts: all know each other, also when ${first} tells it a secret first`, async () => {
    const directory = new Forgetful()
    await using cluster = new TestCluster({ nodeMs: 600 }, directory.open)
    const [a, b] = [await cluster.server(), await cluster.server()]
    await cluster.client({ server: a.url, subdomain: 'shop', fetch: () => new Response('hello') })
    const before = directory.beats.length
    await directory.forget(first === 'the new server' ? -1 : 1)
    if (first !== 'the new server') while (directory.beats.length === before) await Bun.sleep(1)
    const c = await cluster.server()
    await cluster.client({ server: c.url, subdomain: 'blog', fetch: () => new Response('hello') })
    const ways = [
      [a, 'blog'],
      [b, 'blog'],
      [c, 'shop'],
      [b, 'shop'],
    ] as const
    for (const [server, name] of ways) {
      // The name may have to be told first.
      const answered = async (): Promise<string> => {
        for (;;) {
          const { status, body } = await ask(server.port, `${name}.localhost`)
          if (status !== 404) return `${status} ${body}`
        }
      }
      expect(await within(answered(), `${name} to be known`)).toBe('200 hello')
    }
  })

test('a directory that is back empty does not know yet that a name is free: visitors wait until its server has said so', async () => {
  const directory = new Forgetful()
  await using cluster = new TestCluster({ nodeMs: 600, earlyMs: 600 }, directory.open)
  const [a, b] = [await cluster.server(), await cluster.server()]
  await cluster.client({ server: a.url, subdomain: 'shop', fetch: () => new Response('hello') })
  await directory.forget(-1)
  expect(await ask(b.port, 'shop.localhost')).toMatchObject({ status: 200, body: 'hello' })
})

test('a server that cannot be reached for longer than a moment is tried again as long as requests wait for a client', async () => {
  const directory = new MemoryDirectory()
  await using cluster = new TestCluster({}, () => Promise.resolve(directory))
  const b = await cluster.server({ limits: { holdTimeoutMs: 2_500 } })
  // Nothing listens there.
  const times = { ...CLUSTER_TIMES, earlyMs: 0 }
  await directory.beat({ id: 'gone', url: `http://127.0.0.1:${freePort()}` }, times, 0)
  const wish = { name: 'shop', shown: '', next: 'p', isShared: false }
  expect((await directory.claim('gone', wish, times)).kind).toBe('granted')
  const from = performance.now()
  const answer = await ask(b.port, 'shop.localhost', { method: 'POST', body: 'order' })
  expect(answer).toMatchObject({ status: 503, code: 'CLIENT_RECONNECTING' })
  // Each try is followed by a pause of 0.5 s: more than three were made.
  expect(performance.now() - from).toBeGreaterThan(2_400)
})

test('a connection between servers is closed by the side that asks, before a server that stops could close it', async () => {
  await using cluster = new TestCluster()
  const closed = Promise.withResolvers<void>()
  const opened = Promise.withResolvers<void>()
  let target = 0
  const way = createServer(near => {
    const far = connect(target, '127.0.0.1')
    near.pipe(far).pipe(near)
    near.once('end', () => closed.resolve())
    near.once('error', () => {})
    far.once('error', () => {})
    opened.resolve()
  })
  await new Promise<void>(resolve => way.listen(0, '127.0.0.1', resolve))
  try {
    const { port } = way.address() as AddressInfo
    const patient = { streamIdleMs: 600_000, idleTimeoutMs: 600_000 }
    const a = await cluster.server({ cluster: { peerUrl: `http://127.0.0.1:${port}` }, limits: patient })
    const b = await cluster.server({ limits: patient })
    target = a.port
    await cluster.client({ server: a.url, subdomain: 'shop', fetch: () => new Response('hello') })
    // The visitor keeps its connection.
    const answer = await fetch(b.url, { headers: { host: 'shop.localhost' } })
    expect(await answer.text()).toBe('hello')
    await opened.promise
    await within(closed.promise, 'the connection to close')
  } finally {
    way.close()
  }
})

test('what is under way to a server that is cut off from the directory goes on', async () => {
  const directory = new Forgetful()
  const times = { nodeMs: 150, leaseMs: 300 }
  await using cluster = new TestCluster(times, directory.open)
  const [a, b] = [await cluster.server(), await cluster.server()]
  const { promise: asked, resolve: isAsked } = Promise.withResolvers<void>()
  const { promise: answer, resolve: answerNow } = Promise.withResolvers<Response>()
  await cluster.client({
    server: a.url,
    subdomain: 'shop',
    fetch: () => {
      isAsked()
      return answer
    },
  })
  const visit = ask(b.port, 'shop.localhost', { method: 'POST' })
  await asked
  directory.cutOff = 0
  await Bun.sleep(5 * times.leaseMs)
  answerNow(new Response('hello'))
  expect((await within(visit, 'the answer')).body).toBe('hello')
})

test('a server that takes connections and says nothing holds a request up for a moment only', async () => {
  const directory = new MemoryDirectory()
  await using cluster = new TestCluster({}, () => Promise.resolve(directory))
  const b = await cluster.server()
  const { promise: connected, resolve } = Promise.withResolvers<void>()
  const frozen = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: { open: () => resolve(), data() {} },
  })
  try {
    const times = { ...CLUSTER_TIMES, earlyMs: 0 }
    await directory.beat({ id: 'frozen', url: `http://127.0.0.1:${frozen.port}` }, times, 0)
    const wish = { name: 'shop', shown: '', next: 'p', isShared: false }
    const outcome = await directory.claim('frozen', wish, times)
    const visit = ask(b.port, 'shop.localhost', { method: 'POST', body: 'order' })
    await connected
    await directory.release('frozen', 'shop', outcome.kind === 'granted' ? outcome.epoch : 0)
    await cluster.client({
      server: b.url,
      subdomain: 'shop',
      exact: true,
      fetch: async request => new Response(await request.text()),
    })
    // It was not sent to the frozen one, so it may go to the one that has the name now.
    expect((await within(visit, 'the answer')).body).toBe('order')
  } finally {
    frozen.stop(true)
  }
}, 60_000)

test.each([
  ['no URL', 'hello world'],
  ['half an address', 'http://[::1'],
  ['no port of any machine', 'http://127.0.0.1:99999'],
  ['no scheme of a server', 'javascript:alert(1)'],
])(
  'a server whose address in the directory is %s is one that cannot be reached, and reported once',
  async (_, url) => {
    const directory = new MemoryDirectory()
    await using cluster = new TestCluster({}, () => Promise.resolve(directory))
    const server = await cluster.server({ limits: { startupHoldMs: 0, holdTimeoutMs: 50 } })
    await directory.beat({ id: 'odd', url }, CLUSTER_TIMES, 0)
    await directory.claim('odd', { name: 'shop', shown: '', next: 'proof', isShared: false }, CLUSTER_TIMES)
    // The first asks the directory, the second knows already.
    for (let visits = 0; visits < 2; visits++)
      expect((await ask(server.port, 'shop.localhost')).status).toBe(503)
    expect(cluster.errors.map(({ message }) => message)).toEqual([
      `the server at ${url} cannot be reached: the directory has no URL of it`,
    ])
  },
)

test.each(['streams', 'json'] as const)(
  'an app cannot say that its server does not have the name: %s',
  async wire => {
    await using cluster = new TestCluster()
    const [a, b] = [await cluster.server(), await cluster.server()]
    let asked = 0
    await cluster.client({
      server: a.url,
      subdomain: 'shop',
      wire,
      fetch: () => {
        asked++
        return new Response('mine', { status: 421, headers: { 'localtunnels-moved': '1' } })
      },
    })
    const answer = await ask(b.port, 'shop.localhost', { method: 'POST', body: 'once' })
    expect([answer.status, answer.body, asked]).toEqual([421, 'mine', 1])
  },
)
