// Two and three servers of one cluster: a visitor may come to any of them, and a client, too.

import { expect, spyOn, test } from 'bun:test'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import WebSocket, { WebSocketServer } from 'ws'
import { deferred } from '../../src/deferred.ts'
import { MemoryDirectory } from '../../src/directories/memory.ts'
import type { Directory } from '../../src/directory.ts'
import type { Guard, Observer } from '../../src/plugin.ts'
import { SqliteOperations } from '../../src/stores/sqlite-operations.ts'
import { VERSION } from '../../src/version.ts'
import { adminOptions, askAdmin, metricsOf, sampleOf } from '../support/admin.ts'
import { ask } from '../support/ask.ts'
import { TestCluster } from '../support/clusters.ts'
import { Cuttable } from '../support/cuttable.ts'
import { codeOf, eventually, next } from '../support/events.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { startServer } from '../support/tunnel.ts'
import { within } from '../support/within.ts'

const echo = async (request: Request): Promise<Response> => {
  const { method, url, headers } = request
  const { pathname, search } = new URL(url)
  const forwarded = headers.get('x-forwarded-for')
  return new Response(
    `${method} ${pathname}${search} ${headers.get('host')} ${forwarded} ${await request.text()}`,
  )
}

test('a visitor at another server gets what it would get at the one that has the client', async () => {
  await using cluster = new TestCluster()
  const [a, b] = [await cluster.server(), await cluster.server()]
  await cluster.client({ server: a.url, subdomain: 'shop', fetch: echo })
  const options = {
    method: 'POST',
    path: '/a%2Fb?c=%20',
    body: 'x'.repeat(200_000),
    headers: { 'X-Own': '1' },
  }
  const [here, there] = [
    await ask(a.port, 'shop.localhost', options),
    await ask(b.port, 'shop.localhost', options),
  ]
  expect(here.status).toBe(200)
  expect(there).toEqual(here)
  expect(there.body).toStartWith('POST /a%2Fb?c=%20 shop.localhost 127.0.0.1 xxx')
  expect(cluster.errors).toEqual([])
})

test('a visitor who waits at a server that has just started goes on when the client comes to another', async () => {
  let questions = 0
  class Counting extends MemoryDirectory {
    override find(name: string) {
      questions++
      return super.find(name)
    }
  }
  const directory = new Counting()
  await using cluster = new TestCluster({}, () => Promise.resolve(directory))
  const a = await cluster.server()
  const b = await cluster.server({ limits: { startupHoldMs: 60_000 } })
  const answer = ask(b.port, 'shop.localhost')
  await eventually(() => questions === 1, 'the visitor to wait')
  await cluster.client({ server: a.url, subdomain: 'shop', fetch: () => new Response('hello') })
  expect(await answer).toMatchObject({ status: 200, body: 'hello' })
})

test('a visitor who comes while the directory has granted the name, and its server has not read that yet, waits for the tunnel', async () => {
  const granted = deferred()
  const asked = deferred()
  class Late extends MemoryDirectory {
    override async claim(...wish: Parameters<MemoryDirectory['claim']>) {
      const outcome = await super.claim(...wish)
      granted.resolve()
      await asked.promise
      return outcome
    }
    override async find(name: string) {
      const nodes = await super.find(name)
      // The answer is read first.
      setImmediate(asked.resolve)
      return nodes
    }
  }
  const directory = new Late()
  await using cluster = new TestCluster({}, () => Promise.resolve(directory))
  const a = await cluster.server()
  const connected = cluster.client({ server: a.url, subdomain: 'shop', fetch: echo })
  await granted.promise
  const { status } = await ask(a.port, 'shop.localhost')
  expect(status).toBe(200)
  await connected
})

test('a name is held once, and nobody but its holder takes it to another server', async () => {
  await using cluster = new TestCluster()
  const [a, b] = [await cluster.server(), await cluster.server()]
  await cluster.client({ server: a.url, subdomain: 'shop', fetch: echo, exact: true })
  const stranger = cluster.client({ server: b.url, subdomain: 'shop', exact: true, fetch: echo })
  expect(await stranger.catch((error: { code: string }) => error.code)).toBe('NAME_TAKEN')
  const json = cluster.client({ server: b.url, subdomain: 'shop', exact: true, wire: 'json', fetch: echo })
  expect(await json.catch((error: { code: string }) => error.code)).toBe('NAME_TAKEN')
  expect((await ask(b.port, 'shop.localhost')).status).toBe(200)
})

