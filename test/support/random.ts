// Random numbers from a seed, so that a failing run can be repeated.

export interface Random {
  /** A whole number from 0 up to but not including `limit`. */
  below(limit: number): number
  bytes(length: number): Uint8Array
  pick<Item>(items: readonly Item[]): Item
}

/** The xorshift generator: any seed but 0 gives a long and always equal sequence. */
export function random(seed: number): Random {
  let state = seed | 0 || 1
  const next = () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return state >>> 0
  }
  const below = (limit: number) => next() % limit
  return {
    below,
    bytes: length => Uint8Array.from({ length }, () => below(256)),
    pick: items => items[below(items.length)]!,
  }
}

/** How many random cases to try: few by default, `LT_FUZZ` for a long run. */
export const fuzzCount = (usual: number): number => Number(process.env['LT_FUZZ'] ?? usual)

/** Cuts bytes into random pieces, each an array of its own as from the network. */
export function slices(bytes: Uint8Array, rng: Random): Uint8Array[] {
  const pieces: Uint8Array[] = []
  let at = 0
  while (at < bytes.length) {
    const length = rng.pick([1, 2, 3, 1 + rng.below(20), 1 + rng.below(2000), bytes.length])
    pieces.push(bytes.slice(at, at + length))
    at += length
  }
  return pieces
}
