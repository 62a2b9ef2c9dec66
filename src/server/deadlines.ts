// Deadlines by the thousand: one timer sweeps them all, so that arming one costs an assignment and no timer.

/** Something that may run out of time. */
export interface Deadline {
  /** The tick at which `expired` is called; 0 for never. Only `Deadlines` sets it. */
  dueTick: number
  expired(): void
}

const TICK_MS = 250
export const TICKS_PER_SECOND: number = 1_000 / TICK_MS

/** Calls `expired` up to two ticks (half a second) after the time given: good enough for timeouts of seconds. */
export class Deadlines {
  readonly #watched = new Set<Deadline>()
  #timer: ReturnType<typeof setInterval> | undefined
  #tick = 1
  readonly #failed: (error: Error) => void

  /** `failed`: what an `expired` throws. It must not reach the event loop, where it would end the process. */
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

  /** Due after `ms`; 0 means never. Replaces what was armed before. */
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
