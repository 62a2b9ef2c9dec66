// The state that all flows of one UDP tunnel share: the turn of the event loop, and the waiting bytes.

import type { Scheduler } from '../session/scheduler.ts'
import type { Turns } from '../session/turns.ts'

export interface FlowShareOptions {
  readonly scheduler: Scheduler
  /** Divides the event loop's time for sending among the UDP tunnels of a server, or of one client process. */
  readonly turns: Turns
  /** The time in milliseconds without datagrams in either direction after which a flow ends. */
  readonly idleTimeoutMs: number
  /** Called when datagrams were dropped for lack of room or time. */
  dropped(count: number): void
}

export class FlowShare {
  readonly options: FlowShareOptions
  /** The number of bytes of all flows that wait in streams. */
  backlogBytes = 0
  /** The number of flows with more datagrams than fit in their turn. */
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

  /** The number of this turn of the event loop. It changes after all reads of the turn. */
  get turnNumber(): number {
    this.#planEnd()
    return this.#turnNumber
  }

  /** Runs `task` after all reads of this turn, with one callback of the event loop for all flows. */
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
