// Connections between servers while the directory, or the other server, is not what it should be.

import { expect, test } from 'bun:test'
import { MemoryDirectory } from '../../src/directories/memory.ts'
import type { Directory, DirectoryListener } from '../../src/directory.ts'
import { CLUSTER_TIMES } from '../../src/server/cluster/options.ts'
import { ask } from '../support/ask.ts'
import { TestCluster } from '../support/clusters.ts'
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

test('what is under way to a server without signs of life fails when its lease is over', async () => {
  const directory = new Forgetful()
  await using cluster = new TestCluster({ nodeMs: 150, leaseMs: 300 }, directory.open)
  const [a, b] = [await cluster.server(), await cluster.server()]
  const { promise: asked, resolve: isAsked } = Promise.withResolvers<void>()
  await cluster.client({
    server: a.url,
    subdomain: 'shop',
    fetch: () => {
      isAsked()
      return new Promise<Response>(() => {})
    },
  })
  const visit = ask(b.port, 'shop.localhost', { method: 'POST' })
  await asked
  directory.cutOff = 0
  expect((await within(visit, 'the end of the request')).status).toBe(502)
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
}, 30_000)
