// Work that arrives faster than it can be done: each turn of the event loop gives it a bounded time, in portions.

import type { Scheduler } from './scheduler.ts'

/** A connection that has received more than one portion. */
export interface Waiting {
  /** Called for a turn: does one portion, and asks to wait again if there is more. An error does not end the connection. */
  turn(): void
}

/**
 * Time for one turn of the event loop, milliseconds. A turn is also what every other connection waits for: with 2 ms an
 * honest visitor loses little, and 100 requests fit, so that going around costs less than 1 %.
 */
const TURN_MS = 2

/**
 * Shares each turn of the event loop among all connections that have more to do than is done at once. Work of one portion never
 * waits: only connections with more of it ask here.
 */
export class Turns {
  readonly #scheduler: Scheduler
  readonly #failed: (error: Error) => void
  readonly #turn: () => void
  /** The connections that wait for the first time since they had nothing to do. */
  readonly #fresh = new Set<Waiting>()
  /** The connections that had a turn and were not finished. */
  readonly #again = new Set<Waiting>()
  #current: Waiting | undefined
  /** The time when this turn ends; 0 if no connection has asked in it. */
  #endsAt = 0
  #isPlanned = false

  /**
   * Makes the turns. `failed` is called with an error of a turn, which must not reach the event loop, where it would end the
   * process.
   */
  constructor(scheduler: Scheduler, failed: (error: Error) => void) {
    this.#scheduler = scheduler
    this.#failed = failed
    this.#turn = () => this.#runTurn()
  }

  /** Whether a connection may begin another portion now. `false`: it has to `wait`. */
  get hasTime(): boolean {
    // In a turn one connection does one portion. The next portion is that of another one.
    if (this.#current !== undefined || this.waitingCount > 0) return false
    const now = this.#scheduler.now()
    if (this.#endsAt === 0) {
      this.#endsAt = now + TURN_MS
      this.#plan()
      return true
    }
    return now < this.#endsAt
  }

  get waitingCount(): number {
    return this.#fresh.size + this.#again.size
  }

  /** Gives `waiting` a turn, once, behind those that wait already. A connection that was not finished comes behind new ones. */
  wait(waiting: Waiting): void {
    if (waiting === this.#current) this.#again.add(waiting)
    else if (!this.#again.has(waiting)) this.#fresh.add(waiting)
    this.#plan()
  }

  /** Forgets a connection that has nothing to do any more. */
  forget(waiting: Waiting): void {
    this.#fresh.delete(waiting)
    this.#again.delete(waiting)
  }

  #plan(): void {
    if (this.#isPlanned) return
    this.#isPlanned = true
    this.#scheduler.soon(this.#turn)
  }

  #runTurn(): void {
    this.#isPlanned = false
    this.#endsAt = 0
    if (this.waitingCount === 0) return
    const endsAt = this.#scheduler.now() + TURN_MS
    // The kinds take turns: neither a stream of new ones nor the many that were not finished keep the others out.
    do {
      this.#serve(this.#fresh)
      this.#serve(this.#again)
    } while (this.waitingCount > 0 && this.#scheduler.now() < endsAt)
    if (this.waitingCount > 0) this.#plan()
  }

  #serve(line: Set<Waiting>): void {
    for (const first of line) {
      line.delete(first)
      this.#current = first
      try {
        first.turn()
      } catch (error) {
        this.#failed(error instanceof Error ? error : new Error(String(error)))
      }
      this.#current = undefined
      return
    }
  }
}
