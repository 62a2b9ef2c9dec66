// One connection between two machines: what is sent one way arrives in order, after a time of its own. What else travels between the
// two, on other connections, may overtake it.

import type { Random } from '../support/random.ts'
import type { Machine } from './process.ts'
import type { Timeline } from './timeline.ts'

/** How packets fare between two machines. */
export interface Paths {
  /** Packets from one to the other are lost, which a sender does not notice; it sends them again. */
  isBlocked(from: Machine, to: Machine): boolean
  /** Milliseconds that a packet takes. */
  delay(from: Machine, to: Machine): number
}

/** Longest pause of a sender before it sends again what was lost. */
const RESEND_MS = 3_000

/** One way of a connection. */
class Way {
  /** When the last packet arrives: none arrives before it. */
  lastAt = 0
  /** What was lost, and everything behind it. */
  readonly held: (() => void)[] = []
}

export class Wire {
  readonly near: Machine
  readonly far: Machine
  /** It says nothing any more, and nobody notices: a router forgot it. */
  isSilent = false
  readonly #timeline: Timeline
  readonly #paths: Paths
  readonly #random: Random
  readonly #ways: readonly [Way, Way] = [new Way(), new Way()]

  constructor(near: Machine, far: Machine, timeline: Timeline, paths: Paths, random: Random) {
    this.near = near
    this.far = far
    this.#timeline = timeline
    this.#paths = paths
    this.#random = random
  }

  /** Calls `arrive` when the packet is there. */
  send(isFromNear: boolean, arrive: () => void): void {
    const way = this.#ways[isFromNear ? 0 : 1]
    const { now } = this.#timeline
    const [from, to] = this.#ends(isFromNear)
    way.lastAt = Math.max(way.lastAt, now + this.#paths.delay(from, to))
    this.#timeline.after(way.lastAt - now, undefined, () => this.#arrived(isFromNear, way, arrive))
  }

  #arrived(isFromNear: boolean, way: Way, arrive: () => void): void {
    if (way.held.length > 0 || this.#isBlocked(isFromNear)) way.held.push(arrive)
    else arrive()
  }

  /** The way may be free again. */
  freed(): void {
    for (const isFromNear of [true, false]) {
      const way = this.#ways[isFromNear ? 0 : 1]
      if (way.held.length === 0 || this.#isBlocked(isFromNear)) continue
      const ms = this.#random.below(RESEND_MS)
      this.#timeline.after(ms, undefined, () => {
        if (this.#isBlocked(isFromNear)) return
        for (const arrive of way.held.splice(0)) arrive()
      })
    }
  }

  #isBlocked(isFromNear: boolean): boolean {
    return this.isSilent || this.#paths.isBlocked(...this.#ends(isFromNear))
  }

  #ends(isFromNear: boolean): readonly [Machine, Machine] {
    return isFromNear ? [this.near, this.far] : [this.far, this.near]
  }
}
