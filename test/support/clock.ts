// A scheduler that stands still: the test says when a tick ends and how much time passes.

import type { Scheduler } from '../../src/session/scheduler.ts'

interface Timer {
  readonly at: number
  readonly order: number
  readonly task: () => void
}

export class Clock implements Scheduler {
  #now: number
  #order = 0
  #soon: (() => void)[] = []
  readonly #timers = new Set<Timer>()

  /** A clock that starts at 0 would hide code that takes 0 for "long ago". */
  constructor(startMs = 5_000) {
    this.#now = startMs
  }

  now(): number {
    return this.#now
  }

  soon(task: () => void): void {
    this.#soon.push(task)
  }

  after(ms: number, task: () => void): () => void {
    const timer = { at: this.#now + ms, order: this.#order++, task }
    this.#timers.add(timer)
    return () => this.#timers.delete(timer)
  }

  /** Timers that would still go off. */
  get timerCount(): number {
    return this.#timers.size
  }

  get hasSoon(): boolean {
    return this.#soon.length > 0
  }

  /** How long until the next timer goes off; `undefined`: none would. */
  get nextInMs(): number | undefined {
    const next = this.#nextTimer()
    return next && next.at - this.#now
  }

  /** Work takes time: it is later, and no timer has gone off yet. */
  pass(ms: number): void {
    this.#now += ms
  }

  /** Ends one tick: runs what was planned so far, not what that plans. */
  tick(): void {
    const tasks = this.#soon
    this.#soon = []
    for (const task of tasks) task()
  }

  /** Lets time pass, timer by timer, with a tick after each. */
  advance(ms: number): void {
    const end = this.#now + ms
    for (;;) {
      while (this.hasSoon) this.tick()
      const next = this.#nextTimer()
      if (next === undefined || next.at > end) break
      this.#timers.delete(next)
      this.#now = Math.max(this.#now, next.at)
      next.task()
    }
    this.#now = end
  }

  #nextTimer(): Timer | undefined {
    let next: Timer | undefined
    for (const timer of this.#timers) {
      if (next === undefined || timer.at < next.at || (timer.at === next.at && timer.order < next.order))
        next = timer
    }
    return next
  }
}
