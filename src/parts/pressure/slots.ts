// How many requests of a tunnel are under way at once, and the queue of those that wait for their turn, bounded in number and time.
// The visitor that has fewest under way is next, so one that sends many waits for itself.

import type { ErrorCode } from '../../errors.ts'
import type { Clock, Deadline } from '../../server/contracts/clock.ts'
import { type Taker, Takers } from '../../server/limits/takers.ts'

export interface SlotRule {
  readonly maxInFlight: number
  readonly maxQueued: number
  readonly queueTimeoutMs: number
}

/** A request. */
export interface Holder extends Taker {
  /** The network of its visitor. */
  readonly visitor: string
}

/** Called once: it has a place, or why not. */
type Called = (code: ErrorCode | undefined) => void

export class Slots {
  readonly #rule: SlotRule
  readonly #deadlines: Clock
  readonly #queue = new Takers<Waiting>()
  /** Requests that have a place. */
  readonly #inside = new Takers()
  /** Requests that wait. */
  queued = 0
  #taken = 0
  /** Places that are free and not handed on yet, while one after the other is called. */
  #freed = 0

  constructor(rule: SlotRule, deadlines: Clock) {
    this.#rule = rule
    this.#deadlines = deadlines
  }

  /** `false`: it has to wait. Who was there before has its turn before. */
  take(holder: Holder): boolean {
    if (this.#taken >= this.#rule.maxInFlight || this.queued > 0) return false
    this.#taken++
    this.#inside.add(holder.visitor, holder)
    return true
  }

  /** Returns what ends the wait, or why it cannot wait. A place that it gets is to be given back. */
  wait(holder: Holder, called: Called): (() => void) | ErrorCode {
    const { maxQueued, queueTimeoutMs } = this.#rule
    const { visitor } = holder
    const queue = this.#queue
    if (queue.isMakingRoom || (this.queued >= maxQueued && !queue.makeRoomFor(visitor))) return 'TUNNEL_BUSY'
    const waiting: Waiting = new Waiting(this.#deadlines, queueTimeoutMs, holder, called, {
      // Its place goes to who has fewest, which is most often this one.
      expired: () => void this.#inside.makeRoomFor(visitor),
      left: () => {
        this.queued--
        queue.delete(visitor, waiting)
      },
    })
    this.queued++
    queue.add(visitor, waiting)
    return () => waiting.stop()
  }

  /** The place goes to the next one as it is. */
  release(holder: Holder): void {
    this.#inside.delete(holder.visitor, holder)
    // One that is called may give its place back at once, and all of a queue would be called inside of each other.
    if (++this.#freed > 1) return
    try {
      for (; this.#freed > 0; this.#freed--) {
        const next =
          this.queued === 0 ? undefined : this.#queue.first(visitor => this.#inside.countOf(visitor))
        if (next === undefined) this.#taken--
        else {
          this.#inside.add(next.holder.visitor, next.holder)
          next.call(undefined)
        }
      }
    } finally {
      this.#freed = 0
    }
  }
}

interface WaitingOwner {
  /** The request has waited for too long, and still waits. */
  expired(): void
  left(): void
}

class Waiting implements Deadline, Taker {
  dueTick = 0
  readonly holder: Holder
  readonly #deadlines: Clock
  readonly #called: Called
  readonly #owner: WaitingOwner
  #isOver = false

  constructor(deadlines: Clock, timeoutMs: number, holder: Holder, called: Called, owner: WaitingOwner) {
    this.#deadlines = deadlines
    this.holder = holder
    this.#called = called
    this.#owner = owner
    deadlines.watch(this)
    deadlines.arm(this, timeoutMs)
  }

  expired(): void {
    this.#owner.expired()
    if (!this.#isOver) this.giveWay()
  }

  giveWay(): void {
    this.call('TUNNEL_BUSY')
  }

  call(code: ErrorCode | undefined): void {
    this.stop()
    this.#called(code)
  }

  stop(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#deadlines.forget(this)
    this.#owner.left()
  }
}
