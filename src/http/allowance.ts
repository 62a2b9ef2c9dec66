// Limits actions of the peer that cost this side more than the peer: `most` at once, and more over time and with useful work.

export class Allowance {
  readonly #most: number
  readonly #perTick: number
  #left: number
  #tick = 0

  /** Makes an allowance. `perTick` is added with each tick of the clock that `spend` gets. */
  constructor(most: number, perTick: number) {
    this.#most = most
    this.#perTick = perTick
    this.#left = most
  }

  /** Spends `count`. Returns `false` if the allowance is used up. */
  spend(count: number, tick: number): boolean {
    if (tick > this.#tick) {
      this.earn((tick - this.#tick) * this.#perTick)
      this.#tick = tick
    }
    this.#left -= count
    return this.#left >= 0
  }

  earn(count: number): void {
    this.#left = Math.min(this.#most, this.#left + count)
  }
}
