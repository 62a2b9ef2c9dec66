// Places that visitors take, such as streams. If all are taken, the visitor with the most loses one to a visitor with
// fewer. So a few visitors cannot keep others out, and a visitor that is alone may have all.

export interface Taker {
  /** Frees the place at once. */
  giveWay(): void
}

export class Takers<One extends Taker = Taker> {
  /** The places by the network of the visitor's address. */
  readonly #byVisitor = new Map<string, Set<One>>()
  /** Whether a place is being freed for a visitor. The one that lost it may ask again at once, and must not get it. */
  isMakingRoom = false

  add(visitor: string, one: One): void {
    const all = this.#byVisitor.get(visitor) ?? new Set()
    if (all.size === 0) this.#byVisitor.set(visitor, all)
    all.add(one)
  }

  delete(visitor: string, one: One): void {
    const all = this.#byVisitor.get(visitor)
    if (all?.delete(one) === true && all.size === 0) this.#byVisitor.delete(visitor)
  }

  countOf(visitor: string): number {
    return this.#byVisitor.get(visitor)?.size ?? 0
  }

  get isEmpty(): boolean {
    return this.#byVisitor.size === 0
  }

  first(weightOf: (visitor: string) => number): One | undefined {
    let least = Number.POSITIVE_INFINITY
    let first: One | undefined
    for (const [visitor, [oldest]] of this.#byVisitor) {
      const weight = weightOf(visitor)
      if (weight >= least) continue
      least = weight
      first = oldest
    }
    return first
  }

  /**
   * Ends the newest place of the visitor with the most. Returns `false` if no visitor has at least two more than this
   * one: with a difference of one, the two would take turns.
   */
  makeRoomFor(visitor: string, among: Iterable<Takers> = [this as Takers<Taker>]): boolean {
    let mostCount = this.countOf(visitor) + 1
    let most: Set<Taker> | undefined
    for (const takers of among)
      for (const all of takers.#byVisitor.values())
        if (all.size > mostCount) {
          mostCount = all.size
          most = all
        }
    const newest = most && [...most].at(-1)
    if (most === undefined || newest === undefined) return false
    // The place is kept by a login, until its connection is closed.
    most.delete(newest)
    this.isMakingRoom = true
    try {
      newest.giveWay()
    } finally {
      this.isMakingRoom = false
    }
    return true
  }
}
