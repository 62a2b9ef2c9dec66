// The time limit for the head of an app's response, if its tunnel has one of its own.

import type { Clock, Deadline } from '../../server/contracts/clock.ts'

export class AnswerDeadline implements Deadline {
  dueTick = 0
  readonly #deadlines: Clock
  readonly #over: () => void

  /** Calls `over` after `ms`, unless it is stopped first. */
  constructor(deadlines: Clock, ms: number, over: () => void) {
    this.#deadlines = deadlines
    this.#over = over
    deadlines.watch(this)
    deadlines.arm(this, ms)
  }

  expired(): void {
    this.stop()
    this.#over()
  }

  stop(): void {
    this.#deadlines.forget(this)
  }
}
