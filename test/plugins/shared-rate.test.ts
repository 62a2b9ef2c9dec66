// A rate that servers keep together, in a real Redis: never more than the limit, also while Redis is stopped and started under load.

import { expect, test } from 'bun:test'
import { Agent } from 'node:http'
import { RedisRates } from '../../src/cluster.ts'
import { type Guard, type RateOptions, rate, TunnelClient } from '../../src/index.ts'
import type { Admittance, Verdict } from '../../src/plugin.ts'
import { MAX_SHARES, SharedRate } from '../../src/plugins/shared-rate.ts'
import type { SharedRates } from '../../src/shared-rates.ts'
import { ask } from '../support/ask.ts'
import { codeOf } from '../support/guards.ts'
import { testWith } from '../support/needs.ts'
import { Redis } from '../support/redis.ts'
import { startServer } from '../support/tunnel.ts'

const HOUR = 3_600_000
const visitor = (address: string): Admittance => ({
  kind: 'http',
  tunnel: 'shop',
  owner: 'anna',
  address,
  isSecure: false,
})

/** How many of so many visitors pass. */
async function passed(guard: Guard, count: number, address = '192.0.2.1'): Promise<number> {
  const verdicts = await Promise.all(Array.from({ length: count }, async () => guard.admit(visitor(address))))
  return verdicts.filter(verdict => verdict === undefined).length
}

const guardOf = (shared: SharedRates, options: Partial<RateOptions> = {}) =>
  rate({ limit: 100, windowMs: HOUR, shared, ...options })

async function withRedis() {
  const redis = await Redis.start('redis-server')
  const open: RedisRates[] = []
  return {
    redis,
    rates: async () => {
      const rates = await RedisRates.open({ url: redis.url })
      open.push(rates)
      return rates
    },
    async [Symbol.asyncDispose]() {
      for (const rates of open) rates.close()
      await redis[Symbol.asyncDispose]()
    },
  }
}

/** Two servers with one rate, and an app behind each. */
async function startPair(one: Awaited<ReturnType<typeof withRedis>>, options: Partial<RateOptions>) {
  const app = Bun.serve({ port: 0, fetch: () => new Response('here') })
  let asked = 0
  const guards = [await one.rates(), await one.rates()].map(rates => guardOf(rates, options))
  const servers = await Promise.all(
    guards.map(guard => {
      const admit = (seen: Admittance) => {
        asked++
        return guard.admit(seen)
      }
      return startServer({ guards: [{ name: 'counted', admit, allot: seen => guard.allot?.(seen) }] })
    }),
  )
  const clients = servers.map(({ port }) => new TunnelClient({ server: `http://127.0.0.1:${port}` }))
  for (const client of clients) await client.http({ subdomain: 'app', port: app.port! })
  return {
    ports: servers.map(({ port }) => port),
    /** How often a guard was asked: about each request that is in no lane. */
    get asked() {
      return asked
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(clients.map(client => client.disconnect()))
      await Promise.all(servers.map(server => server.stop()))
      await app.stop(true)
    },
  }
}

testWith(['redis-server'], 'servers together let pass the limit, and each its share in between', async () => {
  await using one = await withRedis()
  const servers = [guardOf(await one.rates()), guardOf(await one.rates()), guardOf(await one.rates())]
  let total = 0
  for (let round = 0; round < 10; round++)
    for (const count of await Promise.all(servers.map(server => passed(server, 7)))) total += count
  // What is left of a share that its server does not use within a second is lost: on a machine that stands still, some of them.
  expect(total).toBeLessThanOrEqual(100)
  expect(total).toBeGreaterThan(20)
  const verdict = await servers[0]!.admit(visitor('192.0.2.1'))
  expect(codeOf(verdict as Verdict)).toBe('RATE_LIMITED')
  expect(verdict).toMatchObject({
    headers: expect.arrayContaining([['ratelimit-policy', '"visitor";q=100;w=3600']]),
  })
  // Others have their own.
  expect(await passed(servers[1]!, 5, '192.0.2.2')).toBe(5)
})

testWith(
  ['redis-server'],
  'a small limit is exact, and one that was refused passes when its time has come',
  async () => {
    await using one = await withRedis()
    const servers = [
      guardOf(await one.rates(), { limit: 3, windowMs: 1_000 }),
      guardOf(await one.rates(), { limit: 3, windowMs: 1_000 }),
    ]
    const counts: number[] = []
    for (const server of [...servers, ...servers]) counts.push(await passed(server, 1))
    expect(counts.slice(0, 3)).toEqual([1, 1, 1])
    while ((await passed(servers[0]!, 1)) === 0) await Bun.sleep(20)
  },
)

