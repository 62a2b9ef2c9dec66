// Webhooks that come to any server of a cluster while their client is away, and are delivered where it comes back.

import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { MemoryDirectory } from '../../src/directories/memory.ts'
import { type InboxStore, openInbox } from '../../src/index.ts'
import type { TunnelClient } from '../../src/tunnel-client.ts'
import type { TunnelServer } from '../../src/tunnel-server.ts'
import { ask } from '../support/ask.ts'
import { TestCluster } from '../support/clusters.ts'
import { Cuttable } from '../support/cuttable.ts'
import { type Directories, memoryDirectories, redisDirectories } from '../support/directories.ts'
import { eventually } from '../support/events.ts'
import { describeWith } from '../support/needs.ts'
import { closedAfterEach } from '../support/opened.ts'
import { folder } from '../support/programs.ts'

const [OWN, OTHER] = ['own-token-1234567890', 'other-token-1234567890']
const { defer } = closedAfterEach()

/** Servers with an inbox each, and an app that notes what it gets. */
class Post {
  readonly seen: string[] = []
  readonly stores: InboxStore[] = []
  readonly cluster: TestCluster

  constructor(directories: Directories) {
    this.cluster = new TestCluster({}, directories.open)
  }

  static async start(directories: () => Promise<Directories>): Promise<Post> {
    const kept = await directories()
    defer(() => kept[Symbol.asyncDispose]())
    return new Post(kept)
  }

  async server(hasInbox = true, kept?: InboxStore): Promise<TunnelServer> {
    const dir = await folder('inbox')
    const store = kept ?? (await openInbox(join(dir.path, 'inbox.db')))
    defer(async () => {
      if (kept === undefined) store.close()
      await dir[Symbol.asyncDispose]()
    })
    if (kept === undefined) this.stores.push(store)
    return await this.cluster.server({ tokens: [OWN, OTHER], ...(hasInbox && { inbox: { store } }) })
  }

  /** Starts so many; the cluster ends before their stores do. */
  async servers(count: number): Promise<TunnelServer[]> {
    const servers: TunnelServer[] = []
    for (let at = 0; at < count; at++) servers.push(await this.server())
    defer(() => this.cluster[Symbol.asyncDispose]())
    return servers
  }

  get waiting(): number {
    return this.stores.reduce((sum, store) => sum + (store.counts().get('hooks') ?? 0), 0)
  }

