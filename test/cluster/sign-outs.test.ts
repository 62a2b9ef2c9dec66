// A visitor who signs out at one server of a cluster is signed out at all of them.

import { describe, expect, test } from 'bun:test'
import { guarding } from '../../src/plugins/guarding.ts'
import { MAX_SHARED_ENDS, SessionStore } from '../../src/plugins/sessions.ts'
import type { TunnelServer } from '../../src/tunnel-server.ts'
import { ask } from '../support/ask.ts'
import { TestCluster } from '../support/clusters.ts'
import { type Directories, memoryDirectories, redisDirectories } from '../support/directories.ts'
import { describeWith } from '../support/needs.ts'

const PASSWORD = 'correct horse'
const HOST = 'shop.localhost'

/** Each has a client of the pool, so that each judges the visitors who come to it. Its answer to /feed does not end. */
async function serverOf(cluster: TestCluster): Promise<TunnelServer> {
  const server = await cluster.server({ guarding: guarding() })
  await cluster.client({
    server: server.url,
    subdomain: 'shop',
    pool: true,
    guard: { password: PASSWORD, secret: 's'.repeat(32) },
    fetch: ({ url }) =>
      new Response(
        new URL(url).pathname === '/feed'
          ? new ReadableStream({ start: controller => controller.enqueue(new TextEncoder().encode('first')) })
          : 'in',
      ),
  })
  return server
}

async function signIn({ port }: TunnelServer): Promise<string> {
  const form = await fetch(`http://127.0.0.1:${port}/.localtunnels/password`, {
    method: 'POST',
    redirect: 'manual',
    headers: { host: HOST },
    body: new URLSearchParams({ to: '/', password: PASSWORD }),
  })
  return form.headers.getSetCookie()[0]?.split(';')[0] ?? ''
}

const statusOf = async ({ port }: TunnelServer, cookie: string) =>
  (await ask(port, HOST, { headers: { cookie } })).status

/** An answer that lasts: `true` once it is cut, `false` when it ends as a whole one. */
async function feedOf({ port }: TunnelServer, cookie: string): Promise<{ readonly isCut: Promise<boolean> }> {
  const { body } = await fetch(`http://127.0.0.1:${port}/feed`, { headers: { host: HOST, cookie } })
  const reader = body!.getReader()
  await reader.read()
  return {
    isCut: reader.read().then(
      () => false,
      () => true,
    ),
  }
}

test('one tunnel tells the others of so many sign-outs at a time, and knows of the rest itself', () => {
  const told = new Set<string>()
  const marks = {
    has: () => false,
    take: () => Promise.resolve(true),
    end: (id: string) => told.add(id),
    hasEnded: (id: string) => told.has(id),
    onEnd: () => () => {},
  }
  const book = new SessionStore('k'.repeat(32), 60_000, [], undefined, { marks })
  const other = new SessionStore('k'.repeat(32), 60_000, [], undefined, { marks })
  for (let index = 0; index <= MAX_SHARED_ENDS; index++) book.end(`session ${index}`, Date.now() + 60_000)
  expect(told.size).toBe(MAX_SHARED_ENDS)
  const [last, first] = [`session ${MAX_SHARED_ENDS}`, 'session 0']
  expect([book.hasEnded(last), book.hasEnded(first)]).toEqual([true, true])
  expect([other.hasEnded(last), other.hasEnded(first)]).toEqual([false, true])
})

function suite(directories: () => Promise<Directories>): void {
  test('the session ends everywhere, with the answers that last; others go on, also at a server that starts later', async () => {
    await using kept = await directories()
    await using cluster = new TestCluster({}, kept.open)
    const [a, b] = [await serverOf(cluster), await serverOf(cluster)]
    const [anna, ben] = [await signIn(a), await signIn(a)]
    for (const server of [a, b]) expect(await statusOf(server, anna)).toBe(200)
    const feed = await feedOf(b, anna)
    const other = await feedOf(b, ben)
    let isOver = false
    void other.isCut.then(() => {
      isOver = true
    })
    const headers = { cookie: anna }
    expect((await ask(a.port, HOST, { method: 'POST', path: '/.localtunnels/logout', headers })).status).toBe(
      200,
    )
    expect(await feed.isCut).toBe(true)
    for (const server of [a, b, await serverOf(cluster)]) {
      expect(await statusOf(server, anna)).toBe(401)
      expect(await statusOf(server, ben)).toBe(200)
    }
    expect(isOver).toBe(false)
  })
}

describe('with a directory in memory', () => suite(memoryDirectories))
for (const program of ['redis-server', 'valkey-server'] as const)
  describeWith([program], program, () => suite(() => redisDirectories(program)))