test('a name that is given back is free at all servers', async () => {
  await using cluster = new TestCluster()
  const [a, b] = [await cluster.server(), await cluster.server()]
  const first = await cluster.client({
    server: a.url,
    subdomain: 'shop',
    exact: true,
    fetch: () => new Response('first'),
  })
  expect((await ask(b.port, 'shop.localhost')).body).toBe('first')
  await first.disconnect()
  await cluster.client({ server: b.url, subdomain: 'shop', exact: true, fetch: () => new Response('second') })
  expect((await ask(b.port, 'shop.localhost')).body).toBe('second')
  await eventually(() => !('shop' in a.getStats(true)), 'the name to be gone')
  expect((await ask(a.port, 'shop.localhost')).body).toBe('second')
})

test('trailers, interim answers and WebSockets pass between servers', async () => {
  const app = createServer((request, answer) => {
    answer.writeEarlyHints({ link: '</a.css>; rel=preload' })
    answer.writeHead(200, { Trailer: 'X-Sum' })
    request.on('data', piece => answer.write(piece))
    request.on('end', () => {
      answer.addTrailers({ 'X-Sum': request.trailers['x-in'] ?? '' })
      answer.end()
    })
  })
  const sockets = new WebSocketServer({ server: app })
  sockets.on('connection', socket =>
    socket.on('message', (text, isBinary) => socket.send(text, { binary: isBinary })),
  )
  await new Promise<void>(resolve => app.listen(0, '127.0.0.1', resolve))
  try {
    await using cluster = new TestCluster()
    const [a, b] = [await cluster.server(), await cluster.server()]
    await cluster.client({ server: a.url, subdomain: 'shop', port: (app.address() as AddressInfo).port })
    const curl = Bun.spawn(
      [
        'curl',
        '-sS',
        '-i',
        '--raw',
        '-X',
        'POST',
        '-H',
        'Host: shop.localhost',
        '-H',
        'Transfer-Encoding: chunked',
        '--data-binary',
        'hello',
        `http://127.0.0.1:${b.port}/`,
      ],
      { stdout: 'pipe' },
    )
    const answer = await curl.stdout.text()
    expect(answer).toContain('HTTP/1.1 103 Early Hints')
    expect(answer).toContain('X-Sum:')
    const socket = new WebSocket(`ws://127.0.0.1:${b.port}/`, { headers: { Host: 'shop.localhost' } })
    const opened = within(
      new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject)),
      'open',
    )
    await opened
    const echoed = within(
      new Promise(resolve => socket.once('message', (text: Buffer) => resolve(text.toString()))),
      'the echo',
    )
    socket.send('through two servers')
    expect(await echoed).toBe('through two servers')
    socket.close()
  } finally {
    for (const client of sockets.clients) client.terminate()
    app.close()
  }
})

test('a visitor that leaves in the middle is gone at the app, too', async () => {
  await using cluster = new TestCluster()
  const [a, b] = [await cluster.server(), await cluster.server()]
  const cancelled = Promise.withResolvers<void>()
  const asked = Promise.withResolvers<void>()
  const app = createServer((_request, answer) => {
    asked.resolve()
    answer.on('close', () => cancelled.resolve())
  })
  await new Promise<void>(resolve => app.listen(0, '127.0.0.1', resolve))
  await cluster.client({ server: a.url, subdomain: 'slow', port: (app.address() as AddressInfo).port })
  const leaving = new AbortController()
  const asking = ask(b.port, 'slow.localhost', { signal: leaving.signal }).catch(() => {})
  await within(asked.promise, 'the request')
  leaving.abort()
  await within(cancelled.promise, 'the app to see it')
  await asking
  app.close()
})

test('the longest time of the server where a visitor comes ends its request at the app, too', async () => {
  await using cluster = new TestCluster()
  const a = await cluster.server({ limits: { originTimeoutMs: 600_000 } })
  const b = await cluster.server({ limits: { originTimeoutMs: 1_000, maxResponseTimeoutMs: 1_000 } })
  const cancelled = Promise.withResolvers<void>()
  const app = createServer((_request, answer) => void answer.on('close', () => cancelled.resolve()))
  await new Promise<void>(resolve => app.listen(0, '127.0.0.1', resolve))
  await cluster.client({ server: a.url, subdomain: 'slow', port: (app.address() as AddressInfo).port })
  const { status, code } = await within(ask(b.port, 'slow.localhost'), 'the refusal')
  expect({ status, code }).toEqual({ status: 504, code: 'ORIGIN_TIMEOUT' })
  await within(cancelled.promise, 'the app to see it')
  app.close()
})

