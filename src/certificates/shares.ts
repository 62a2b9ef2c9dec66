// Counts orders for each owner of names, so that none uses up the limit of all owners.

/** The number of owners in memory above which those whose window is over are removed. */
const FIRST_SWEEP = 1_024

export class Shares {
  readonly #most: number
  readonly #windowMs: number
  /** The times of the last orders by owner, the oldest first. */
  readonly #orders = new Map<string, number[]>()
  #sweepAt = FIRST_SWEEP

  /** Makes the shares: `most` orders in `windowMs`; 0: any number. */
  constructor(most: number, windowMs: number) {
    this.#most = most
    this.#windowMs = windowMs
  }

  /** Returns when the next order is allowed. `undefined` for now. */
  freeAtMs(owner: string, nowMs: number): number | undefined {
    const times = this.#recent(owner, nowMs)
    return this.#most === 0 || times.length < this.#most ? undefined : (times[0] ?? nowMs) + this.#windowMs
  }

  count(owner: string, nowMs: number): void {
    if (this.#most === 0) return
    if (this.#orders.size >= this.#sweepAt) this.#sweep(nowMs)
    this.#orders.set(owner, [...this.#recent(owner, nowMs), nowMs])
  }

  #recent(owner: string, nowMs: number): readonly number[] {
    return (this.#orders.get(owner) ?? []).filter(atMs => atMs > nowMs - this.#windowMs)
  }

  #sweep(nowMs: number): void {
    for (const owner of this.#orders.keys())
      if (this.#recent(owner, nowMs).length === 0) this.#orders.delete(owner)
    this.#sweepAt = Math.max(FIRST_SWEEP, 2 * this.#orders.size)
  }
}
