// Repeats work at a time that the work itself returns, or earlier after an event: one round at a time, with one timer.

import type { Clock } from './clock.ts'

const SHORTEST_MS = 1_000
/** The pause in milliseconds after a round that failed. */
const RETRY_MS = 60_000

export class Rounds {
  readonly #clock: Clock
  readonly #work: () => Promise<number>
  readonly #report: (error: unknown) => void
  #running: Promise<void> | undefined
  #cancel: (() => void) | undefined
  #plannedMs: number | undefined
  #isStopped = false

  /** Makes the rounds. `work` resolves with the time of the next call. */
  constructor(clock: Clock, work: () => Promise<number>, report: (error: unknown) => void) {
    this.#clock = clock
    this.#work = work
    this.#report = report
  }

  /** Runs a round now. If one is in progress, waits for it. */
  run(): Promise<void> {
    this.#running ??= this.#round()
    return this.#running
  }

  /** Plans a round at `atMs`, not sooner than in a second, unless an earlier one is planned. */
  wake(atMs: number): void {
    if (this.#isStopped || (this.#plannedMs !== undefined && this.#plannedMs <= atMs)) return
    this.#cancel?.()
    const delayMs = Math.max(atMs - this.#clock.now(), SHORTEST_MS)
    this.#plannedMs = this.#clock.now() + delayMs
    this.#cancel = this.#clock.after(delayMs, () => {
      this.#plannedMs = undefined
      void this.run()
    })
  }

  /** Ends the rounds. Resolves when the one in progress is over. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#cancel?.()
    await this.#running
  }

  async #round(): Promise<void> {
    let nextMs: number
    try {
      nextMs = await this.#work()
    } catch (error) {
      this.#report(error)
      nextMs = this.#clock.now() + RETRY_MS
    }
    this.#running = undefined
    this.wake(nextMs)
  }
}

/** Limits how many functions run at once. The others wait, in the order of their calls. */
export class Slots {
  #free: number
  readonly #line: (() => void)[] = []

  constructor(count: number) {
    this.#free = count
  }

  /** Runs `body` as soon as fewer than `count` others run. */
  async run<Result>(body: () => Promise<Result>): Promise<Result> {
    if (this.#free > 0) this.#free--
    else await new Promise<void>(resolve => this.#line.push(resolve))
    try {
      return await body()
    } finally {
      const next = this.#line.shift()
      if (next === undefined) this.#free++
      else next()
    }
  }
}
