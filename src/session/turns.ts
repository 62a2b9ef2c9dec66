// Divides work that arrives faster than it can be done: each turn of the event loop has a limited time, in portions.

import type { Scheduler } from './scheduler.ts'

/** A connection with more work than one portion. */
export interface Waiting {
  /** Called for a turn: does one portion, and asks to wait again if there is more. An error does not end the connection. */
  turn(): void
}

/**
 * The time for one turn of the event loop, in milliseconds. Every other connection waits for it. With 2 ms a visitor
 * loses little, and 100 requests fit, so that changing turns costs less than 1 %.
 */
const TURN_MS = 2

/** Divides each turn of the event loop among connections with more work than one portion. Work of one portion never waits. */
export class Turns {
  readonly #scheduler: Scheduler
  readonly #failed: (error: Error) => void
  readonly #turn: () => void
  /** The connections that wait for a first turn since they were idle. */
  readonly #fresh = new Set<Waiting>()
  /** The connections that had a turn and have more work. */
  readonly #again = new Set<Waiting>()
  #current: Waiting | undefined
  /** The time when this turn ends; 0 if no connection has asked yet. */
  #endsAt = 0
  #isPlanned = false

  /** Makes the turns. `failed` is called with errors of a turn: in the event loop they would end the process. */
  constructor(scheduler: Scheduler, failed: (error: Error) => void) {
    this.#scheduler = scheduler
    this.#failed = failed
    this.#turn = () => this.#runTurn()
  }

  /** Whether a connection may begin another portion now. If not, it must `wait`. */
  get hasTime(): boolean {
    // In a turn, one connection does one portion. The next portion belongs to another connection.
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

  /** Gives `waiting` a turn, once, after those that wait already. Unfinished connections come after new ones. */
  wait(waiting: Waiting): void {
    if (waiting === this.#current) this.#again.add(waiting)
    else if (!this.#again.has(waiting)) this.#fresh.add(waiting)
    this.#plan()
  }

  /** Forgets a connection without further work. */
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
    // New and unfinished connections alternate, so that neither kind keeps the other one out.
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
