// How many requests of a tunnel are under way at once, and the queue of those that wait for their turn, bounded in number and time.

import type { ErrorCode } from '../../errors.ts'
import type { Clock, Deadline } from '../../server/contracts/clock.ts'

export interface SlotRule {
  readonly maxInFlight: number
  readonly maxQueued: number
  readonly queueTimeoutMs: number
}

/** Called once: it has a place, or why not. */
type Called = (code: ErrorCode | undefined) => void

export class Slots {
  readonly #rule: SlotRule
  readonly #deadlines: Clock
  readonly #queue = new Set<Waiting>()
  #taken = 0
  /** Places that are free and not handed on yet, while one after the other is called. */
  #freed = 0

  constructor(rule: SlotRule, deadlines: Clock) {
    this.#rule = rule
    this.#deadlines = deadlines
  }

  /** Those that wait. */
  get queued(): number {
    return this.#queue.size
  }

  /** `false`: it has to wait. Who was there before has its turn before. */
  take(): boolean {
    if (this.#taken >= this.#rule.maxInFlight || this.#queue.size > 0) return false
    this.#taken++
    return true
  }

  /** Returns what ends the wait, or why it cannot wait. A place that it gets is to be given back. */
  wait(called: Called): (() => void) | ErrorCode {
    const { maxQueued, queueTimeoutMs } = this.#rule
    if (this.#queue.size >= maxQueued) return 'TUNNEL_BUSY'
    const waiting = new Waiting(this.#deadlines, queueTimeoutMs, called, () => this.#queue.delete(waiting))
    this.#queue.add(waiting)
    return () => waiting.stop()
  }

  /** The place goes to the next one as it is. */
  release(): void {
    // One that is called may give its place back at once, and all of a queue would be called inside of each other.
    if (++this.#freed > 1) return
    try {
      for (; this.#freed > 0; this.#freed--) {
        const [next] = this.#queue
        if (next === undefined) this.#taken--
        else next.call(undefined)
      }
    } finally {
      this.#freed = 0
    }
  }
}

class Waiting implements Deadline {
  dueTick = 0
  readonly #deadlines: Clock
  readonly #called: Called
  readonly #left: () => void

  constructor(deadlines: Clock, timeoutMs: number, called: Called, left: () => void) {
    this.#deadlines = deadlines
    this.#called = called
    this.#left = left
    deadlines.watch(this)
    deadlines.arm(this, timeoutMs)
  }

  expired(): void {
    this.call('TUNNEL_BUSY')
  }

  call(code: ErrorCode | undefined): void {
    this.stop()
    this.#called(code)
  }

  stop(): void {
    this.#deadlines.forget(this)
    this.#left()
  }
}
