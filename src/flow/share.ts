// The state that the flows of one UDP tunnel share: its turn of the event loop, and how much of it waits.

import type { Scheduler } from '../session/scheduler.ts'
import type { Turns } from '../session/turns.ts'

export interface FlowShareOptions {
  readonly scheduler: Scheduler
  /**
   * The turns of the UDP tunnels of one server or one process of clients, for what they send on in one turn of the event loop.
   */
  readonly turns: Turns
  /** A flow without datagrams either way for this long ends, milliseconds. */
  readonly idleTimeoutMs: number
  /** Datagrams were dropped because there is no room for them, or no time. */
  dropped(count: number): void
}

export class FlowShare {
  readonly options: FlowShareOptions
  /** Bytes that wait in streams, in total flows. */
  backlogBytes = 0
  /** Flows that have more to send on than fits in their turn. */
  waitingCount = 0
  #turnNumber = 0
  #isEndPlanned = false
  #atEnd: (() => void)[] = []
  readonly #endTurn: () => void

  constructor(options: FlowShareOptions) {
    this.options = options
    this.#endTurn = () => {
      this.#isEndPlanned = false
      this.#turnNumber++
      const tasks = this.#atEnd
      this.#atEnd = []
      for (const task of tasks) task()
    }
  }

  /** A number of this turn of the event loop. It changes behind the reads of the turn. */
  get turnNumber(): number {
    this.#planEnd()
    return this.#turnNumber
  }

  /** Runs `task` when this turn is over, behind its reads: one callback of the event loop for all flows. */
  atTurnEnd(task: () => void): void {
    this.#atEnd.push(task)
    this.#planEnd()
  }

  #planEnd(): void {
    if (this.#isEndPlanned) return
    this.#isEndPlanned = true
    this.options.scheduler.soon(this.#endTurn)
  }
}
