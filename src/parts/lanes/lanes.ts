// The lanes of a server by tunnel: when they must end, what they have served, and how much of it they report.

import type { ExchangeCounts, Lane, LaneCounts, LaneEnd, LaneTerms } from '../../accelerator.ts'
import type { LaneServed } from '../../server/contracts/laning.ts'

type Shared = Pick<LaneTerms, 'routingEpoch' | 'reportsLeft'>

/** The permission to begin a lane, with a call for when it did. */
export interface LaneTicket extends Shared, Pick<LaneTerms, 'grantedEpoch'> {
  began(lane: Lane): void
  ended(lane: Lane, end: LaneEnd): void
}

/** Called with the measurements, and the numbers of bytes that visitors sent and got, since the last call. */
type Measured = (measures: Float64Array, bytesIn: number, bytesOut: number) => void

interface Following {
  /** Returns the number of exchanges per second to report one by one. */
  readonly reportRate: () => number
  /** Called with the number of exchanges that the lane did not report one by one. */
  readonly counted: (counts: ExchangeCounts) => void
  readonly ended: (served: LaneServed) => void
  /** Called with the measurements since the last call. `undefined` if nothing is measured. */
  readonly measured: Measured | undefined
}

interface Running extends Following {
  /** The part of these counts that was already passed on. */
  unreported: ExchangeCounts
  passed: Pick<LaneCounts, 'measures' | 'bytesIn' | 'bytesOut'> | undefined
}

const NOTHING: ExchangeCounts = { requests: 0, errors: 0, bytes: 0 }

/** The lanes of a server. `Tunnel` is the type of their destination, of which only the identity matters here. */
export class Lanes<Tunnel extends object> {
  readonly #running = new Map<Lane, Running>()
  /** The lanes by tunnel. A client may have tunnels recalled at any rate, and only affects its own lanes. */
  readonly #ofTunnels = new Map<Tunnel, Set<Lane>>()
  readonly #shared = new WeakMap<Tunnel, Shared>()

  get count(): number {
    return this.#running.size
  }

  grant(tunnel: Tunnel, following: Following): LaneTicket {
    const shared = this.#sharedOf(tunnel)
    allow(shared, following)
    return {
      ...shared,
      grantedEpoch: Atomics.load(shared.routingEpoch, 0),
      began: lane => {
        this.#running.set(lane, { ...following, unreported: NOTHING, passed: undefined })
        const lanes = this.#ofTunnels.get(tunnel)
        if (lanes === undefined) this.#ofTunnels.set(tunnel, new Set([lane]))
        else lanes.add(lane)
      },
      ended: (lane, { counts }) => {
        const running = this.#running.get(lane)
        this.#running.delete(lane)
        const lanes = this.#ofTunnels.get(tunnel)
        lanes?.delete(lane)
        if (lanes?.size === 0) this.#ofTunnels.delete(tunnel)
        if (running !== undefined) passOn(running, counts)
        following.ended(counts)
      },
    }
  }

  harvest(): void {
    for (const [lane, running] of this.#running) passOn(running, lane.counts)
  }

  /** Allows lanes to report as many exchanges one by one as are wanted now. */
  allowReports(): void {
    for (const [tunnel, [first]] of this.#ofTunnels) {
      const running = first && this.#running.get(first)
      if (running !== undefined) allow(this.#sharedOf(tunnel), running)
    }
  }

  #sharedOf(tunnel: Tunnel): Shared {
    let shared = this.#shared.get(tunnel)
    if (shared === undefined) {
      const memory = new SharedArrayBuffer(8)
      shared = { routingEpoch: new Int32Array(memory, 0, 1), reportsLeft: new Int32Array(memory, 4, 1) }
      this.#shared.set(tunnel, shared)
    }
    return shared
  }

  recall(tunnels: readonly Tunnel[]): void {
    for (const tunnel of tunnels) {
      const shared = this.#shared.get(tunnel)
      if (shared !== undefined) Atomics.add(shared.routingEpoch, 0, 1)
      for (const lane of this.#ofTunnels.get(tunnel) ?? []) lane.stop()
    }
  }

  addedTo({ requests, bytesIn, bytesOut }: LaneServed): LaneServed {
    const sum = { requests, bytesIn, bytesOut }
    for (const { counts } of this.#running.keys()) {
      sum.requests += counts.requests
      sum.bytesIn += counts.bytesIn
      sum.bytesOut += counts.bytesOut
    }
    return sum
  }
}

function allow({ reportsLeft }: Shared, { reportRate }: Following): void {
  const rate = reportRate()
  Atomics.store(reportsLeft, 0, Number.isFinite(rate) ? rate : 0)
}

function passOn(running: Running, counts: LaneCounts): void {
  const { unreported } = counts
  passOnMeasures(running, counts)
  const before = running.unreported
  running.unreported = unreported
  if (unreported.requests === before.requests) return
  running.counted({
    requests: unreported.requests - before.requests,
    errors: unreported.errors - before.errors,
    bytes: unreported.bytes - before.bytes,
  })
}

function passOnMeasures(running: Running, { measures, bytesIn, bytesOut }: LaneCounts): void {
  if (running.measured === undefined || measures === undefined) return
  const { passed } = running
  running.passed = { measures, bytesIn, bytesOut }
  if (passed === undefined) return running.measured(measures, bytesIn, bytesOut)
  const since = measures.map((number, index) => number - (passed.measures?.[index] ?? 0))
  running.measured(since, bytesIn - passed.bytesIn, bytesOut - passed.bytesOut)
}
