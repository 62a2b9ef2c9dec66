// Decides which requests are captured if there are more than a person can read.

/**
 * The time in milliseconds after the last excess request for which sampling continues, so that short breaks do not
 * end it.
 */
const CALM_MS = 2_000

export class Sampler {
  readonly #rate: number
  readonly #burst: number
  #tokens: number
  #filledAt: number
  #lastExcessAt = Number.NEGATIVE_INFINITY
  /** The number of requests in the second that started at `#secondAt`, captured or not. */
  #seen = 0
  #secondAt: number
  /** The number of requests that were not captured. */
  skipped = 0

  /** Makes a sampler. `rate` is the number of requests per second after a burst; 0 for all. */
  constructor(rate: number, burst: number, now: number) {
    this.#rate = rate
    this.#burst = burst
    this.#tokens = burst
    this.#filledAt = now
    this.#secondAt = now
  }

  /** Whether another request may be captured now. */
  hasRoom(now: number): boolean {
    if (this.#rate === 0) return true
    this.#tokens = Math.min(this.#burst, this.#tokens + ((now - this.#filledAt) / 1_000) * this.#rate)
    this.#filledAt = now
    return this.#tokens >= 1
  }

  /** Called when a request begins. Returns whether it is captured. */
  take(now: number): boolean {
    this.saw(1, now)
    if (this.hasRoom(now)) {
      this.#tokens--
      return true
    }
    this.skipped++
    this.#lastExcessAt = now
    return false
  }

  /** Counts requests, also those that the inspector cannot see. */
  saw(count: number, now: number): void {
    if (now - this.#secondAt >= 1_000) {
      this.#secondAt = now
      this.#seen = 0
    }
    this.#seen += count
    if (this.isSampling(now) && this.#seen > this.#rate) this.#lastExcessAt = now
  }

  isSampling(now: number): boolean {
    return now - this.#lastExcessAt < CALM_MS
  }
}
