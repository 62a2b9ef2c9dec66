// The lanes of a server, by tunnel: when they have to end, and what they have served.

import type { Lane, LaneCounts } from '../socket.ts'
import type { LaneGrant } from './front.ts'
import type { Tunnel } from './tunnels.ts'

export class Lanes {
  readonly #running = new Map<Lane, Tunnel>()
  readonly #eras = new WeakMap<Tunnel, Int32Array<SharedArrayBuffer>>()

  get count(): number {
    return this.#running.size
  }

  /** On what terms a lane to the tunnel may begin. */
  grant(
    tunnel: Tunnel,
    ended: (counts: LaneCounts) => void,
  ): Omit<LaneGrant, 'goesOn' | 'isTold' | 'exchanged'> {
    const era = this.#eraOf(tunnel)
    return {
      era,
      since: Atomics.load(era, 0),
      began: lane => this.#running.set(lane, tunnel),
      ended: (lane, { counts }) => {
        this.#running.delete(lane)
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
    if (this.#running.size === 0) return
    const recalled = new Set(tunnels)
    for (const [lane, tunnel] of this.#running) if (recalled.has(tunnel)) lane.stop()
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