testWith(
  ['redis-server'],
  'while Redis is away a rate is local, open or closed, as the operator says',
  async () => {
    await using one = await withRedis()
    const shared = await one.rates()
    const kinds = ['local', 'open', 'closed'] as const
    const [local, open, closed] = kinds.map(whenUnreachable =>
      guardOf(shared, { limit: 20, by: 'tunnel', whenUnreachable }),
    )
    expect(await passed(local!, 1)).toBe(1)
    await one.redis.kill()
    expect(await passed(local!, 50, '192.0.2.7')).toBe(20)
    expect(await passed(open!, 50)).toBe(50)
    expect(await passed(closed!, 50)).toBe(0)
    expect(await closed!.admit(visitor('192.0.2.1'))).toMatchObject({
      code: 'CLUSTER_UNREACHABLE',
      headers: [['retry-after', '1']],
    })
    await one.redis.run()
    // It is tried again after a second.
    while ((await passed(closed!, 1)) === 0) await Bun.sleep(50)
  },
)

for (const whenUnreachable of ['local', 'open', 'closed'] as const)
  testWith(
    ['redis-server'],
    `Redis is frozen, stopped and started under load, in lanes and by new connections: every visitor is answered (${whenUnreachable})`,
    async () => {
      await using one = await withRedis()
      await using pair = await startPair(one, { limit: 1_000_000, windowMs: 1_000, whenUnreachable })
      let isOver = false
      const answers = new Map<string, number>()
      const countOf = (answer: string) => answers.get(answer) ?? 0
      const load = pair.ports.flatMap(port =>
        [new Agent({ keepAlive: true, maxSockets: 1 }), undefined].map(async agent => {
          while (!isOver) {
            const { status, code } = await ask(port, 'app.localhost', agent && { agent })
            const answer = code === undefined ? `${status}` : `${status} ${code}`
            answers.set(answer, countOf(answer) + 1)
          }
          agent?.destroy()
        }),
      )
      const refused = '503 CLUSTER_UNREACHABLE'
      const whileAway = whenUnreachable === 'closed' ? refused : '200'
      const many = async () => {
        const before = countOf(whileAway)
        while (countOf(whileAway) < before + 200) await Bun.sleep(5)
      }
      // No guard is asked about requests in lanes.
      const inLanes = () => countOf('200') + countOf(refused) - pair.asked
      const manyInLanes = async () => {
        const before = inLanes()
        while (inLanes() < before + 100) await Bun.sleep(5)
      }
      await manyInLanes()
      one.redis.freeze()
      await many()
      one.redis.thaw()
      await manyInLanes()
      await one.redis.kill()
      await many()
      await one.redis.run()
      await manyInLanes()
      isOver = true
      await Promise.all(load)
      expect([...answers.keys()].toSorted()).toEqual(
        whenUnreachable === 'closed' ? ['200', refused] : ['200'],
      )
    },
    60_000,
  )

testWith(
  ['redis-server'],
  'requests in lanes count too: two servers let pass no more than the limit, and are not asked about each',
  async () => {
    await using one = await withRedis()
    const LIMIT = 2_000
    await using pair = await startPair(one, { limit: LIMIT })
    const began = performance.now()
    let [passes, answers] = [0, 0]
    const visitorOf = async (port: number) => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 })
      for (let status = 200; status === 200; answers++) {
        status = (await ask(port, 'app.localhost', { agent })).status
        if (status === 200) passes++
        else expect(status).toBe(429)
      }
      agent.destroy()
    }
    await Promise.all(pair.ports.flatMap(port => [visitorOf(port), visitorOf(port), visitorOf(port)]))
    const refilled = (LIMIT * (performance.now() - began)) / HOUR
    expect(passes).toBeLessThanOrEqual(Math.ceil(LIMIT + refilled))
    // What a server does not use within a second is lost, so fewer pass on a machine that stands still.
    expect(passes).toBeGreaterThan(LIMIT / 4)
    expect(pair.asked).toBeLessThan(answers)
  },
  60_000,
)

test('rates that do not answer in time are left alone for a second, and no other visitor waits for them', async () => {
  let asked = 0
  const silent: SharedRates = {
    take: () => {
      asked++
      return new Promise(() => {})
    },
  }
  const guard = guardOf(silent, { by: 'address' })
  const began = performance.now()
  expect(await passed(guard, 100)).toBe(100)
  expect(performance.now() - began).toBeLessThan(5_000)
  expect(await passed(guard, 1, '192.0.2.9')).toBe(1)
  expect(asked).toBe(1)
})

test('no more keys are remembered than the bound: those that were forgotten ask again', async () => {
  const asked: string[] = []
  const rates: SharedRates = {
    take: async key => {
      asked.push(key)
      return { granted: 10, waitMs: 0 }
    },
  }
  const guard = new SharedRate(
    { limit: 100, windowMs: HOUR },
    rates,
    'local',
    ({ address }) => address,
    'visitor',
    undefined,
  )
  for (let index = 0; index <= MAX_SHARES; index++) await guard.admit(visitor(`a${index}`))
  const before = asked.length
  await guard.admit(visitor('a0'))
  expect(asked.length).toBe(before + 1)
})

test('what cannot be used is refused', () => {
  const rates: SharedRates = { take: async () => ({ granted: 0, waitMs: 1 }) }
  expect(() => guardOf(rates, { whenUnreachable: 'never' as 'open' })).toThrow(
    expect.objectContaining({ code: 'OPTION_INVALID' }),
  )
  expect(() => guardOf(rates, { limit: 0 })).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
})
