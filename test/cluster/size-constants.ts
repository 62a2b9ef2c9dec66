// What each thing that servers of a cluster ask of Redis costs it, measured at several sizes on a real one.

import { randomBytes } from 'node:crypto'
import { Redis as Connection } from 'ioredis'
import { median } from '../../benchmarks/measure/samples.ts'
import { RedisDirectory } from '../../src/directories/redis.ts'
import type { Hold } from '../../src/directory.ts'
import { CLUSTER_TIMES } from '../../src/parts/cluster/options.ts'
import { Redis } from '../support/redis.ts'

/** What Redis does for one. */
export interface Use {
  readonly cpuUs: number
  readonly inBytes: number
  readonly outBytes: number
}

/** A figure at some sizes. */
export type Points<Of> = readonly (readonly [size: number, of: Of])[]

export interface Constants {
  /** By the number of servers: a sign of life, and the list of those that live. */
  readonly beats: Points<Use>
  readonly lists: Points<Use>
  /** By the number of servers that hear of it: a name that is claimed, and a report that a server gives of itself. */
  readonly changes: Points<Use>
  readonly reports: Points<Use>
  /** By that number, too: ms from a claim to the last server that has heard of it. */
  readonly spreads: Points<number>
  readonly claim: Use
  readonly renewal: Use
  readonly question: Use
  /** A name told to a Redis that has lost everything. */
  readonly told: Use
  readonly toldMs: number
  /** By the number of names: bytes of all Redis. */
  readonly memory: Points<number>
  /** Bytes of a name in the server that holds it. */
  readonly ownBytes: number
  readonly names: number
}

export interface Sizes {
  readonly names: readonly number[]
  readonly servers: readonly number[]
  readonly listeners: readonly number[]
}

const TIMES = { ...CLUSTER_TIMES, earlyMs: 0 }
const HOLDER = { id: 'holder', url: 'http://10.0.0.1:8080' }
/** Questions under way, as from a server with many clients. */
const AT_ONCE = 100
/** What a server reports of itself. */
const REPORT = JSON.stringify({
  version: '0.1.0',
  uptimeSeconds: 1e6,
  clients: 1_000,
  tunnels: 1_000,
  requests: 1e9,
  pending: 1_000,
})

const proof = (): string => randomBytes(32).toString('base64url')
const wish = (name: string) => ({ name, shown: '', next: proof(), isShared: false })

async function inFlight<Of>(all: readonly Of[], one: (item: Of) => Promise<unknown>): Promise<void> {
  const left = [...all]
  const next = async (): Promise<void> => {
    for (let item = left.pop(); item !== undefined; item = left.pop()) await one(item)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, next))
}

/** Asks Redis what it has done. */
class Meter {
  readonly #redis: Connection

  constructor(port: number) {
    this.#redis = new Connection(port)
  }

