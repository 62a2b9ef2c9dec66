// Bytes that have to move: what they belong to is given up when none of them moved for a time.

import type { Clock, Deadline } from '../contracts/clock.ts'

/** Bytes in transit to one side. */
export interface Movement {
  /** A number that changes when bytes have moved. */
  readonly movedBytes: number
  /** Whether bytes wait for the side that has to take or send them. */
  readonly isWaiting: boolean
  /** Bytes wait, and none of them moved in time. */
  stalled(): void
}

/** A watch that `Deadlines` has only while bytes are expected to move, so that it costs nothing while all is well. */
export class Progress implements Deadline {
  dueTick = 0
  readonly #deadlines: Clock
  readonly #movement: Movement
  /** The expected time. 0 if nothing is expected. */
  #timeoutMs = 0
  #movedAtLook = 0

  constructor(deadlines: Clock, movement: Movement) {
    this.#deadlines = deadlines
    this.#movement = movement
  }

  /** Expects that bytes move within each `timeoutMs`; 0: no limit. */
  expect(timeoutMs: number): void {
    if (timeoutMs === 0) return this.stop()
    if (this.#timeoutMs === 0) this.#deadlines.watch(this)
    this.#timeoutMs = timeoutMs
    this.#movedAtLook = this.#movement.movedBytes
    this.#deadlines.arm(this, timeoutMs)
  }

  stop(): void {
    if (this.#timeoutMs === 0) return
    this.#timeoutMs = 0
    this.#deadlines.forget(this)
    this.#deadlines.disarm(this)
  }

  expired(): void {
    const { isWaiting, movedBytes } = this.#movement
    if (!isWaiting || movedBytes !== this.#movedAtLook) return this.expect(this.#timeoutMs)
    this.stop()
    this.#movement.stalled()
  }
}
