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
   * Counts so many more for this owner and this visitor. `false`: that would leave too little of `most`, and nothing is counted. The
   * visitors of one owner together leave as much as they have: half of an empty budget is the most that they get. `''`: the budget has
   * one owner.
   */
  take(owner: string, visitor: string, count: number, most: number): boolean {
    const left = most - this.#taken - count
    const [ofOwner, ofVisitor] = keysOf(owner, visitor).map(key => (this.#byKey.get(key) ?? 0) + count)
    if ((owner !== '' && ofOwner! > left) || ofVisitor! * LEFT_BY_VISITOR > left) return false
    this.#change(owner, visitor, count)
    return true
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
