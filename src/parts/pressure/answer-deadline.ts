// The time that an app has for the head of its response, if its tunnel has a limit of its own.

import type { Clock, Deadline } from '../../server/contracts/clock.ts'

export class AnswerDeadline implements Deadline {
  dueTick = 0
  readonly #deadlines: Clock
  readonly #over: () => void

  /** Calls `over` when `ms` are over, unless it is stopped before. */
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
