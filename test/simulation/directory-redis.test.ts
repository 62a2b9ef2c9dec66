// The walks of the model, done by a real Redis and a real Valkey.

import { test } from 'bun:test'
import { type Connection, openRedis, RedisDirectory } from '../../src/directories/redis.ts'
import type { Directory, DirectoryTimes } from '../../src/directory.ts'
import { describeWith } from '../support/needs.ts'
import { FUZZ, Random } from '../support/random.ts'
import { Redis } from '../support/redis.ts'
import { begin, type State } from './directory-model.ts'
import { type Engine, replay } from './directory-replay.ts'
import { walkOf } from './directory-rules.ts'

/** Later than the time that Redis has: epochs begin here. */
const BEGIN_MS = 1e13
const HOUR_MS = 3_600_000

/** Time passes here when the model says so: what is over is deleted, as Redis does it. */
class RedisEngine implements Engine {
  readonly times: DirectoryTimes = { nodeMs: HOUR_MS, leaseMs: HOUR_MS, earlyMs: HOUR_MS, holdMs: HOUR_MS }
  readonly directory: Directory
  readonly #redis: Connection

  constructor(directory: Directory, redis: Connection) {
    this.directory = directory
    this.#redis = redis
  }

  async tick({ leases, isBorn, now }: State): Promise<void> {
    if (!isBorn) await this.#redis.set('localtunnels:epoch', now)
    const over = Object.keys(leases).filter(node => leases[node] === 0)
    await this.#redis.del('localtunnels:early', ...over.map(node => `localtunnels:lease:${node}`))
  }

  async lose(now: number): Promise<void> {
    await this.#redis.flushall()
    await this.#redis.set('localtunnels:epoch', now)
  }
}

for (const program of ['redis-server', 'valkey-server'] as const)
  describeWith([program], program, () => {
    test(
      'does in random walks what the model does',
      async () => {
        await using redis = await Redis.start(program)
        const directory = await RedisDirectory.open({ url: redis.url })
        const connection = await openRedis({ url: redis.url })
        const seed = Number(process.env.LT_SEED ?? Math.floor(Math.random() * 1e9))
        const random = new Random(seed)
        try {
          for (let walk = 0; walk < 30 * FUZZ; walk++) {
            const nodes = ['a', 'b', 'c', 'd'].slice(0, 2 + random.below(3))
            const names = ['shop', 'blog', 'wiki'].slice(0, 1 + random.below(3))
            const engine = new RedisEngine(directory, connection)
            await engine.lose(BEGIN_MS)
            const path = walkOf(random, nodes, names, 100, BEGIN_MS)
            await replay(engine, path, begin(nodes, BEGIN_MS), names).catch((error: Error) => {
              throw new Error(`seed ${seed}: ${error.message}`)
            })
          }
        } finally {
          connection.disconnect()
          await directory.close()
        }
      },
      60_000 * FUZZ,
    )
  })
