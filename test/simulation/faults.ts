// What can go wrong in the world, and how each of it ends.

import { Random } from '../support/random.ts'
import type { Machine } from './process.ts'
import type { World } from './world.ts'

interface Fault {
  /** How often it is chosen, beside the others. */
  readonly weight: number
  /** Begins it. Returns what ends it; `undefined`: it is over already, or cannot be just now. */
  begin(world: World, random: Random): (() => void) | undefined
}

const HOUR_MS = 3_600_000

const FAULTS: readonly Fault[] = [
  {
    weight: 3,
    begin(world, random) {
      const place = random.pick(world.servers)
      if (place.process === undefined) return undefined
      world.killServer(place, random.chance(0.5))
      return () => world.startServer(place)
    },
  },
  {
    weight: 2,
    begin(world, random) {
      const place = random.pick(world.servers)
      world.stopServer(place, () => world.later(random.below(3_000), () => world.startServer(place)))
      return undefined
    },
  },
  {
    weight: 3,
    begin(world, random) {
      const { process, name } = random.pick([...world.servers, ...world.clients])
      if (process === undefined || process.isFrozen) return undefined
      world.note(name, 'is frozen')
      world.freeze(process)
      return () => {
        world.note(name, 'goes on')
        process.thaw()
      }
    },
  },
  {
    weight: 2,
    begin(world, random) {
      const { process, name } = random.pick([...world.servers, ...world.clients])
      if (process === undefined) return undefined
      world.note(name, 'has a slow disk')
      let isOver = false
      // It stands still while it writes.
      const write = (): void => {
        if (isOver || process.isDead) return
        if (!process.isFrozen) {
          process.freeze()
          world.later(20 + random.below(480), () => process.thaw())
        }
        world.later(600 + random.below(1_000), write)
      }
      write()
      return () => {
        isOver = true
        world.note(name, 'has a quick disk')
      }
    },
  },
  {
    weight: 2,
    begin(world, random) {
      const place = random.pick(world.clients)
      if (place.process === undefined) return undefined
      world.killClient(place, random.chance(0.5))
      return () => world.startClient(place)
    },
  },
  {
    weight: 4,
    begin(world, random) {
      const isCut = random.chance(0.6)
      const harmed = world.harmConnection(isCut)
      if (harmed !== undefined) world.note('network', `${isCut ? 'cuts' : 'forgets'} ${harmed}`)
      return undefined
    },
  },
  {
    weight: 3,
    begin(world, random) {
      const all: Machine[] = [...world.servers, ...world.clients].map(({ machine }) => machine)
      const near = random.pick([...world.servers.map(({ machine }) => machine)])
      const far = random.pick([...all, world.redis.machine].filter(one => one !== near))
      const ways = random.pick([[true], [false], [true, false], [true, false]])
      world.note(
        'network',
        `lets nothing through between ${near.address} and ${far.address} (${ways.length})`,
      )
      const ends = ways.map(isForth => (isForth ? ([near, far] as const) : ([far, near] as const)))
      for (const [from, to] of ends) world.network.block(from, to)
      return () => {
        world.note('network', `is whole between ${near.address} and ${far.address}`)
        for (const [from, to] of ends) world.network.unblock(from, to)
      }
    },
  },
  {
    weight: 2,
    begin(world, random) {
      if (world.redis.process === undefined) return undefined
      const isEmpty = random.chance(0.6)
      world.note('redis', 'is killed')
      world.redis.kill()
      return () => world.startRedis(isEmpty)
    },
  },
  {
    weight: 1,
    begin(world) {
      const { process } = world.redis
      if (process === undefined || process.isFrozen) return undefined
      world.note('redis', 'is frozen')
      process.freeze()
      return () => {
        world.note('redis', 'goes on')
        process.thaw()
      }
    },
  },
  {
    weight: 1,
    begin(world, random) {
      world.redis.costMs = random.pick([5, 50, 400])
      world.note('redis', `takes ${world.redis.costMs} ms for each command`)
      return () => {
        world.redis.costMs = 0.02
      }
    },
  },
  {
    weight: 1,
    begin(world, random) {
      const { machine } = random.pick([...world.servers, ...world.clients])
      const hours = random.pick([-1, 1]) * (1 + random.below(48))
      world.note(machine.address, `its clock jumps by ${hours} h`)
      machine.wallOffsetMs += hours * HOUR_MS
      return undefined
    },
  },
]

/** Each number of `FAULTS` as often as its weight. */
const CHOICES = FAULTS.flatMap((fault, index) => Array.from({ length: fault.weight }, () => index))

export interface Disturbance {
  /** Of the faults, and of nothing else: the same number is the same faults, as far as the world is the same. */
  readonly seed: number
  readonly ms: number
  /** Faults that are left out, by their numbers. */
  readonly without: ReadonlySet<number>
}

/** Faults one after the other and beside each other. Returns how many there were, and what ends those that are under way. */
export function disturb(world: World, { seed, ms, without }: Disturbance): { count(): number; end(): void } {
  const ends = new Set<() => void>()
  const until = world.timeline.now + ms
  const times = new Random(seed)
  let count = 0
  const next = (): void => {
    if (world.timeline.now > until) return
    const number = count++
    const random = new Random(seed + 7 * number + 1)
    const end = without.has(number) ? undefined : FAULTS[random.pick(CHOICES)]?.begin(world, random)
    if (end !== undefined) {
      const once = (): void => {
        if (ends.delete(once)) end()
      }
      ends.add(once)
      world.later(random.pick([200, 1_000, 3_000, 8_000, 20_000, 45_000]), once)
    }
    world.later(times.pick([50, 500, 2_000, 5_000, 10_000]), next)
  }
  world.later(times.below(2_000), next)
  return {
    count: () => count,
    end() {
      for (const end of [...ends]) end()
    },
  }
}
