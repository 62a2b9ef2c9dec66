// The lanes of a server, by tunnel: when they have to end, and what they have served.

import type { Lane, LaneCounts } from '../socket.ts'
import type { LaneGrant } from './front.ts'
import type { Tunnel } from './tunnels.ts'

/**
 * Requests that wait for an answer at once, on average. Above there are no lanes at all: what those requests have of
 * sharing the carrier's writes is more than what a lane saves. Measured by `benchmarks/ahead.ts --only
 * t1,t10,open1000,open4000`.
 */
const MAX_CONCURRENCY = 1.5
/** Each request moves the average by so much of the way. */
const SHARE = 1 / 64
/** What the average is after lanes that were too many: some hundred requests of the program, one by one, undo it. */
const CROWDED = 8

export class Lanes {
  readonly #running = new Map<Lane, Tunnel>()
  #concurrency = 1
  readonly #eras = new WeakMap<Tunnel, Int32Array<SharedArrayBuffer>>()

  get count(): number {
    return this.#running.size
  }

  /** A request began in the program, where so many wait for an answer with it. */
  requested(waiting: number): void {
    this.#concurrency += (waiting - this.#concurrency) * SHARE
  }

  /** On what terms a lane to the tunnel may begin; `undefined`: none may. */
  grant(tunnel: Tunnel, ended: (counts: LaneCounts) => void): Omit<LaneGrant, 'goesOn'> | undefined {
    if (this.#concurrency > MAX_CONCURRENCY) return undefined
    const era = this.#eraOf(tunnel)
    return {
      era,
      since: Atomics.load(era, 0),
      began: lane => this.#running.set(lane, tunnel),
      ended: (lane, { counts, isCrowded }) => {
        this.#running.delete(lane)
        if (isCrowded) this.#concurrency = CROWDED
        ended(counts)
      },
    }
  }

  /** A number that is another one after `recall`, where lanes see it as well. */
  #eraOf(tunnel: Tunnel): Int32Array<SharedArrayBuffer> {
    let era = this.#eras.get(tunnel)
    if (era === undefined) {
      era = new Int32Array(new SharedArrayBuffer(4))
      this.#eras.set(tunnel, era)
    }
    return era
  }

  /**
   * Requests to these tunnels may have to go elsewhere: those that a lane takes from now on, or one that was granted and
   * is about to begin, come back to the program. Those that were sent are still answered.
   */
  recall(tunnels: readonly Tunnel[]): void {
    for (const tunnel of tunnels) {
      const era = this.#eras.get(tunnel)
      if (era !== undefined) Atomics.add(era, 0, 1)
    }
    for (const [lane, tunnel] of this.#running) if (tunnels.includes(tunnel)) lane.stop()
  }

  /** What those under way have served so far, and this. */
  addedTo({ requests, bytesIn, bytesOut }: LaneCounts): LaneCounts {
    const sum = { requests, bytesIn, bytesOut }
    for (const { counts } of this.#running.keys()) {
      sum.requests += counts.requests
      sum.bytesIn += counts.bytesIn
      sum.bytesOut += counts.bytesOut
    }
    return sum
  }
}
