// The directory in a real Redis, and in a real Valkey: its scripts against the same in TypeScript, and servers that use it.
// 10 s for a Redis that is killed: servers and clients find it again with growing pauses.

import { expect, test } from 'bun:test'
import { MemoryDirectory } from '../../src/directories/memory.ts'
import { RedisDirectory } from '../../src/directories/redis.ts'
import type { Directory, Hold, NameOutcome } from '../../src/directory.ts'
import { ask } from '../support/ask.ts'
import { TestCluster } from '../support/clusters.ts'
import { describeWith } from '../support/needs.ts'
import { FUZZ, Random } from '../support/random.ts'
import { Redis } from '../support/redis.ts'

const STEPS = 400 * FUZZ
// Nothing expires while it runs: the two clocks would differ.
const TIMES = { nodeMs: 3_600_000, leaseMs: 3_600_000, earlyMs: 0, holdMs: 3_600_000 }

for (const program of ['redis-server', 'valkey-server'] as const)
  describeWith([program], program, () => {
    test('each step has the outcome that the model has', async () => {
      await using redis = await Redis.start(program)
      const one = await RedisDirectory.open({ url: redis.url })
      const other = new MemoryDirectory()
      const seed = Number(process.env.LT_SEED ?? Math.floor(Math.random() * 1e9))
      const pick = new Random(seed)
      const of = <Item>(items: readonly Item[]): Item => items[pick.below(items.length)]!
      const held = new Map<string, Hold[]>()
      const heard: [string[], string[]] = [[], []]
      const written: [unknown[], unknown[]] = [[], []]
      for (const [index, directory] of [one, other].entries()) {
        await directory.listen({
          changed: (...change) => heard[index]?.push(change.join(' ')),
          reconnected() {},
        })
        await directory.tables.listen((...change) => void written[index]?.push(change))
      }
      const both = async <Outcome>(step: (directory: Directory) => Promise<Outcome>): Promise<Outcome> => {
        const [real, model] = [await step(one), await step(other)]
        expect(real, `seed ${seed}`).toEqual(model)
        return model
      }
      // Each begins with the time of its own clock; from here on both count from the same.
      for (const directory of [one, other]) await directory.beat({ id: 'first', url: '' }, TIMES, 1e13)
      for (const node of ['a', 'b', 'c'])
        await both(directory => directory.beat({ id: node, url: `http://${node}` }, TIMES, 0))
      for (let count = 0; count < STEPS; count++) {
        const node = of(['a', 'b', 'c'])
        const name = of(['shop', 'blog', 'www.customer.example', 'tcp-20000', 'udp-1'])
        const [isShared, isTls] = [pick.below(10) < 3, pick.below(10) < 3]
        const [shown, next] = [of(['', 'p1', 'p2', 'p3']), of(['p1', 'p2', 'p3'])]
        const mine = held.get(node) ?? []
        switch (
          of(['claim', 'claim', 'release', 'restore', 'find', 'ports', 'leave', 'put', 'put', 'read'])
        ) {
          case 'put': {
            const entries = [0, 1].map(() => ({
              key: of(['one', 'two', 'three']),
              value: of(['', '{"a": "b c"}', 'ä"\\\n']),
              version: 1.7e12 + pick.below(40),
              // Long over, or not in this test.
              untilMs: of([0, 1, 9e15]),
            }))
            const table = of(['bans', 'links'])
            await both(directory => directory.tables!.put(table, entries, 2))
            break
          }
          case 'read':
            for (const table of ['bans', 'links'])
              await both(async directory =>
                [...(await directory.tables!.read(table))].sort((x, y) => (x.key < y.key ? -1 : 1)),
              )
            await both(directory => directory.tables!.changes())
            break
          case 'claim': {
            const outcome: NameOutcome = await both(directory =>
              directory.claim(node, { name, shown, next, isShared, isTls }, TIMES),
            )
            if (outcome.kind !== 'granted') break
            const proof = isShared ? '' : outcome.isProved ? shown : next
            held.set(node, [
              ...mine.filter(hold => hold.name !== name),
              { name, epoch: outcome.epoch, proof, isShared, isTls },
            ])
            break
          }
          case 'release': {
            const hold = mine.length === 0 ? undefined : of(mine)
            if (hold === undefined) break
            // By its epoch; or by the claim that was granted, or by another one: the epoch is not known then.
            const lost = of([
              undefined,
              { proof: hold.proof, isShared: hold.isShared },
              { proof: 'p4', isShared: hold.isShared },
              { proof: hold.proof, isShared: !hold.isShared },
            ])
            await both(directory => directory.release(node, hold.name, lost ? -1 : hold.epoch, lost))
            held.set(
              node,
              mine.filter(one => one !== hold),
            )
            break
          }
          case 'restore': {
            // What was said before the last claim may arrive behind it.
            const behind = pick.below(3)
            const said = mine.map(hold => ({ ...hold, epoch: hold.epoch - behind }))
            await both(async directory => [...(await directory.restore(node, said, TIMES))].sort())
            break
          }
          case 'find':
            await both(async directory =>
              [...(await directory.find(name))].sort((x, y) => (x.id < y.id ? -1 : 1)),
            )
            break
          case 'ports':
            await both(async directory => [...(await directory.ports())].sort())
            break
          case 'leave': {
            const highest = 1e13 + pick.below(1_000)
            await both(directory => directory.leave(node))
            await both(directory => directory.beat({ id: node, url: `http://${node}` }, TIMES, highest))
          }
        }
      }
      await one.find('shop')
      while (heard[0].length < heard[1].length) await Bun.sleep(1)
      expect(heard[0]).toEqual(heard[1])
      while (written[0].length < written[1].length) await Bun.sleep(1)
      expect(written[0]).toEqual(written[1])
      await one.close()
    })

    test('an empty one is early even for a claim before all signs of life, and its epochs go on above those of before', async () => {
      await using redis = await Redis.start(program)
      const directory = await RedisDirectory.open({ url: redis.url })
      const times = { ...TIMES, earlyMs: 100 }
      const wish = { name: 'shop', shown: '', next: 'p1', isShared: false }
      expect((await directory.claim('a', wish, times)).kind).toBe('early')
      expect(await directory.beat({ id: 'a', url: 'http://a' }, times, 1e13)).toEqual({
        isKnown: false,
        highestEpoch: 1e13,
      })
      let outcome = await directory.claim('a', wish, times)
      while (outcome.kind === 'early') outcome = await directory.claim('a', wish, times)
      expect(outcome).toEqual({ kind: 'granted', epoch: 1e13 + 1, isProved: false })
      await directory.close()
    })

    test('servers find names through it; when it is back empty, everything is there again', async () => {
      await using redis = await Redis.start(program)
      const directories: RedisDirectory[] = []
      const open = async (): Promise<Directory> => {
        const directory = await RedisDirectory.open({ url: redis.url })
        directories.push(directory)
        return directory
      }
      try {
        await using cluster = new TestCluster({ earlyMs: 300, nodeMs: 600 }, open)
        const [a, b] = [await cluster.server(), await cluster.server()]
        const own = await cluster.client({
          server: a.url,
          subdomain: 'shop',
          exact: true,
          fetch: () => new Response('shop'),
        })
        await cluster.client({
          server: a.url,
          subdomain: 'blog',
          exact: true,
          fetch: () => new Response('blog'),
        })
        expect((await ask(b.port, 'shop.localhost')).body).toBe('shop')
        await redis.kill()
        expect((await ask(a.port, 'blog.localhost')).body).toBe('blog')
        expect((await ask(b.port, 'shop.localhost')).body).toBe('shop')
        expect((await ask(b.port, 'blog.localhost')).code).toBe('CLUSTER_UNREACHABLE')
        await redis.run()
        let answer = await ask(b.port, 'blog.localhost')
        while (answer.body !== 'blog') answer = await ask(b.port, 'blog.localhost')
        const stranger = cluster.client({
          server: b.url,
          subdomain: 'shop',
          exact: true,
          fetch: () => new Response('no'),
        })
        expect(await stranger.catch((error: { code: string }) => error.code)).toBe('NAME_TAKEN')
        await own.disconnect()
        // Server a tells the directory behind the answer to its client.
        while ((await ask(b.port, 'shop.localhost')).code !== 'TUNNEL_NOT_FOUND') await Bun.sleep(1)
        await cluster.client({
          server: b.url,
          subdomain: 'shop',
          exact: true,
          fetch: () => new Response('second'),
        })
        expect((await ask(b.port, 'shop.localhost')).body).toBe('second')
      } finally {
        for (const directory of directories) await directory.close()
      }
    }, 60_000)
  })

test.each([['http://127.0.0.1'], ['redis://'], ['redis://host/x'], ['127.0.0.1:6379'], ['sentinel://host']])(
  '%s is no address of a Redis',
  async url => {
    const failure = await RedisDirectory.open({ url }).catch((error: { code: string }) => error.code)
    expect(failure).toBe('OPTION_INVALID')
  },
)
