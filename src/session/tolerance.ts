// How often an honest peer may do something: a count per second, so that a flood ends its session.

/**
 * The number of PINGs and similar frames per second that are tolerated; an honest peer pings once in ten seconds, and a few
 * times when it wakes up.
 */
export const MAX_PINGS_PER_SECOND = 50

export class Tolerance {
  readonly #mostPerSecond: number
  #second = 0
  #count = 0
  #more = 0

  constructor(mostPerSecond: number) {
    this.#mostPerSecond = mostPerSecond
  }

  /**
   * Counts one more, or what is worth this many, where `more` than usual are tolerated: the highest number of this second, since
   * a client may have many tunnels and release them all. `false`: more than an honest peer does in one second.
   */
  allows(nowMs: number, count = 1, more = 0): boolean {
    const second = Math.floor(nowMs / 1000)
    const isSame = second === this.#second
    this.#second = second
    this.#count = isSame ? this.#count + count : count
    this.#more = isSame ? Math.max(this.#more, more) : more
    return this.#count <= this.#mostPerSecond + this.#more
  }
}