test('custom domains are found at every server', async () => {
  await using cluster = new TestCluster()
  const options = { tokens: [{ token: 'secret', hosts: ['www.customer.example'] }] }
  const [a, b] = [await cluster.server(options), await cluster.server(options)]
  await cluster.client({
    server: a.url,
    token: 'secret',
    subdomain: 'shop',
    hosts: ['www.customer.example'],
    fetch: echo,
  })
  expect((await ask(b.port, 'www.customer.example', { path: '/x' })).body).toBe(
    'GET /x www.customer.example 127.0.0.1 ',
  )
  const other = cluster.client({
    server: b.url,
    token: 'secret',
    subdomain: 'other',
    hosts: ['www.customer.example'],
    fetch: echo,
  })
  expect(await other.catch((error: { code: string }) => error.code)).toBe('HOST_TAKEN')
})

test('members of a pool are at different servers', async () => {
  await using cluster = new TestCluster()
  const [a, b, c] = [await cluster.server(), await cluster.server(), await cluster.server()]
  for (const [server, text] of [
    [a, 'one'],
    [b, 'two'],
  ] as const)
    await cluster.client({
      server: server.url,
      subdomain: 'shop',
      pool: true,
      fetch: () => new Response(text),
    })
  const seen = new Set<string>()
  for (let count = 0; count < 100 && seen.size < 2; count++)
    seen.add((await ask(c.port, 'shop.localhost')).body)
  expect([...seen].sort()).toEqual(['one', 'two'])
  expect((await ask(a.port, 'shop.localhost')).body).toBe('one')
})

test('a guard decides at the server that has the client, by the address of the visitor', async () => {
  await using cluster = new TestCluster()
  const { guarding } = await import('../../src/plugins/guarding.ts')
  const options = { guarding: guarding() }
  const [a, b] = [await cluster.server(options), await cluster.server(options)]
  await cluster.client({ server: a.url, subdomain: 'shop', guard: { deny: ['127.0.0.1'] }, fetch: echo })
  const { status, code } = await ask(b.port, 'shop.localhost')
  expect([status, code]).toEqual([403, 'ADDRESS_REFUSED'])
})

test('a stranger is no server of the cluster, and cannot speak for visitors', async () => {
  await using cluster = new TestCluster()
  const [a] = [await cluster.server(), await cluster.server()]
  await cluster.client({
    server: a.url,
    subdomain: 'shop',
    fetch: request => new Response(request.headers.get('localtunnels-visitor') ?? 'none'),
  })
  const upgrade = {
    Connection: 'Upgrade',
    Upgrade: 'localtunnels-peer',
    Authorization: `Peer ${'A'.repeat(43)}`,
  }
  expect((await ask(a.port, 'localhost', { headers: upgrade })).code).toBe('TOKEN_REFUSED')
  // On its own connection the line says nothing, and the app does not get it.
  const headers = { 'Localtunnels-Visitor': 'https 1 6.6.6.6' }
  expect((await ask(a.port, 'shop.localhost', { headers })).body).toBe('none')
})

