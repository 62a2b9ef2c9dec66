// Limits how often a peer may do something per second, so that a flood ends its session.

/**
 * The number of PINGs and similar frames per second that are accepted. An honest peer pings once in ten seconds, and
 * a few times when it wakes up.
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
   * Counts `count` more. `more` raises the limit: the highest value within the second counts, because a client with
   * many tunnels may release them all. Returns `false` if there are more than an honest peer sends in a second.
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
