// One simulation from one number: a cluster, faults for a while, and then none; what has to hold is looked at all the time and at the end.

import { Random } from '../support/random.ts'
import { disturb } from './faults.ts'
import type { ServerPlace } from './world.ts'
import { World } from './world.ts'

export interface Result {
  readonly seed: number
  /** What must not have happened. */
  readonly broken: readonly string[]
  /** Of all that happened. */
  readonly hash: string
  /** How much happened. */
  readonly events: number
  /** The last of it. */
  readonly lines: readonly string[]
  readonly asked: number
  readonly answered: number
  /** How much went wrong. */
  readonly faultCount: number
  /** How long it took until all tunnels answered at all servers, in simulated ms; `undefined`: they never did. */
  readonly settledMs: number | undefined
  /** The longest that a visitor waited for an outcome. */
  readonly longestMs: number
}

const NAMES = ['shop', 'blog', 'wiki', 'hooks'] as const
/** After the last fault: a dead carrier is noticed after 25 s, a name without its secret is reserved for 30 s. */
const SETTLE_MS = 60_000
/** After the last fault: two signs of life, and a sender's longest pause. */
const HEARD_MS = 10_000
/** The longest that a request may be under way: `originTimeoutMs`, and what may go before it. */
const OUTCOME_MS = 90_000

/** `without`: faults that are left out, by their numbers. */
export function simulate(seed: number, without: ReadonlySet<number> = new Set()): Result {
  const random = new Random(seed)
  const names = NAMES.slice(0, 2 + random.below(3))
  const world = new World(seed + 1_000_003, {
    servers: 2 + random.below(2),
    names,
    pooled: random.chance(0.3) ? names[0] : undefined,
    whenUnreachable: random.chance(0.3) ? 'grant' : 'refuse',
  })
  return world.within(() => new Scenario(seed, random, world).run(without))
}

class Scenario {
  readonly #seed: number
  readonly #random: Random
  readonly #world: World
  #isOver = false
  #asked = 0
  #answered = 0
  #longestMs = 0
  #underWay = 0

  constructor(seed: number, random: Random, world: World) {
    this.#seed = seed
    this.#random = random
    this.#world = world
  }

  run(without: ReadonlySet<number>): Result {
    const world = this.#world
    this.#delays()
    for (const place of world.servers) world.startServer(place)
    world.pass(500)
    for (const place of world.clients) world.startClient(place)
    world.pass(8_000)
    for (const place of world.servers) for (let count = 0; count < 2; count++) this.#visit(place)
    world.pass(3_000)
    const ms = 20_000 + this.#random.below(60_000)
    const disturbance = disturb(world, { seed: this.#random.below(1_000_000_000), ms, without })
    world.pass(80_000)
    world.note('world', 'everything is repaired')
    disturbance.end()
    world.heal()
    const settledMs = this.#settle()
    if (settledMs === undefined)
      world.broke(`${SETTLE_MS / 1_000} s after the last fault not every tunnel answers at every server`)
    // By then every server has said what it holds, and heard what became of it.
    world.pass(Math.max(0, HEARD_MS - (settledMs ?? 0)))
    this.#checkHolders(false)
    this.#isOver = true
    world.pass(OUTCOME_MS)
    if (this.#underWay > 0) world.broke(`${this.#underWay} requests have no outcome`)
    if (settledMs !== undefined) {
      this.#checkHolders(true)
      this.#checkRest()
    }
    world.end()
    const { broken, trace } = world
    return {
      seed: this.#seed,
      broken,
      hash: trace.hash,
      events: trace.count,
      lines: trace.lines,
      asked: this.#asked,
      answered: this.#answered,
      faultCount: disturbance.count(),
      settledMs,
      longestMs: this.#longestMs,
    }
  }

  /** Each pair of machines has its own distance. */
  #delays(): void {
    const { servers, clients, redis, network } = this.#world
    const all = [...servers, ...clients].map(({ machine }) => machine)
    for (const near of all)
      for (const far of [...all, redis.machine]) {
        const ms = this.#random.pick([0.2, 1, 5, 30])
        network.slow(near, far, ms)
        network.slow(far, near, ms)
      }
  }

  /** A visitor that asks one server for ever. */
  #visit(place: ServerPlace): void {
    const world = this.#world
    let visitor = world.visitor(place)
    const next = (): void => {
      if (this.#isOver) return world.leave(visitor)
      if (this.#random.chance(0.2)) {
        world.leave(visitor)
        visitor = world.visitor(place)
      }
      const asking = visitor
      const at = world.timeline.now
      const { process } = place
      let isOver = false
      this.#asked++
      this.#underWay++
      world.ask(visitor, place, this.#random.pick(world.clients).name, outcome => {
        isOver = true
        this.#underWay--
        this.#longestMs = Math.max(this.#longestMs, world.timeline.now - at)
        if (outcome.kind === 'ok') this.#answered++
        world.later(50 + this.#random.below(600), next)
      })
      world.later(OUTCOME_MS - 1_000, () => {
        if (isOver || asking !== visitor) return
        // A server whose machine is gone, or that is frozen, says nothing to its visitors.
        if (process !== undefined && process === place.process && !world.wasFrozen(process))
          world.broke(`a request to ${place.name} has no outcome after ${OUTCOME_MS / 1_000} s`)
        world.leave(asking)
      })
    }
    next()
  }

  /** How long it takes until every tunnel answers at every server. */
  #settle(): number | undefined {
    const world = this.#world
    const missing = new Set<string>()
    const since = world.timeline.now
    for (const place of world.servers)
      for (const { name } of world.clients) {
        const key = `${place.name} ${name}`
        missing.add(key)
        const probe = (): void => {
          if (world.timeline.now - since > SETTLE_MS) return
          const visitor = world.visitor(place)
          const again = world.timeline.now + 200
          world.ask(visitor, place, name, outcome => {
            world.leave(visitor)
            if (outcome.kind === 'ok') missing.delete(key)
            else world.later(Math.max(0, again - world.timeline.now), probe)
          })
        }
        probe()
      }
    while (missing.size > 0 && world.timeline.now - since < SETTLE_MS) world.pass(100)
    if (missing.size === 0) return world.timeline.now - since
    world.note('world', `missing: ${[...missing].join(', ')}`)
    return undefined
  }

  /** Nothing is held twice, or, `isComplete`, by no server. */
  #checkHolders(isComplete: boolean): void {
    const world = this.#world
    const holders = new Map<string, string[]>()
    for (const { name, server } of world.servers)
      for (const held of server?.getStats(true).subdomains ?? [])
        holders.set(held, [...(holders.get(held) ?? []), name])
    for (const { name } of world.clients) {
      const by = holders.get(name) ?? []
      const isTwice = by.length > 1 && name !== world.pooled
      if (isTwice || (isComplete && by.length === 0))
        world.broke(`${name} is held by ${by.join(' and ') || 'no server'}`)
    }
  }

  /** Nothing is left of visits that are over. */
  #checkRest(): void {
    const world = this.#world
    for (const { name, server } of world.servers) {
      const pending = server?.getStats().pendingResponses ?? 0
      if (pending > 0) world.broke(`${name} has ${pending} requests under way, and no visitor`)
    }
  }
}