test('the operator sees the servers that live; one that is alone says so', async () => {
  await using cluster = new TestCluster()
  const admin = adminOptions()
  const [a, b] = [await cluster.server({ admin }), await cluster.server()]
  await cluster.client({ server: b.url, subdomain: 'shop', fetch: echo })
  await ask(a.port, 'shop.localhost')
  await cluster.client({ server: a.url, subdomain: 'blog', fetch: echo })
  await ask(a.port, 'blog.localhost')
  const { status, body } = await askAdmin(a, '/nodes')
  expect(status).toBe(200)
  const row = (port: number, isSelf: boolean, load: object) => ({
    id: expect.any(String),
    url: `http://127.0.0.1:${port}`,
    isSelf,
    isReachable: true,
    inFlight: 0,
    version: VERSION,
    uptimeSeconds: expect.any(Number),
    pending: 0,
    ...load,
  })
  expect(body.nodes).toHaveLength(2)
  // As each reported last: this one just now, the other when it began.
  expect(body.nodes).toEqual(
    expect.arrayContaining([
      // The other one has no admin listener, and measures nothing.
      row(a.port, true, {
        clients: 1,
        tunnels: 1,
        requests: 1,
        recent: expect.objectContaining({ requests: 1, errors: 0 }),
      }),
      row(b.port, false, { clients: 0, tunnels: 0, requests: 0 }),
    ]),
  )
  const sample = async (name: string) => sampleOf(await metricsOf(a), `localtunnels_cluster_${name}`)
  expect([await sample('servers'), await sample('reachable'), await sample('requests_pending')]).toEqual([
    2, 1, 0,
  ])
  expect(await sample('entries{table="servers"}')).toBe(2)
  const banned = await askAdmin(a, '/bans', { method: 'POST', body: { value: '192.0.2.1' } })
  expect([banned.status, await sample('entries{table="bans"}')]).toEqual([201, 1])
  await b.stop()
  while ((await sample('servers')) !== 1) await Bun.sleep(1)
  await using alone = await startServer({ admin })
  expect(await metricsOf(alone)).not.toContain('localtunnels_cluster_')
  expect((await askAdmin(alone, '/nodes')).body).toEqual({ isClustered: false, nodes: [] })
})

test('each operator sees the tunnels and clients of all servers; a pool has one row, and a server that ends takes its own along', async () => {
  await using cluster = new TestCluster()
  const admin = adminOptions()
  const a = await cluster.server({ admin })
  const intervals = spyOn(globalThis, 'setInterval')
  const b = await cluster.server({ admin })
  const reports = intervals.mock.calls
    .filter(([, ms]) => ms === 10_000)
    .map(([report]) => report as () => void)
  intervals.mockRestore()
  const pool = { pool: true, subdomain: 'shop', fetch: echo } as const
  await cluster.client({ server: a.url, ...pool })
  await cluster.client({ server: b.url, ...pool })
  await cluster.client({ server: b.url, subdomain: 'blog', fetch: echo })
  await ask(b.port, 'blog.localhost')
  const [self] = (await askAdmin(b, '/nodes')).body.nodes.filter((row: { isSelf: boolean }) => row.isSelf)
  const tunnels = async () => (await askAdmin(a, '/tunnels')).body.tunnels
  const blog = async () => (await tunnels()).find((row: { name: string }) => row.name === 'blog')
  for (const report of reports) report()
  while ((await blog()) === undefined) await Bun.sleep(1)
  expect(await blog()).toMatchObject({ server: self.id, clients: [], recent: { requests: 1 } })
  expect((await tunnels()).filter((row: { name: string }) => row.name === 'shop')).toEqual([
    expect.objectContaining({ clients: [expect.any(Number)] }),
  ])
  const { body } = await askAdmin(a, '/views/tunnels?q=blog')
  expect(body).toMatchObject({ matching: 1, head: { counts: { servers: 2 } } })
  const { rows } = (await askAdmin(a, '/views/clients?q=blog')).body
  expect(rows).toEqual([expect.objectContaining({ server: self.id, tunnels: ['blog'] })])
  const { status } = await askAdmin(a, '/tunnels/blog', { method: 'DELETE' })
  expect(status).toBe(404)
  await b.stop()
  while ((await blog()) !== undefined) await Bun.sleep(1)
})

