// Seeded randomness: a failing seed fails again. LT_FUZZ=N does N times as much.

import { appendFileSync } from 'node:fs'

/** How many times as much a long run does. */
export const FUZZ: number = Math.max(1, Number(process.env.LT_FUZZ ?? 1) || 1)

/** Adds to the counts of `bun test/fuzz.ts`, which asks for them with LT_FUZZ_COUNTS; otherwise it does nothing. */
export function countInputs(parser: string, count: number): void {
  const file = process.env.LT_FUZZ_COUNTS
  if (file !== undefined) appendFileSync(file, `${count} ${parser}\n`)
}

export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = (seed * 0x9e3779b9 + 0x85ebca6b) >>> 0
  }

  /** The next 32 bits (mulberry32). */
  bits(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return (mixed ^ (mixed >>> 14)) >>> 0
  }

  /** A whole number below `limit`. */
  below(limit: number): number {
    return Math.floor((this.bits() / 0x1_0000_0000) * limit)
  }

  chance(probability: number): boolean {
    return this.bits() / 0x1_0000_0000 < probability
  }

  pick<T>(items: readonly T[]): T {
    const item = items[this.below(items.length)]
    if (item === undefined) throw new RangeError('nothing to pick from')
    return item
  }

  bytes(count: number): Uint8Array {
    const bytes = new Uint8Array(count)
    for (let at = 0; at < count; at++) bytes[at] = this.bits()
    return bytes
  }

  /** The same bytes in pieces of random sizes, each in an array of its own. */
  slices(bytes: Uint8Array, largest: number): Uint8Array[] {
    const pieces: Uint8Array[] = []
    for (let at = 0; at < bytes.length; ) {
      const count = 1 + this.below(this.chance(0.3) ? Math.min(12, largest) : largest)
      pieces.push(bytes.slice(at, at + count))
      at += count
    }
    return pieces
  }
}
