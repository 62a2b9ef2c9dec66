// Divides one budget between visitors. Each must leave a multiple of its own part free, so that a few never use up the
// budget. If many have used it up, the visitor with the largest part loses room to one with a smaller part.

/** The multiple of its own part that one visitor must leave free. So it gets at most a fifth of an empty budget. */
const LEFT_BY_VISITOR = 4

/** The number of largest pieces that a budget must hold, so that one visitor gets room for one of them. */
export const LARGEST_TIMES: number = LEFT_BY_VISITOR + 1

/** A part of the budget that one visitor takes piece by piece. */
export interface Portion {
  readonly owner: string
  readonly visitor: string
  /** Frees the whole part at once. */
  giveWay(): void
}

export class Shares {
  #taken = 0
  /** The portions that `grow` may still free for another visitor, with their sizes. */
  readonly #portions = new Map<Portion, number>()
  readonly #byKey = new Map<string, number>()

  /**
   * Whether this owner and this visitor may have `count` more of a budget of `most`. The visitors of one owner together
   * must leave as much free as they have, so they get at most half of an empty budget. `''` is not limited by itself.
   */
  hasRoom(owner: string, visitor: string, count: number, most: number): boolean {
    const left = most - this.#taken - count
    if (left < 0) return false
    const [ofOwner, ofVisitor] = keysOf(owner, visitor).map(key => (this.#byKey.get(key) ?? 0) + count)
    return (owner === '' || ofOwner! <= left) && (visitor === '' || ofVisitor! * LEFT_BY_VISITOR <= left)
  }

  /** Counts this many more. Returns `false` if there is no room; then nothing is counted. */
  take(owner: string, visitor: string, count: number, most: number): boolean {
    const hasRoom = this.hasRoom(owner, visitor, count, most)
    if (hasRoom) this.#change(owner, visitor, count)
    return hasRoom
  }

  /**
   * Counts more for a portion. If there is no room, it frees portions of the owner's visitor with the most, if this
   * visitor has less.
   */
  grow(portion: Portion, count: number, most: number): boolean {
    const { owner, visitor } = portion
    const hasRoom = this.take(owner, visitor, count, most) || this.#takeFromMost(portion, count)
    if (hasRoom) this.#portions.set(portion, (this.#portions.get(portion) ?? 0) + count)
    return hasRoom
  }

  /** Makes a portion permanent: visitors with less cannot take its room any more. */
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
    // Freeing all of its portions would free more than necessary.
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
