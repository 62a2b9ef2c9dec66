// How often an honest peer may do something: a count per second, so that a flood ends its session.

export class Tolerance {
  readonly #mostPerSecond: number
  #second = 0
  #count = 0

  constructor(mostPerSecond: number) {
    this.#mostPerSecond = mostPerSecond
  }

  /** Counts one more. `false`: more than an honest peer does in one second. */
  allows(nowMs: number): boolean {
    const second = Math.floor(nowMs / 1000)
    this.#count = second === this.#second ? this.#count + 1 : 1
    this.#second = second
    return this.#count <= this.#mostPerSecond
  }
}
