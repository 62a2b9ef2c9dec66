// "Did you mean": the known word that differs least from a mistyped one.

/** `undefined` when none is near: two slips, and for short words one in three letters. */
export function nearest(word: string, known: Iterable<string>): string | undefined {
  let best: string | undefined
  let least = Math.min(2, Math.floor(Math.max(word.length, 3) / 3)) + 1
  for (const one of known) {
    if (Math.abs(one.length - word.length) >= least) continue
    const slips = distance(word.toLowerCase(), one.toLowerCase())
    if (slips < least) {
      least = slips
      best = one
    }
  }
  return best
}

/** Letters added, left out, mistaken or swapped with their neighbour: Damerau's distance without a second edit of a swap. */
export function distance(first: string, second: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: second.length + 1 }, (_, index) => index)
  for (let row = 1; row <= first.length; row++) {
    const current = [row]
    for (let column = 1; column <= second.length; column++) {
      const isSame = first[row - 1] === second[column - 1]
      const isSwap =
        row > 1 &&
        column > 1 &&
        first[row - 1] === second[column - 2] &&
        first[row - 2] === second[column - 1]
      current.push(
        Math.min(
          last[column]! + 1,
          current[column - 1]! + 1,
          last[column - 1]! + (isSame ? 0 : 1),
          isSwap ? beforeLast[column - 2]! + 1 : Number.POSITIVE_INFINITY,
        ),
      )
    }
    beforeLast = last
    last = current
  }
  return last[second.length]!
}