  client(
    { url }: TunnelServer,
    token = OWN,
    answer: (body: string) => Response = () => new Response(),
  ): Promise<TunnelClient> {
    return this.cluster.client({
      server: url,
      token,
      subdomain: 'hooks',
      exact: true,
      inbox: { paths: ['/hooks/*'] },
      fetch: async request => {
        const mark = request.headers.get('x-localtunnels-delivery')
        const came = request.headers.has('x-localtunnels-received')
        const body = await request.text()
        this.seen.push(`${body}${mark === null ? '' : ` #${mark}`}${came ? ' late' : ''}`)
        return answer(body)
      },
    })
  }

  send(server: TunnelServer, body: string, headers: Record<string, string> = {}): Promise<number> {
    return this.sendTo(server, '/hooks/a', body, headers)
  }

  async sendTo(
    { port }: TunnelServer,
    path: string,
    body: string,
    headers: Record<string, string> = {},
  ): Promise<number> {
    return (await ask(port, 'hooks.localhost', { method: 'POST', path, body, headers })).status
  }

  /** All servers know that the client was there, and that it is not any more. */
  async left(server: TunnelServer, others: readonly TunnelServer[], token = OWN): Promise<void> {
    await (await this.client(server, token)).disconnect()
    for (const other of others)
      for (;;) {
        const known = await this.sendTo(other, '/hooks/first', 'known', { 'webhook-id': 'first' })
        if (known === 202) break
        await Bun.sleep(5)
      }
  }
}

function suite(directories: () => Promise<Directories>): void {
  test('what came to any server is delivered in order, once and marked, wherever the client comes back', async () => {
    const post = await Post.start(directories)
    const servers = await post.servers(3)
    const [a, b, c] = servers as [TunnelServer, TunnelServer, TunnelServer]
    await post.left(a, servers)
    for (let at = 0; at < 30; at++) {
      const server = servers[at % 3] ?? a
      expect(await post.send(server, `${at}`, { 'webhook-id': `${at}` })).toBe(202)
      // Sent again to another server, as providers do.
      const next = servers[(at + 1) % 3] ?? a
      expect(await post.send(next, `${at}`, { 'webhook-id': `${at}` })).toBe(202)
    }
    expect(await post.sendTo(b, '/other', 'x')).toBe(404)
    await post.client(c)
    await eventually(() => post.waiting === 0, 'the deliveries')
    const wanted = Array.from({ length: 30 }, (_, at) => `${at} #1 late`)
    expect(post.seen.filter(one => !one.startsWith('known'))).toEqual(wanted)
    // Now it is there: nothing is kept, and a visitor cannot say that it waited.
    const lie = { 'x-localtunnels-delivery': '7', 'x-localtunnels-received': 'never' }
    for (const [at, server] of servers.entries()) expect(await post.send(server, `live ${at}`, lie)).toBe(200)
    expect(post.seen.slice(-3)).toEqual(['live 0', 'live 1', 'live 2'])
  })

  test('an app that answers with an error code of a server has answered', async () => {
    const post = await Post.start(directories)
    const servers = await post.servers(2)
    const [a, b] = servers as [TunnelServer, TunnelServer]
    await post.left(a, servers)
    expect(await post.send(a, '0')).toBe(202)
    expect(await post.send(b, '1')).toBe(202)
    const isNew = new Set(['0', '1'])
    await post.client(b, OWN, body =>
      isNew.delete(body)
        ? new Response('', { status: 404, headers: { 'x-localtunnels-error': 'TUNNEL_NOT_FOUND' } })
        : new Response(),
    )
    await eventually(() => post.waiting === 0, 'the deliveries')
    // One of the two came from another server than the client's.
    expect(post.seen.filter(one => /^\d/.test(one)).toSorted()).toEqual(['0 #1 late', '1 #1 late'])
  })

  test('they are for the token that they came for, whoever has the name at another server', async () => {
    const post = await Post.start(directories)
    const servers = await post.servers(2)
    const [a, b] = servers as [TunnelServer, TunnelServer]
    await post.left(a, servers)
    expect(await post.send(b, 'secret')).toBe(202)
    for (const server of servers) {
      const other = await post.client(server, OTHER)
      expect(await post.send(a, 'for the other')).toBe(200)
      await other.disconnect()
    }
    expect(post.seen.every(one => one === 'for the other')).toBe(true)
    await post.client(b)
    await eventually(() => post.seen.includes('secret #1 late'), 'the delivery')
    await eventually(() => post.waiting === 0, 'its answer')
  })

  test('what a server has kept that ended is delivered when it is back, through the server that has the client', async () => {
    const post = await Post.start(directories)
    const servers = await post.servers(3)
    const [a, b] = servers as [TunnelServer, TunnelServer]
    await post.left(a, servers)
    for (let at = 0; at < 10; at++) expect(await post.send(servers[at % 3] ?? a, `${at}`)).toBe(202)
    const at = post.stores.findIndex(store => (store.counts().get('hooks') ?? 0) > 0)
    const keeper = servers[at] ?? a
    await keeper.stop()
    // Another one keeps them meanwhile.
    const left = servers.filter(server => server !== keeper)
    for (const [nr, server] of left.entries()) expect(await post.send(server, `after ${nr}`)).toBe(202)
    await post.client(left[0] ?? b)
    await eventually(() => post.seen.includes('after 1 #1 late'), 'what the others kept')
    expect(post.seen.filter(one => /^\d/.test(one))).toEqual([])
    await post.server(true, post.stores[at])
    await eventually(() => post.waiting === 0, 'the deliveries')
    const wanted = Array.from({ length: 10 }, (_, nr) => `${nr} #1 late`)
    expect(post.seen.filter(one => /^\d/.test(one))).toEqual(wanted)
  })

  test('a server without an inbox leaves them to the others', async () => {
    const post = await Post.start(directories)
    const bare = await post.server(false)
    const servers = await post.servers(2)
    const [a] = servers as [TunnelServer]
    await post.left(a, servers)
    for (let at = 0; at < 6; at++) expect(await post.send(servers[at % 2] ?? a, `${at}`)).toBe(202)
    expect(await post.send(bare, 'not kept')).toBe(404)
    await post.client(a)
    await eventually(() => post.waiting === 0, 'the deliveries')
    expect(post.seen.filter(one => !one.startsWith('known'))).toHaveLength(6)
  })
}

describe('in memory', () => suite(memoryDirectories))
for (const program of ['redis-server', 'valkey-server'] as const)
  describeWith([program], `with ${program}`, () => suite(() => redisDirectories(program)))

test('while the directory cannot be reached they are kept, and delivered when it can be', async () => {
  const shared = new MemoryDirectory()
  const views: Cuttable[] = []
  const open = () => {
    const view = new Cuttable(shared)
    views.push(view)
    return Promise.resolve(view)
  }
  const post = new Post({ open, async [Symbol.asyncDispose]() {} })
  const servers = await post.servers(2)
  const [a, b] = servers as [TunnelServer, TunnelServer]
  await post.left(a, servers)
  for (const view of views) view.isCut = true
  for (let at = 0; at < 6; at++) expect(await post.send(servers[at % 2] ?? a, `${at}`)).toBe(202)
  // A name of which nothing is known any more.
  expect(await post.sendTo(b, '/other', 'x')).toBeOneOf([404, 503])
  for (const view of views) view.isCut = false
  await post.client(b)
  await eventually(() => post.waiting === 0, 'the deliveries')
  const of = (parity: number) => post.seen.filter(one => /^\d/.test(one) && Number(one[0]) % 2 === parity)
  // Each server had to keep by itself.
  expect(of(0)).toEqual(['0 #1 late', '2 #1 late', '4 #1 late'])
  expect(of(1)).toEqual(['1 #1 late', '3 #1 late', '5 #1 late'])
})
