// Places that visitors take, such as streams: when all are taken, the visitor with the most gives one up for a visitor with fewer.
// A few visitors keep no other one out, and a visitor that is alone may have all.

export interface Taker {
  /** Gives up what it has, at once. */
  giveWay(): void
}

export class Takers<One extends Taker = Taker> {
  /** The entries by the network of the visitor's address. */
  readonly #byVisitor = new Map<string, Set<One>>()
  /** The place is for the visitor that asked: the one that gives way may ask again at once. */
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

  /** Ends the newest of the visitor that has most. `false`: no visitor has two more than this one. With one more they would take turns. */
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
    // The login may stay until its connection is closed.
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
