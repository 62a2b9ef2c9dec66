// Shares of one budget: who takes some of it leaves a multiple to others. So it is never used up by a few, however often they ask, and
// nothing has to be taken away again.

/** One visitor leaves four times of what it has: a fifth of an empty budget is the most that it gets. */
const LEFT_BY_VISITOR = 4

/** What one visitor can have of an empty budget, in parts of it: a budget for so many of the largest piece has room for one. */
export const LARGEST_TIMES: number = LEFT_BY_VISITOR + 1

export class Shares {
  #taken = 0
  readonly #byKey = new Map<string, number>()

  /**
   * Whether this owner and this visitor may have so many more. The visitors of one owner together leave as much of `most` as they have: half
   * of an empty budget is the most that they get. `''`: has no share of its own.
   */
  hasRoom(owner: string, visitor: string, count: number, most: number): boolean {
    const left = most - this.#taken - count
    if (left < 0) return false
    const [ofOwner, ofVisitor] = keysOf(owner, visitor).map(key => (this.#byKey.get(key) ?? 0) + count)
    return (owner === '' || ofOwner! <= left) && (visitor === '' || ofVisitor! * LEFT_BY_VISITOR <= left)
  }

  /** Counts so many more. `false`: there is no room, and nothing is counted. */
  take(owner: string, visitor: string, count: number, most: number): boolean {
    const hasRoom = this.hasRoom(owner, visitor, count, most)
    if (hasRoom) this.#change(owner, visitor, count)
    return hasRoom
  }

  get taken(): number {
    return this.#taken
  }

  give(owner: string, visitor: string, count: number): void {
    this.#change(owner, visitor, -count)
  }

  #change(owner: string, visitor: string, count: number): void {
    this.#taken += count
    for (const key of keysOf(owner, visitor)) {
      const now = (this.#byKey.get(key) ?? 0) + count
      if (now === 0) this.#byKey.delete(key)
      else this.#byKey.set(key, now)
    }
  }
}

const keysOf = (owner: string, visitor: string): readonly string[] => [`o ${owner}`, `v ${visitor}`]
