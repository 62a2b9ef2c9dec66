// Decides which requests are reported one by one, and counts the rest: a person reads a few lines per second, and a
// report costs more than the request.

import type { ExchangeCounts } from '../../accelerator.ts'
import type { ErrorCode } from '../../errors.ts'
import type { UnreportedRequests } from '../../wire/control.ts'
import type { Clock, Deadline } from '../contracts/clock.ts'
import { TICKS_PER_SECOND } from '../limits/deadlines.ts'

/**
 * A delay in milliseconds that ends at the second next sweep of the deadlines: counts are sent after a quarter to half a second.
 */
const SOON_MS = 1

/** The reports for one receiver: a server's listeners, or a client that watches. */
export class Reports implements Deadline {
  dueTick = 0
  readonly #deadlines: Clock
  /** Returns the number of requests per second that are reported one by one; `0`: all. */
  readonly #rate: () => number
  readonly #pass: (counts: UnreportedRequests) => void
  /** The tick at which the current second started. */
  #since = Number.NEGATIVE_INFINITY
  #left = 0
  #begun = 0
  #requests = 0
  #errors = 0
  #bytes = 0
  #underWay = 0

  constructor(deadlines: Clock, rate: () => number, pass: (counts: UnreportedRequests) => void) {
    this.#deadlines = deadlines
    this.#rate = rate
    this.#pass = pass
  }

  get rate(): number {
    return this.#rate()
  }

  /** Whether this request is reported by itself. If not, count it with `began` and `ended`. */
  take(): boolean {
    const rate = this.#rate()
    if (rate === 0) return true
    const { tick } = this.#deadlines
    if (tick - this.#since >= TICKS_PER_SECOND) {
      this.#since = tick
      this.#left = rate
    }
    if (this.#left <= 0) return false
    this.#left--
    return true
  }

  began(): void {
    this.#begun++
    this.#underWay++
    this.#wake()
  }

  ended(hasFailed: boolean, bytes: number): void {
    this.#requests++
    this.#bytes += bytes
    if (hasFailed) this.#errors++
    if (this.#underWay > 0) this.#underWay--
    this.#wake()
  }

  counted({ requests, errors, bytes }: ExchangeCounts): void {
    this.#begun += requests
    this.#requests += requests
    this.#errors += errors
    this.#bytes += bytes
    this.#wake()
  }

  expired(): void {
    this.flush()
  }

  /** Passes on the counts since the last call. */
  flush(): void {
    this.#deadlines.disarm(this)
    if (this.#begun === 0 && this.#requests === 0) return
    const counts = {
      started: this.#begun,
      requests: this.#requests,
      errors: this.#errors,
      bytes: this.#bytes,
      inFlight: this.#underWay,
    }
    this.#begun = this.#requests = this.#errors = this.#bytes = 0
    this.#pass(counts)
  }

  #wake(): void {
    if (this.dueTick === 0) this.#deadlines.arm(this, SOON_MS)
  }
}

/** Whether an exchange counts as an error. A visitor that left is not a failure of the app or the tunnel. */
export function isFailure(status: number, code: ErrorCode | undefined): boolean {
  return status >= 500 || (code !== undefined && code !== 'CANCELLED')
}