test('graphs of one server show the traffic of all, of one of them, and where each was measured', async () => {
  await using cluster = new TestCluster()
  const [ownStore, farStore] = [new SqliteOperations(':memory:'), new SqliteOperations(':memory:')]
  const MINUTE_MS = 60_000
  const now = Date.now()
  const row = (requests: number) => ({ tunnel: 'shop', requests, errors: 1, bytesIn: 10, bytesOut: 20 })
  ownStore.add(now - 10 * MINUTE_MS, [row(5)])
  for (const minutes of [10, 20]) farStore.add(now - minutes * MINUTE_MS, [row(7)])
  for (const tunnel of ['', 'blog'])
    farStore.add(now - 20 * MINUTE_MS, [{ ...row(tunnel === '' ? 0 : 3), tunnel }])
  const a = await cluster.server({ admin: adminOptions({ store: ownStore }) })
  const intervals = spyOn(globalThis, 'setInterval')
  const b = await cluster.server({ admin: adminOptions({ store: farStore }) })
  await cluster.client({ server: b.url, subdomain: 'blog', fetch: echo })
  const reports = intervals.mock.calls
    .filter(([, ms]) => ms === 10_000)
    .map(([report]) => report as () => void)
  intervals.mockRestore()
  const [{ id }] = (await askAdmin(b, '/nodes')).body.nodes.filter((one: { isSelf: boolean }) => one.isSelf)
  const requests = async (query: string) => {
    const { body } = await askAdmin(a, `/traffic?by=minute${query}`)
    const isOld = (one: { at: string }) => now - Date.parse(one.at) > 5 * MINUTE_MS
    return body.traffic.filter(isOld).map((one: { requests: number }) => one.requests)
  }
  // Twice: the second report has the past from the first.
  for (const report of [...reports, ...reports]) report()
  while ((await requests(`&server=${id}`)).length < 2) await Bun.sleep(1)
  expect([await requests(''), await requests(`&server=${id}`), await requests('&tunnel=shop')]).toEqual([
    [12, 10],
    [7, 10],
    [5],
  ])
  // Nobody has looked at it before: its server reports it at once.
  expect(await requests('&tunnel=blog')).toEqual([3])
  const { open } = (await askAdmin(a, '/views/tunnels?tunnel=blog')).body
  expect(open.clients).toHaveLength(1)
  expect(open.series.points.filter((one: { requests: number } | null) => one?.requests)).toHaveLength(1)
  const { body } = await askAdmin(a, `/views/traffic?server=${id}`)
  expect(body.servers).toHaveLength(2)
  expect(body.series.points.filter((one: { requests: number } | null) => one?.requests)).toHaveLength(2)
  const overview = (await askAdmin(a, '/views/overview')).body
  expect(overview.servers).toContainEqual(
    expect.objectContaining({
      recent: expect.objectContaining({ processors: expect.any(Number), memoryBytes: expect.any(Number) }),
    }),
  )
  await b.stop()
  while ((await requests('')).length > 1) await Bun.sleep(1)
})

// ── Failures ─────────────────────────────────────────────────────────────────────────────────────────────────────

test('a server stops: its client goes to another, with its name, and no request fails meanwhile', async () => {
  await using cluster = new TestCluster()
  const [a, b, c] = [await cluster.server(), await cluster.server(), await cluster.server()]
  const client = await cluster.client({ server: [a.url, b.url], subdomain: 'shop', exact: true, fetch: echo })
  const name = client.url?.replace(/:\d+$/, '')
  let isOver = false
  const failures: string[] = []
  const visitors = [b, c].map(async server => {
    while (!isOver) {
      const { status, code } = await ask(server.port, 'shop.localhost')
      if (status !== 200) failures.push(`${status} ${code}`)
    }
  })
  const again = next(client, 'connected')
  await a.stop()
  const { url } = await again
  expect(url.replace(/:\d+$/, '')).toBe(name ?? '')
  for (let count = 0; count < 20; count++) expect((await ask(c.port, 'shop.localhost')).status).toBe(200)
  isOver = true
  await Promise.all(visitors)
  expect(failures).toEqual([])
})

test('a server stops: its client is at another one before it ends what is under way', async () => {
  await using cluster = new TestCluster()
  const [a, b] = [await cluster.server(), await cluster.server()]
  const { promise: slow, resolve: end } = Promise.withResolvers<Response>()
  const client = await cluster.client({
    server: [a.url, b.url],
    subdomain: 'shop',
    fetch: ({ url }) => (url.endsWith('/slow') ? slow : new Response('hello')),
  })
  const underWay = ask(a.port, 'shop.localhost', { path: '/slow' })
  await next(client, 'request')
  const again = next(client, 'connected')
  const stopped = a.stop()
  const { url } = await within(again, 'the client to connect elsewhere')
  expect(url).toContain(`:${b.port}`)
  expect((await ask(b.port, 'shop.localhost')).body).toBe('hello')
  end(new Response('done'))
  expect((await underWay).body).toBe('done')
  await within(stopped, 'the server to stop')
  expect((await ask(b.port, 'shop.localhost')).body).toBe('hello')
  expect(cluster.errors).toEqual([])
})

