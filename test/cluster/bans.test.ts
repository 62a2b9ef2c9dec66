// A ban of one server is in force at all servers of the cluster.

import { describe, expect, test } from 'bun:test'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MemoryDirectory } from '../../src/directories/memory.ts'
import { RedisDirectory } from '../../src/directories/redis.ts'
import type { Directory } from '../../src/directory.ts'
import { SqliteOperations } from '../../src/stores/sqlite-operations.ts'
import type { TunnelServer } from '../../src/tunnel-server.ts'
import { adminOptions, askAdmin } from '../support/admin.ts'
import { ask } from '../support/ask.ts'
import { TestCluster } from '../support/clusters.ts'
import { Cuttable } from '../support/cuttable.ts'
import { type Directories, memoryDirectories, redisDirectories } from '../support/directories.ts'
import { next } from '../support/events.ts'
import { describeWith } from '../support/needs.ts'
import { Redis } from '../support/redis.ts'

const admin = adminOptions()
const open = () => new Response('open')

/** Asks until the visitor has this answer. Returns how long that took, in ms. */
async function untilAnswer(server: TunnelServer, host: string, wanted: string): Promise<number> {
  const from = performance.now()
  for (;;) {
    const { code, body } = await ask(server.port, host)
    if ((code ?? body) === wanted || body === wanted) return performance.now() - from
    if (performance.now() - from > 10_000) throw new Error(`${host} is ${code} and not ${wanted}`)
  }
}

async function ban(
  server: TunnelServer,
  value: string,
  kind: 'address' | 'tunnel' = 'address',
): Promise<number> {
  const { status, body } = await askAdmin(server, '/bans', { method: 'POST', body: { kind, value } })
  expect(status).toBe(201)
  return body.id
}

function suite(directories: () => Promise<Directories>): void {
  test('an address that one server bans is banned at the others within a second, also without an admin listener', async () => {
    await using kept = await directories()
    await using cluster = new TestCluster({}, kept.open)
    const [a, b, c] = [
      await cluster.server({ admin }),
      await cluster.server(),
      await cluster.server({ admin }),
    ]
    const client = await cluster.client({ server: b.url, subdomain: 'shop', reconnect: false, fetch: open })
    await untilAnswer(b, 'shop.localhost', 'open')
    // The client is cut at the server that has it.
    const cut = next(client, 'close')
    const id = await ban(a, '127.0.0.0/8')
    await cut
    const late = cluster.client({ server: b.url, subdomain: 'late', reconnect: false, fetch: open })
    expect(await late.catch((error: { code: string }) => error.code)).toBe('BLOCKED')
    expect((await askAdmin(c, '/bans')).body.bans).toMatchObject([{ id, value: '127.0.0.0/8' }])
    const d = await cluster.server()
    const later = cluster.client({ server: d.url, subdomain: 'late', reconnect: false, fetch: open })
    expect(await later.catch((error: { code: string }) => error.code)).toBe('BLOCKED')
    // Any server takes it back.
    expect((await askAdmin(c, `/bans/${id}`, { method: 'DELETE' })).status).toBe(200)
    await cluster.client({ server: c.url, subdomain: 'back', fetch: open })
    for (const server of [a, b, c, d])
      expect(await untilAnswer(server, 'back.localhost', 'open')).toBeLessThan(1_000)
  })

  test('what a stranger, or a newer server, writes into a table stops no server', async () => {
    await using kept = await directories()
    await using cluster = new TestCluster({}, kept.open)
    const a = await cluster.server({ admin })
    const { tables } = await kept.open()
    const strange = ['x', 'null', '{}', '{"kind":"address","value":"999","reason":"","sinceMs":1}', '[1]']
    const entries = strange.map((value, index) => ({ key: `${index}`, value, version: 1, untilMs: 0 }))
    for (const table of ['bans', 'revocations', 'servers', 'used', 'answers', 'unknown'])
      expect(await tables?.put(table, entries, 100)).toEqual(Array(5).fill('written'))
    const b = await cluster.server({ admin })
    const id = await ban(a, '192.0.2.1')
    for (const server of [a, b]) {
      while ((await askAdmin(server, '/bans')).body.bans.length < 1) await Bun.sleep(1)
      expect((await askAdmin(server, '/bans')).body.bans).toMatchObject([{ id, value: '192.0.2.1' }])
      expect((await askAdmin(server, '/nodes')).body.nodes).toHaveLength(2)
    }
    expect(cluster.errors).toEqual([])
  })

  test('a tunnel that one server bans is taken back at the server that has it', async () => {
    await using kept = await directories()
    await using cluster = new TestCluster({}, kept.open)
    const [a, b] = [await cluster.server({ admin }), await cluster.server()]
    await cluster.client({ server: b.url, subdomain: 'shop', reconnect: false, fetch: open })
    await untilAnswer(a, 'shop.localhost', 'open')
    await ban(a, 'shop', 'tunnel')
    expect(await untilAnswer(b, 'shop.localhost', 'TUNNEL_NOT_FOUND')).toBeLessThan(1_000)
    const again = cluster.client({
      server: b.url,
      subdomain: 'shop',
      reconnect: false,
      exact: true,
      fetch: open,
    })
    expect(await again.catch((error: { code: string }) => error.code)).toBe('BLOCKED')
  })

  test('what a server kept from its last run is brought along, unless it was taken back meanwhile', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'localtunnels-bans-'))
    await using kept = await directories()
    await using cluster = new TestCluster({}, kept.open)
    const stores: SqliteOperations[] = []
    const store = (name: string) => {
      const one = new SqliteOperations(join(folder, name))
      stores.push(one)
      return adminOptions({ store: one })
    }
    try {
      // From before the cluster: both have one with the id 1.
      for (const [name, value] of [
        ['a.db', '192.0.2.1'],
        ['b.db', '192.0.2.2'],
      ] as const) {
        const before = new SqliteOperations(join(folder, name))
        before.saveBan({ kind: 'address', value, reason: '', sinceMs: Date.now() })
        before.close()
      }
      const a = await cluster.server({ admin: store('a.db') })
      const b = await cluster.server({ admin: store('b.db') })
      const valuesOf = async (server: TunnelServer): Promise<unknown> =>
        (await askAdmin(server, '/bans')).body.bans.map((one: { value: string }) => one.value).sort()
      while ((await askAdmin(a, '/bans')).body.bans.length < 2) await Bun.sleep(1)
      for (const server of [a, b]) expect(await valuesOf(server)).toEqual(['192.0.2.1', '192.0.2.2'])
      await b.stop()
      const { bans } = (await askAdmin(a, '/bans')).body
      for (const { id } of bans) await askAdmin(a, `/bans/${id}`, { method: 'DELETE' })
      const again = await cluster.server({ admin: store('b.db') })
      for (const server of [a, again]) expect(await valuesOf(server)).toEqual([])
      await again.stop()
      const alone = new SqliteOperations(join(folder, 'b.db'))
      expect(alone.bans()).toEqual([])
      alone.close()
    } finally {
      for (const server of cluster.servers) await server.stop()
      for (const one of stores) one.close()
      await rm(folder, { recursive: true })
    }
  })
}

