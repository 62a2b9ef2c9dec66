// Deadlines by the thousand: one timer sweeps them all, so that arming one costs an assignment and no timer.

import type { Clock, Deadline } from '../contracts/clock.ts'

export type { Deadline } from '../contracts/clock.ts'

const TICK_MS = 250
export const TICKS_PER_SECOND: number = 1_000 / TICK_MS

/** Calls `expired` up to two ticks (half a second) after the time given: good enough for timeouts of seconds. */
export class Deadlines implements Clock {
  readonly #watched = new Set<Deadline>()
  #timer: ReturnType<typeof setInterval> | undefined
  #tick = 1
  readonly #failed: (error: Error) => void

  /**
   * Makes the deadlines. `failed` is called with an error of `expired`, which must not reach the event loop, where it would end
   * the process. It must not reach the event loop, where it would end the process.
   */
  constructor(failed: (error: Error) => void) {
    this.#failed = failed
  }

  /** Counts up, `TICKS_PER_SECOND` times a second: the time, for those who can do with so little. */
  get tick(): number {
    return this.#tick
  }

  start(): void {
    this.#timer = setInterval(() => this.#sweep(), TICK_MS)
    // The listener keeps the process alive, not its housekeeping.
    this.#timer.unref()
  }

  watch(deadline: Deadline): void {
    this.#watched.add(deadline)
  }

  forget(deadline: Deadline): void {
    this.#watched.delete(deadline)
  }

  arm(deadline: Deadline, ms: number): void {
    deadline.dueTick = ms === 0 ? 0 : this.#tick + Math.ceil(ms / TICK_MS) + 1
  }

  disarm(deadline: Deadline): void {
    deadline.dueTick = 0
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#watched.clear()
  }

  #sweep(): void {
    this.#tick++
    for (const deadline of this.#watched) {
      if (deadline.dueTick === 0 || deadline.dueTick > this.#tick) continue
      deadline.dueTick = 0
      try {
        deadline.expired()
      } catch (error) {
        this.#failed(error instanceof Error ? error : new Error(String(error)))
      }
    }
  }
}
