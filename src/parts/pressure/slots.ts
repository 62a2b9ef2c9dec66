// Limits a tunnel's requests in progress, and queues others, bounded in number and time. The visitor with the fewest
// in progress is next, so a visitor with many requests only delays itself.

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

/** Called once: with `undefined` when the request may start, or with the code of its refusal. */
type Called = (code: ErrorCode | undefined) => void

export class Slots {
  readonly #rule: SlotRule
  readonly #queue: Waits<ErrorCode | undefined>
  readonly #inside = new Takers()
  #taken = 0
  /** The number of free places for waiting requests, which get them one after the other. */
  #freed = 0

  constructor(rule: SlotRule, deadlines: Clock) {
    this.#rule = rule
    this.#queue = new Waits<ErrorCode | undefined>(deadlines, 'TUNNEL_BUSY')
  }

  get queued(): number {
    return this.#queue.size
  }

  /** Takes a place. Returns `false` if the request must wait behind earlier ones. */
  take(holder: Holder): boolean {
    if (this.#taken >= this.#rule.maxInFlight || this.queued > 0) return false
    this.#taken++
    this.#inside.add(holder.visitor, holder)
    return true
  }

  /** Queues a request. Returns a function that ends the wait, or the code of a refusal. Release the place that it gets. */
  wait(holder: Holder, called: Called): (() => void) | ErrorCode {
    const { maxQueued, queueTimeoutMs } = this.#rule
    const { visitor } = holder
    const done: Called = code => {
      if (code === undefined) this.#inside.add(visitor, holder)
      called(code)
    }
    // The place goes to the visitor with the fewest, which is usually this one.
    const late = () => void this.#inside.makeRoomFor(visitor)
    const wait = this.#queue.add(visitor, maxQueued, queueTimeoutMs, done, late)
    return wait === undefined ? 'TUNNEL_BUSY' : () => wait.stop()
  }

  /** Releases a place, which goes to the next request. */
  release(holder: Holder): void {
    this.#inside.delete(holder.visitor, holder)
    // A called request may release its place at once, which would call a whole queue recursively.
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