describe('with a directory in memory', () => {
  suite(memoryDirectories)

  test('a server that was cut off when others banned keeps them away when it is back', async () => {
    const memory = new MemoryDirectory()
    const ways: Cuttable[] = []
    const open = (): Promise<Directory> => {
      const way = new Cuttable(memory)
      ways.push(way)
      return Promise.resolve(way)
    }
    await using cluster = new TestCluster({ nodeMs: 150 }, open)
    const [a, b] = [await cluster.server({ admin }), await cluster.server({ admin })]
    for (const way of ways) way.isCut = true
    const [mine, theirs] = [await ban(a, '192.0.2.1'), await ban(b, '192.0.2.2')]
    expect((await askAdmin(b, '/bans')).body.bans).toMatchObject([{ id: theirs }])
    for (const way of ways) way.isCut = false
    for (const server of [a, b]) {
      while ((await askAdmin(server, '/bans')).body.bans.length < 2) await Bun.sleep(1)
      const ids = (await askAdmin(server, '/bans')).body.bans.map(({ id }: { id: number }) => id)
      expect(new Set(ids)).toEqual(new Set([mine, theirs]))
    }
  })
})

for (const program of ['redis-server', 'valkey-server'] as const)
  describeWith([program], program, () => {
    suite(() => redisDirectories(program))

    test('it is killed, a server bans, it is back empty: all servers have all bans again', async () => {
      await using redis = await Redis.start(program)
      const directories: RedisDirectory[] = []
      const open = async (): Promise<Directory> => {
        const directory = await RedisDirectory.open({ url: redis.url })
        directories.push(directory)
        return directory
      }
      try {
        await using cluster = new TestCluster({ nodeMs: 600 }, open)
        const [a, b] = [await cluster.server({ admin }), await cluster.server({ admin })]
        await ban(a, '192.0.2.1')
        while ((await askAdmin(b, '/bans')).body.bans.length < 1) await Bun.sleep(1)
        await redis.kill()
        await ban(b, '192.0.2.2')
        await redis.run()
        const back = performance.now()
        while ((await askAdmin(a, '/bans')).body.bans.length < 2) await Bun.sleep(1)
        // One attempt to connect in a second, and a sign of life.
        expect(performance.now() - back).toBeLessThan(3_000)
        const c = await cluster.server({ admin })
        expect((await askAdmin(c, '/bans')).body.bans).toHaveLength(2)
      } finally {
        for (const directory of directories) await directory.close()
      }
    }, 60_000)
  })