  async read(...sections: readonly string[]): Promise<Record<string, number>> {
    const texts = await Promise.all(sections.map(section => this.#redis.info(section)))
    const found = texts.flatMap(text => [...text.matchAll(/^(\w+):([\d.]+)\r?$/gm)])
    return Object.fromEntries(found.map(([, key, value]) => [key, Number(value)]))
  }

  /** Of `work`, each time; what it costs to ask is taken off. */
  async useOf(times: number, work: () => Promise<unknown>): Promise<Use> {
    const take = () => this.read('cpu', 'stats')
    const [first, second] = [await take(), await take()]
    await work()
    const third = await take()
    const of = (key: string): number => (third[key]! - second[key]! - (second[key]! - first[key]!)) / times
    return {
      cpuUs: Math.max(0, (of('used_cpu_user') + of('used_cpu_sys')) * 1e6),
      inBytes: of('total_net_input_bytes'),
      outBytes: of('total_net_output_bytes'),
    }
  }

  close(): void {
    this.#redis.disconnect()
  }
}

export async function measureConstants(sizes: Sizes): Promise<Constants> {
  await using redis = await Redis.start('redis-server')
  const meter = new Meter(redis.port)
  const open: RedisDirectory[] = []
  const connect = async (): Promise<RedisDirectory> => {
    const one = await RedisDirectory.open({ url: redis.url })
    open.push(one)
    return one
  }
  try {
    const directory = await connect()
    await directory.beat(HOLDER, TIMES, 0)
    const named = await measureNames(directory, meter, sizes.names)
    const lives = await measureLives(directory, meter, sizes.servers)
    const heard = await measureHearing(directory, meter, sizes.listeners, connect)
    await redis.kill()
    await redis.run()
    const from = performance.now()
    while (!(await directory.beat(HOLDER, TIMES, 0).catch(() => undefined))) await Bun.sleep(20)
    const told = await meter.useOf(named.held.length, () => directory.restore(HOLDER.id, named.held, TIMES))
    const toldMs = performance.now() - from
    return { ...named, ...lives, ...heard, told, toldMs, names: named.held.length }
  } finally {
    for (const one of open) await one.close()
    meter.close()
  }
}

function heapBytes(): number {
  Bun.gc(true)
  return process.memoryUsage().heapUsed
}

async function measureNames(directory: RedisDirectory, meter: Meter, sizes: readonly number[]) {
  const memory: [number, number][] = []
  const held: Hold[] = []
  const none: Use = { cpuUs: 0, inBytes: 0, outBytes: 0 }
  let [claim, renewal, question, ownBytes] = [none, none, none, 0]
  for (const size of sizes) {
    const more = Array.from({ length: size - held.length }, (_, at) => `customer-${held.length + at}-shop`)
    const before = heapBytes()
    claim = await meter.useOf(more.length, () =>
      inFlight(more, async name => {
        const asked = wish(name)
        const outcome = await directory.claim(HOLDER.id, asked, TIMES)
        if (outcome.kind !== 'granted') throw new Error(`${name} is ${outcome.kind}`)
        held.push({ name, epoch: outcome.epoch, proof: asked.next, isShared: false })
      }),
    )
    ownBytes = (heapBytes() - before) / more.length
    renewal = await meter.useOf(held.length, () => directory.restore(HOLDER.id, held, TIMES))
    question = await meter.useOf(more.length, () => inFlight(more, name => directory.find(name)))
    memory.push([held.length, (await meter.read('memory')).used_memory ?? 0])
  }
  return { memory, held, claim, renewal, question, ownBytes }
}

async function measureLives(directory: RedisDirectory, meter: Meter, sizes: readonly number[]) {
  const beats: [number, Use][] = []
  const lists: [number, Use][] = []
  const all = Array.from({ length: 200 }, (_, at) => at)
  let known = 0
  for (const size of sizes) {
    for (; known < size; known++) {
      const url = `http://10.0.${known >> 8}.${known & 255}:8080`
      await directory.beat({ id: proof().slice(0, 12), url }, TIMES, 0)
    }
    // With each, a server asks whether it has missed a change of a table.
    const beat = () => Promise.all([directory.beat(HOLDER, TIMES, 0), directory.tables.changes()])
    beats.push([size, await meter.useOf(all.length, () => inFlight(all, beat))])
    lists.push([size, await meter.useOf(all.length, () => inFlight(all, () => directory.nodes()))])
  }
  return { beats, lists }
}

async function measureHearing(
  directory: RedisDirectory,
  meter: Meter,
  sizes: readonly number[],
  connect: () => Promise<RedisDirectory>,
) {
  const changes: [number, Use][] = []
  const reports: [number, Use][] = []
  const spreads: [number, number][] = []
  let [listeners, heard, version] = [0, 0, 0]
  for (const size of sizes) {
    for (; listeners < size; listeners++) {
      const one = await connect()
      await one.listen({ changed: () => void heard++, reconnected() {} })
      await one.tables.listen(() => void heard++)
    }
    const until = async (due: number): Promise<void> => {
      while (heard < due) await new Promise(resolve => setImmediate(resolve))
    }
    const names = Array.from({ length: 300 }, (_, at) => `moving-${size}-${at}`)
    const claim = (name: string) => directory.claim(HOLDER.id, wish(name), TIMES)
    const moving = async (): Promise<void> => {
      const due = heard + names.length * size
      await inFlight(names, claim)
      await until(due)
    }
    changes.push([size, await meter.useOf(names.length, moving)])
    const reporting = async (): Promise<void> => {
      const due = heard + names.length * size
      // One after the other: of two that overtake each other one is older, and no server hears of it.
      for (const _ of names) {
        const entry = { key: HOLDER.id, value: REPORT, version: ++version, untilMs: Date.now() + 30_000 }
        await directory.tables.put('servers', [entry], 10_000)
      }
      await until(due)
    }
    reports.push([size, await meter.useOf(names.length, reporting)])
    const took: number[] = []
    for (let at = 0; size > 0 && at < 20; at++) {
      const [due, from] = [heard + size, performance.now()]
      await claim(`seen-${size}-${at}`)
      await until(due)
      took.push(performance.now() - from)
    }
    if (size > 0) spreads.push([size, median(took)])
  }
  return { changes, reports, spreads }
}
