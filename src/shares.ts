// Shares of one budget: who takes some of it leaves a multiple to others. So it is never used up by a few, however often they ask. When
// many have used it up, the visitor with the most gives way to a visitor with less.

/**
 * The part of the budget that one visitor has to leave free, in multiples of what it has: it gets at most a fifth of an empty
 * budget.
 */
const LEFT_BY_VISITOR = 4

/** The number of largest pieces that a budget has to hold, so that one visitor gets room for one of them. */
export const LARGEST_TIMES: number = LEFT_BY_VISITOR + 1

/** A part of the budget that one visitor takes piece by piece. */
export interface Portion {
  readonly owner: string
  readonly visitor: string
  /** Gives up all of it, at once. */
  giveWay(): void
}

export class Shares {
  #taken = 0
  /** Portions that may still give way. */
  readonly #portions = new Map<Portion, number>()
  readonly #byKey = new Map<string, number>()

  /**
   * Whether this owner and this visitor may have this many more. The visitors of one owner together leave as much of `most` as they have: half
   * of an empty budget is the most that they get. `''`: has no share of its own.
   */
  hasRoom(owner: string, visitor: string, count: number, most: number): boolean {
    const left = most - this.#taken - count
    if (left < 0) return false
    const [ofOwner, ofVisitor] = keysOf(owner, visitor).map(key => (this.#byKey.get(key) ?? 0) + count)
    return (owner === '' || ofOwner! <= left) && (visitor === '' || ofVisitor! * LEFT_BY_VISITOR <= left)
  }

  /** Counts this many more. `false`: there is no room, and nothing is counted. */
  take(owner: string, visitor: string, count: number, most: number): boolean {
    const hasRoom = this.hasRoom(owner, visitor, count, most)
    if (hasRoom) this.#change(owner, visitor, count)
    return hasRoom
  }

  /** The same for a portion. Without room it takes that of the visitor that has most with this owner, if this one has less. */
  grow(portion: Portion, count: number, most: number): boolean {
    const { owner, visitor } = portion
    const hasRoom = this.take(owner, visitor, count, most) || this.#takeFromMost(portion, count)
    if (hasRoom) this.#portions.set(portion, (this.#portions.get(portion) ?? 0) + count)
    return hasRoom
  }

  /** The portion does not give way any more. */
  settle(portion: Portion): void {
    this.#portions.delete(portion)
  }

  #takeFromMost({ owner, visitor }: Portion, count: number): boolean {
    const others = [...this.#portions].filter(([one]) => one.owner === owner)
    const totals = new Map<string, number>()
    for (const [one, taken] of others) totals.set(one.visitor, (totals.get(one.visitor) ?? 0) + taken)
    let most = (totals.get(visitor) ?? 0) + count
    let whose: string | undefined
    for (const [one, total] of totals)
      if (total > most) {
        most = total
        whose = one
      }
    if (whose === undefined) return false
    // All of its portions are more than is wanted.
    let freed = 0
    for (const [one, taken] of others.sort(([, a], [, b]) => b - a)) {
      if (one.visitor !== whose || freed >= count) continue
      freed += taken
      this.#portions.delete(one)
      one.giveWay()
    }
    this.#change(owner, visitor, count)
    return true
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