test('without its directory a server serves its own names and those it knows, and refuses what it cannot know', async () => {
  const memory = new MemoryDirectory()
  const directories: Cuttable[] = []
  const open = (): Promise<Directory> => {
    const one = new Cuttable(memory)
    directories.push(one)
    return Promise.resolve(one)
  }
  await using cluster = new TestCluster({}, open)
  const [a, b] = [await cluster.server(), await cluster.server()]
  await cluster.client({ server: a.url, subdomain: 'shop', fetch: echo })
  await cluster.client({ server: a.url, subdomain: 'never-asked', fetch: echo })
  expect((await ask(b.port, 'shop.localhost')).status).toBe(200)
  for (const one of directories) one.isCut = true
  expect((await ask(a.port, 'shop.localhost')).status).toBe(200)
  expect((await ask(b.port, 'shop.localhost')).status).toBe(200)
  expect((await ask(b.port, 'never-asked.localhost')).code).toBe('CLUSTER_UNREACHABLE')
  const late = cluster.client({ server: b.url, subdomain: 'late', fetch: echo })
  expect(await late.catch((error: { code: string }) => error.code)).toBe('CLUSTER_UNREACHABLE')
  for (const one of directories) one.isCut = false
  expect((await ask(b.port, 'never-asked.localhost')).status).toBe(200)
})

test('without its directory a server registers clients where the operator says so, and others find them once it is back', async () => {
  const memory = new MemoryDirectory()
  const directories: Cuttable[] = []
  const open = (): Promise<Directory> => {
    const one = new Cuttable(memory)
    directories.push(one)
    return Promise.resolve(one)
  }
  await using cluster = new TestCluster({ nodeMs: 150 }, open)
  const options = { cluster: { whenUnreachable: 'grant' } } as const
  const [a, b] = [await cluster.server(options), await cluster.server(options)]
  for (const one of directories) one.isCut = true
  await cluster.client({ server: b.url, subdomain: 'late', exact: true, fetch: echo })
  expect((await ask(b.port, 'late.localhost')).status).toBe(200)
  expect((await ask(a.port, 'late.localhost')).code).toBe('CLUSTER_UNREACHABLE')
  for (const one of directories) one.isCut = false
  while ((await ask(a.port, 'late.localhost')).status !== 200) await Bun.sleep(1)
})

test('a client that has as many tunnels as it may comes back to its server, and keeps them', async () => {
  await using cluster = new TestCluster()
  const server = await cluster.server({ tokens: [{ token: 'secret', maxTunnels: 1 }] })
  using way = new TcpProxy(server.port)
  const client = await cluster.client({
    server: `http://127.0.0.1:${way.port}`,
    token: 'secret',
    subdomain: 'shop',
    exact: true,
    fetch: echo,
  })
  const refused: string[] = []
  server.on('refused', ({ code }) => refused.push(code))
  const back = next(client, 'connected')
  way.cutAll()
  await within(back, 'the client to be back')
  expect(refused).toEqual([])
  expect((await ask(server.port, 'shop.localhost')).status).toBe(200)
  expect(await codeOf(client.http({ subdomain: 'blog', fetch: echo }))).toBe('CLIENT_LIMIT')
})

test('a request that waited for a client that came back at another server is at that one alone, as its visitor sent it', async () => {
  const ended: (string | undefined)[] = []
  let kept = 0
  const password: Guard = {
    name: 'password',
    admit({ head }) {
      if (head?.header('authorization') !== 'Basic c2VjcmV0') return {}
      const whileOpen = () => {
        kept++
        return () => void kept--
      }
      return { withoutHeaders: ['authorization'], whileOpen }
    },
  }
  const observer: Observer = { name: 'ends', ended: (_, { code }) => void ended.push(code) }
  await using cluster = new TestCluster()
  const a = await cluster.server({ guards: [password], observers: [observer] })
  const b = await cluster.server({ guards: [password] })
  using toA = new TcpProxy(a.port)
  using toB = new TcpProxy(b.port)
  const server = [toA, toB].map(({ port }) => `http://127.0.0.1:${port}`)
  await cluster.client({ server, subdomain: 'shop', exact: true, fetch: echo })
  for (const way of [toA, toB]) way.isDown = true
  toA.cutAll()
  await eventually(() => a.getStats().connections === 0, 'the server to see that its client is gone')
  const headers = { Authorization: 'Basic c2VjcmV0' }
  const visit = ask(a.port, 'shop.localhost', { method: 'POST', body: 'order', headers })
  await eventually(() => a.getStats().pendingResponses === 1, 'the request to wait')
  toB.isDown = false
  expect(await visit).toMatchObject({ status: 200, body: 'POST / shop.localhost 127.0.0.1 order' })
  await eventually(() => kept === 0, 'the guards to know that it is over')
  expect(a.getStats().pendingResponses).toBe(0)
  expect(b.getStats().pendingResponses).toBe(0)
  // Here it is over without an answer.
  expect(ended).toEqual(['CLUSTER_MOVED'])
})

