// A pool whose clients all get a copy of each request, with clients at several servers.

import { expect, test } from 'bun:test'
import type { TunnelClientOptions } from '../../src/client/options.ts'
import type { Guard } from '../../src/plugin.ts'
import type { TunnelServer } from '../../src/tunnel-server.ts'
import { ask } from '../support/ask.ts'
import { TestCluster } from '../support/clusters.ts'
import { eventually } from '../support/events.ts'

/** What each developer's app got. */
class Team implements AsyncDisposable {
  readonly cluster = new TestCluster()
  readonly got: string[] = []

  async join(
    server: TunnelServer,
    label: string,
    status = 200,
    options: Partial<TunnelClientOptions> = {},
  ): Promise<void> {
    await this.cluster.client({
      server: server.url,
      subdomain: 'hooks',
      exact: true,
      pool: { to: 'all', label, ...(typeof options.pool === 'object' && options.pool) },
      ...(options.filter !== undefined && { filter: options.filter }),
      fetch: async request => {
        this.got.push(`${label} ${request.method} ${new URL(request.url).pathname} ${await request.text()}`)
        return new Response(label, { status, headers: { 'x-app': label } })
      },
      ...(options.fetch !== undefined && { fetch: options.fetch }),
    })
  }

  async has(...wanted: string[]): Promise<void> {
    await eventually(() => this.got.length >= wanted.length, 'the copies')
    expect(this.got.splice(0).toSorted()).toEqual(wanted.toSorted())
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.cluster[Symbol.asyncDispose]()
  }
}

const post = (server: TunnelServer, body: string, headers: Record<string, string> = {}) =>
  ask(server.port, 'hooks.localhost', { method: 'POST', path: '/paid', body, headers })

test('a request that comes to any server reaches the clients of all, once', async () => {
  await using team = new Team()
  const { cluster } = team
  const [a, b, c] = [await cluster.server(), await cluster.server(), await cluster.server()]
  await team.join(a, 'anna', 500)
  await team.join(b, 'bert', 201)
  await team.join(b, 'carl', 500)
  for (const [at, server] of [a, b, c, a, b, c].entries()) {
    const headers: Record<string, string> = at > 2 ? { 'transfer-encoding': 'chunked' } : {}
    const body = `${at} ${'x'.repeat(at * 20_000)}`
    const answer = await post(server, body, headers)
    // The only good one.
    expect([answer.status, answer.body]).toEqual([201, 'bert'])
    await team.has(`anna POST /paid ${body}`, `bert POST /paid ${body}`, `carl POST /paid ${body}`)
  }
})

test('the answer of a named client counts, wherever it is', async () => {
  await using team = new Team()
  const { cluster } = team
  const [a, b] = [await cluster.server(), await cluster.server()]
  const pool = { to: 'all', response: 'bert' } as const
  await team.join(a, 'anna', 200, { pool })
  await team.join(b, 'bert', 409, { pool })
  await team.join(b, 'carl', 200, { pool })
  for (const server of [a, b]) {
    const url = `http://hooks.localhost:${server.port}/paid`
    const answer = await fetch(url, { method: 'POST', body: 'x' })
    expect([answer.status, await answer.text(), answer.headers.get('x-app')]).toEqual([409, 'bert', 'bert'])
    // What servers say to each other is theirs.
    expect([...answer.headers.keys()].filter(name => name.startsWith('localtunnels'))).toEqual([])
    await team.has('anna POST /paid x', 'bert POST /paid x', 'carl POST /paid x')
  }
})

test('an app cannot say that its answer counts', async () => {
  await using team = new Team()
  const { cluster } = team
  const [a, b, c] = [await cluster.server(), await cluster.server(), await cluster.server()]
  const pool = { to: 'all', response: 'anna' } as const
  await cluster.client({
    server: a.url,
    subdomain: 'hooks',
    exact: true,
    pool: { ...pool, label: 'anna' },
    fetch: async () => {
      // By then the other app's answer is at the visitor's server: nothing says so when all is well, because the server waits.
      await Bun.sleep(200)
      return new Response('anna')
    },
  })
  await team.join(b, 'bert', 200, {
    pool,
    fetch: () => new Response('bert', { headers: { 'localtunnels-counts': '1' } }),
  })
  await team.join(c, 'carl', 200, { pool })
  expect((await post(c, 'x')).body).toBe('anna')
})

test('what no client takes at any server is said, and filters hold at each', async () => {
  await using team = new Team()
  const { cluster } = team
  const [a, b] = [await cluster.server(), await cluster.server()]
  await team.join(a, 'anna', 200, { filter: 'body:one' })
  await team.join(b, 'bert', 200, { filter: 'body:two' })
  for (const server of [a, b]) {
    expect((await post(server, 'one')).body).toBe('anna')
    expect((await post(server, 'two')).body).toBe('bert')
    const neither = await post(server, 'three')
    expect([neither.status, neither.code]).toEqual([404, 'FILTERED_OUT'])
    await team.has('anna POST /paid one', 'bert POST /paid two')
  }
})

test('a visitor cannot say to clients of another server that its request has waited', async () => {
  await using cluster = new TestCluster()
  const servers = [await cluster.server(), await cluster.server()]
  const seen: string[] = []
  for (const { url } of servers)
    await cluster.client({
      server: url,
      subdomain: 'hooks',
      exact: true,
      pool: { to: 'all' },
      fetch: request => {
        seen.push(request.headers.get('x-localtunnels-received') ?? 'none')
        return new Response()
      },
    })
  const [a] = servers as [TunnelServer]
  await post(a, 'x', { 'x-localtunnels-received': '2001-01-01T00:00:00.000Z' })
  await eventually(() => seen.length === 2, 'both copies')
  expect(seen).toEqual(['none', 'none'])
})

test('a server that is gone keeps nobody waiting for its copy', async () => {
  await using team = new Team()
  const { cluster } = team
  const [a, b] = [await cluster.server(), await cluster.server()]
  await team.join(a, 'anna', 500)
  await team.join(b, 'bert')
  await post(a, 'x')
  await b.stop()
  expect((await post(a, 'y')).body).toBeOneOf(['anna', 'bert'])
  await eventually(() => team.got.some(one => one.startsWith('anna') && one.endsWith('y')), 'the copy')
})

test('the guards of the first server are asked, once, and the visitor gets its lines', async () => {
  await using team = new Team()
  const asked: string[] = []
  const guard = (name: string): Guard => ({
    name,
    admit() {
      asked.push(name)
      return { responseHeaders: [['x-guard', name]] }
    },
  })
  const { cluster } = team
  const a = await cluster.server({ guards: [guard('a')], tracing: true })
  const b = await cluster.server({ guards: [guard('b')], tracing: true })
  await team.join(a, 'anna', 500)
  await team.join(b, 'bert')
  const answer = await fetch(`http://hooks.localhost:${a.port}/paid`, { method: 'POST', body: 'x' })
  expect([await answer.text(), answer.headers.get('x-guard')]).toEqual(['bert', 'a'])
  expect(answer.headers.get('x-request-id')).toMatch(/^[^,]+$/)
  await team.has('anna POST /paid x', 'bert POST /paid x')
  await post(b, 'y')
  await team.has('anna POST /paid y', 'bert POST /paid y')
  expect(asked).toEqual(['a', 'b'])
})
