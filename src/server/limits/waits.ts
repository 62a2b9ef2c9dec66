// Waiting requests, limited in number and time. If no more may wait, the visitor with the most waiting requests loses one.

import type { Clock, Deadline } from '../contracts/clock.ts'
import { type Taker, Takers } from './takers.ts'

export class Waits<Outcome> {
  readonly #deadlines: Clock
  readonly #tooLate: Outcome
  readonly #all = new Set<Wait<Outcome>>()
  readonly #takers = new Takers<Wait<Outcome>>()

  /** `tooLate` is the outcome of a wait that takes too long or loses its place. */
  constructor(deadlines: Clock, tooLate: Outcome) {
    this.#deadlines = deadlines
    this.#tooLate = tooLate
  }

  get size(): number {
    return this.#all.size
  }

  /**
   * Adds a wait of `timeoutMs`. `done` is called once, unless the wait is stopped first. Returns `undefined` if
   * `most` wait already and no visitor has two more than this one. `late` is called when the time is over, and may
   * still end the wait in another way.
   */
  add(
    visitor: string,
    most: number,
    timeoutMs: number,
    done: (outcome: Outcome) => void,
    late?: () => void,
  ): Wait<Outcome> | undefined {
    const takers = this.#takers
    if (takers.isMakingRoom || (this.#all.size >= most && !takers.makeRoomFor(visitor))) return undefined
    const wait = new Wait(this.#deadlines, timeoutMs, this.#tooLate, done, late, () => {
      this.#all.delete(wait)
      takers.delete(visitor, wait)
    })
    this.#all.add(wait)
    takers.add(visitor, wait)
    return wait
  }

  /** Returns the oldest wait of the visitor with the least weight. */
  first(weightOf: (visitor: string) => number): Wait<Outcome> | undefined {
    return this.#takers.first(weightOf)
  }

  /** Stops all waits. Returns a function that gives them their outcome. */
  stop(): (outcome: Outcome) => void {
    const all = [...this.#all]
    for (const wait of all) wait.stop()
    return outcome => {
      for (const wait of all) wait.done(outcome)
    }
  }

  /** Ends all waits one after the other, because an outcome may stop later ones. */
  finish(outcome: Outcome): void {
    for (const wait of [...this.#all]) if (this.#all.has(wait)) wait.finish(outcome)
  }
}

export class Wait<Outcome> implements Deadline, Taker {
  dueTick = 0
  readonly done: (outcome: Outcome) => void
  readonly #deadlines: Clock
  readonly #tooLate: Outcome
  readonly #late: (() => void) | undefined
  readonly #left: () => void
  #isOver = false

  constructor(
    deadlines: Clock,
    timeoutMs: number,
    tooLate: Outcome,
    done: (outcome: Outcome) => void,
    late: (() => void) | undefined,
    left: () => void,
  ) {
    this.#deadlines = deadlines
    this.#tooLate = tooLate
    this.done = done
    this.#late = late
    this.#left = left
    deadlines.watch(this)
    deadlines.arm(this, timeoutMs)
  }

  expired(): void {
    this.#late?.()
    if (!this.#isOver) this.giveWay()
  }

  giveWay(): void {
    this.finish(this.#tooLate)
  }

  finish(outcome: Outcome): void {
    this.stop()
    this.done(outcome)
  }

  stop(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#deadlines.forget(this)
    this.#left()
  }
}
