// How many requests of a tunnel are in progress at once, and the queue of those that wait for their turn, bounded in number and time.
// The visitor that has fewest in progress is next, so one that sends many waits for itself.

import type { ErrorCode } from '../../errors.ts'
import type { Clock } from '../../server/contracts/clock.ts'
import { type Taker, Takers } from '../../server/limits/takers.ts'
import { Waits } from '../../server/limits/waits.ts'

export interface SlotRule {
  readonly maxInFlight: number
  readonly maxQueued: number
  readonly queueTimeoutMs: number
}

export interface Holder extends Taker {
  readonly visitor: string
}

/** Called once: it has a place, or why not. */
type Called = (code: ErrorCode | undefined) => void

export class Slots {
  readonly #rule: SlotRule
  readonly #queue: Waits<ErrorCode | undefined>
  readonly #inside = new Takers()
  #taken = 0
  /** Places that are free and not handed on yet, while one after the other is called. */
  #freed = 0

  constructor(rule: SlotRule, deadlines: Clock) {
    this.#rule = rule
    this.#queue = new Waits<ErrorCode | undefined>(deadlines, 'TUNNEL_BUSY')
  }

  get queued(): number {
    return this.#queue.size
  }

  /** `false`: the request has to wait behind earlier ones. */
  take(holder: Holder): boolean {
    if (this.#taken >= this.#rule.maxInFlight || this.queued > 0) return false
    this.#taken++
    this.#inside.add(holder.visitor, holder)
    return true
  }

  /** Returns what ends the wait, or why it cannot wait. A place that it gets is to be returned. */
  wait(holder: Holder, called: Called): (() => void) | ErrorCode {
    const { maxQueued, queueTimeoutMs } = this.#rule
    const { visitor } = holder
    const done: Called = code => {
      if (code === undefined) this.#inside.add(visitor, holder)
      called(code)
    }
    // The place of one that gives way goes to who has fewest, which is most often this one.
    const late = () => void this.#inside.makeRoomFor(visitor)
    const wait = this.#queue.add(visitor, maxQueued, queueTimeoutMs, done, late)
    return wait === undefined ? 'TUNNEL_BUSY' : () => wait.stop()
  }

  /** The place goes to the next one unchanged. */
  release(holder: Holder): void {
    this.#inside.delete(holder.visitor, holder)
    // A request that is called may give its place back at once, and all of a queue would be called inside of each other.
    if (++this.#freed > 1) return
    try {
      for (; this.#freed > 0; this.#freed--) {
        const next =
          this.queued === 0 ? undefined : this.#queue.first(visitor => this.#inside.countOf(visitor))
        if (next === undefined) this.#taken--
        else next.finish(undefined)
      }
    } finally {
      this.#freed = 0
    }
  }
}
