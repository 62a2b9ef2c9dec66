// A number of places. A caller that finds none free waits.

export class Slots {
  #free: number
  readonly #line: (() => void)[] = []

  constructor(count: number) {
    this.#free = count
  }

  /** Runs `body` in a place. */
  async run<Result>(body: () => Promise<Result>): Promise<Result> {
    if (this.#free > 0) this.#free--
    else await new Promise<void>(resolve => this.#line.push(resolve))
    try {
      return await body()
    } finally {
      const next = this.#line.shift()
      if (next === undefined) this.#free++
      else next()
    }
  }
}
