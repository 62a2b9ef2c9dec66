// The circuit breaker of a tunnel: if too many responses of its app are failures, visitors get 503 for a while. Then one
// visitor at a time tries the app.
//
//   closed ── too many failures ──▶ open ── after `openMs` ──▶ one visitor tries ── good ──▶ closed
//                                     ▲                               │
//                                     └────── failed, twice as long ──┘

import type { BreakerRule } from '../../server/settings/tunnel-rule.ts'

/** The longest time in milliseconds between attempts. */
const MAX_OPEN_MS = 60_000

export class Breaker {
  readonly #rule: Required<BreakerRule>
  readonly #now: () => number
  readonly #opened: () => void
  #windowEnds = 0
  #requests = 0
  #failures = 0
  /** The time until which the breaker is open; 0 if it is closed. */
  #openUntil = 0
  #openMs: number
  #isTrying = false

  /** Makes a breaker. `opened` is called when visitors are refused from now on. */
  constructor(
    { errorPercent = 50, minRequests = 20, windowMs = 10_000, openMs = 5_000 }: BreakerRule,
    opened: () => void,
    now: () => number = () => performance.now(),
  ) {
    this.#rule = { errorPercent, minRequests, windowMs, openMs }
    this.#openMs = openMs
    this.#opened = opened
    this.#now = now
  }

  get isClosed(): boolean {
    return this.#openUntil === 0
  }

  /**
   * Returns 0 if the visitor may continue: then call `ended` once. Otherwise returns the milliseconds until a visitor may try.
   */
  admit(): number {
    if (this.#openUntil === 0) return 0
    const left = this.#openUntil - this.#now()
    if (left > 0) return left
    if (this.#isTrying) return this.#openMs
    this.#isTrying = true
    return 0
  }

  /**
   * Called when an admitted visitor is done. `undefined`: it left, so nothing is known about the app. `isTry`: it was
   * admitted while the breaker was not closed. Results of earlier visitors say nothing about the try.
   */
  ended(hasFailed: boolean | undefined, isTry: boolean): void {
    if (!isTry) {
      if (hasFailed !== undefined) this.counted(1, hasFailed ? 1 : 0)
      return
    }
    this.#isTrying = false
    if (hasFailed === undefined) return
    if (hasFailed) return this.#open(Math.min(2 * this.#openMs, MAX_OPEN_MS))
    this.#openUntil = 0
    this.#openMs = this.#rule.openMs
    this.#requests = this.#failures = 0
  }

  /** Counts requests that ended while the breaker was closed. */
  counted(requests: number, failures: number): void {
    if (this.#openUntil !== 0) return
    const now = this.#now()
    if (now >= this.#windowEnds) {
      this.#windowEnds = now + this.#rule.windowMs
      this.#requests = this.#failures = 0
    }
    this.#requests += requests
    this.#failures += failures
    const { errorPercent, minRequests } = this.#rule
    const isTooMuch = this.#failures * 100 >= errorPercent * this.#requests
    if (failures > 0 && isTooMuch && this.#requests >= minRequests) this.#open(this.#rule.openMs)
  }

  #open(openMs: number): void {
    this.#openMs = openMs
    this.#openUntil = this.#now() + openMs
    this.#opened()
  }
}