test('a WebSocket that another server sends to one that stops goes where the client goes', async () => {
  let end = (): void => {}
  const app = createServer(({ url }, answer) => {
    if (url === '/slow') end = () => void answer.end('slow')
    else answer.end('quick')
  })
  const sockets = new WebSocketServer({ server: app })
  sockets.on('connection', socket => socket.on('message', text => socket.send(text, { binary: false })))
  await new Promise<void>(resolve => app.listen(0, '127.0.0.1', resolve))
  let questions = 0
  class Counting extends MemoryDirectory {
    override find(name: string) {
      questions++
      return super.find(name)
    }
  }
  const directory = new Counting()
  try {
    await using cluster = new TestCluster({}, () => Promise.resolve(directory))
    const a = await cluster.server({ limits: { drainTimeoutMs: 60_000 } })
    const [b, c] = [await cluster.server(), await cluster.server()]
    using toC = new TcpProxy(c.port)
    toC.isDown = true
    const server = [a.url, `http://127.0.0.1:${toC.port}`]
    const { port } = app.address() as AddressInfo
    await cluster.client({ server, subdomain: 'shop', exact: true, port })
    // Until it ends the server that stops is there.
    const slow = ask(a.port, 'shop.localhost', { path: '/slow' })
    await eventually(() => a.getStats().pendingResponses === 1, 'the request')
    // The other server remembers where the name is, and keeps its connection, as the visitor keeps its own.
    const quick = await fetch(b.url, { headers: { host: 'shop.localhost' } })
    expect(await quick.text()).toBe('quick')
    const stopped = a.stop()
    await eventually(() => a.getStats().status !== 'operational', 'the server to stop')
    const socket = new WebSocket(`ws://127.0.0.1:${b.port}/`, { headers: { Host: 'shop.localhost' } })
    const opened = new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject))
    // It has learned that the name is not there, and asks where it is.
    const before = questions
    await Promise.race([opened, eventually(() => questions > before, 'the server to ask again')])
    toC.isDown = false
    await within(opened, 'the WebSocket to open')
    const echoed = new Promise(resolve => socket.once('message', (text: Buffer) => resolve(text.toString())))
    socket.send('hello')
    expect(await within(echoed, 'the echo')).toBe('hello')
    socket.terminate()
    end()
    expect((await slow).body).toBe('slow')
    await stopped
  } finally {
    sockets.close()
    app.close()
  }
})

test('of two holders that a partition made, the one with the lower epoch gives up', async () => {
  const memory = new MemoryDirectory()
  const directories: Cuttable[] = []
  const open = (): Promise<Directory> => {
    const one = new Cuttable(memory)
    directories.push(one)
    return Promise.resolve(one)
  }
  await using cluster = new TestCluster({ nodeMs: 150, leaseMs: 300 }, open)
  const [a, b] = [await cluster.server(), await cluster.server()]
  const first = await cluster.client({
    server: a.url,
    subdomain: 'shop',
    exact: true,
    reconnect: false,
    fetch: () => new Response('first'),
  })
  const [cut] = directories
  if (cut === undefined) throw new Error('no directory')
  cut.isCut = true
  let claimed: unknown
  // Until the lease of the server that gives no sign of life is over.
  while (claimed === undefined)
    claimed = await cluster
      .client({ server: b.url, subdomain: 'shop', exact: true, fetch: () => new Response('second') })
      .catch(() => undefined)
  expect((await ask(a.port, 'shop.localhost')).body).toBe('first')
  const lost = next(first, 'close')
  cut.isCut = false
  await lost
  expect((await ask(a.port, 'shop.localhost')).body).toBe('second')
  expect((await ask(b.port, 'shop.localhost')).body).toBe('second')
})
