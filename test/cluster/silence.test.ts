// A network that lets nothing through any more and says nothing: connections to Redis are made anew.

import { expect, test } from 'bun:test'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { RedisDirectory } from '../../src/directories/redis.ts'
import { adminOptions, askAdmin } from '../support/admin.ts'
import { TestCluster } from '../support/clusters.ts'
import { describeWith } from '../support/needs.ts'
import { Redis } from '../support/redis.ts'

/** Passes bytes on, until it forgets the connections that there are: as a firewall does that was started again. */
class Firewall implements Disposable {
  readonly #sockets = new Set<Socket>()
  readonly #server = createServer(near => {
    const far = connect(this.#target, '127.0.0.1')
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      this.#sockets.add(from)
      from.on('data', bytes => {
        if (this.#sockets.has(from)) to.write(bytes)
      })
      from.on('error', () => {})
      from.on('close', () => {
        if (this.#sockets.delete(from)) to.destroy()
      })
    }
  })
  readonly #target: number

  constructor(target: number) {
    this.#target = target
  }

  async listen(): Promise<number> {
    await new Promise<void>(resolve => this.#server.listen(0, '127.0.0.1', resolve))
    return (this.#server.address() as AddressInfo).port
  }

  forget(): void {
    this.#sockets.clear()
  }

  [Symbol.dispose](): void {
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
  }
}

for (const program of ['redis-server', 'valkey-server'] as const)
  describeWith([program], program, () => {
    test('a server whose connections have died without a word hears of bans again', async () => {
      await using redis = await Redis.start(program)
      using firewall = new Firewall(redis.port)
      const urls = [redis.url, `redis://127.0.0.1:${await firewall.listen()}`]
      const directories: RedisDirectory[] = []
      const open = async (): Promise<RedisDirectory> => {
        const directory = await RedisDirectory.open({ url: urls.shift() ?? '' })
        directories.push(directory)
        return directory
      }
      try {
        await using cluster = new TestCluster({ nodeMs: 600 }, open)
        const admin = adminOptions()
        const [a, b] = [await cluster.server({ admin }), await cluster.server({ admin })]
        const bansOf = async () => (await askAdmin(b, '/bans')).body.bans.length
        const ban = (value: string) => askAdmin(a, '/bans', { method: 'POST', body: { value } })
        await ban('192.0.2.1')
        while ((await bansOf()) < 1) await Bun.sleep(1)
        firewall.forget()
        const from = performance.now()
        await ban('192.0.2.2')
        while ((await bansOf()) < 2) await Bun.sleep(10)
        // A question that gets no answer for 2 s, and a connection.
        expect(performance.now() - from).toBeLessThan(5_000)
        // It listens again: nothing has to be read for this one.
        await ban('192.0.2.3')
        while ((await bansOf()) < 3) await Bun.sleep(1)
        expect(cluster.errors.map(error => (error as { code?: string }).code)).toEqual([
          'CLUSTER_UNREACHABLE',
        ])
      } finally {
        for (const directory of directories) await directory.close()
      }
    }, 60_000)

    test('the connection that listens is made anew with a sign of life', async () => {
      await using redis = await Redis.start(program)
      using firewall = new Firewall(redis.port)
      const directory = await RedisDirectory.open({ url: `redis://127.0.0.1:${await firewall.listen()}` })
      const again = Promise.withResolvers<void>()
      await directory.listen({ changed() {}, reconnected: () => again.resolve() })
      firewall.forget()
      const times = { nodeMs: 600, leaseMs: 3_000, earlyMs: 0, holdMs: 60_000 }
      const node = { id: 'a', url: 'http://a' }
      await directory.beat(node, times, 0).catch(() => {})
      await again.promise
      expect((await directory.beat(node, times, 0)).highestEpoch).toBeGreaterThan(0)
      await directory.close()
    }, 60_000)
  })
