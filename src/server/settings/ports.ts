// Public ports as ranges: those that the server has, or that a token may have.

import { optionInvalid } from '../../errors.ts'

/** Words of 32 bits that have a bit for each port. */
export const PORT_WORDS: number = 65_536 / 32

/** Ports and ranges of ports, as in `20000-29999,2222`. */
export class PortRanges {
  readonly text: string
  readonly #ranges: readonly (readonly [first: number, last: number])[]
  #bits: Uint32Array | undefined

  /** Parses the ranges. Throws `OPTION_INVALID`, naming `option`. An empty text means no port. */
  constructor(text: string, option: string) {
    this.text = text
    const parts = text.split(',').filter(part => part.trim() !== '')
    this.#ranges = parts.map(part => {
      const [, from = '', to = from] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(part.trim()) ?? []
      const [first, last] = [Number(from), Number(to)]
      if (from !== '' && first >= 1 && first <= last && last <= 65_535) return [first, last] as const
      throw optionInvalid(
        `${option}: "${part.trim()}" is neither a port from 1 to 65535 nor a range such as 20000-29999.`,
      )
    })
  }

  get isEmpty(): boolean {
    return this.#ranges.length === 0
  }

  includes(port: number): boolean {
    return this.#ranges.some(([first, last]) => port >= first && port <= last)
  }

  /** The ports as bits, 32 in each word: port 33 is bit 1 of word 1. */
  get bits(): Uint32Array {
    this.#bits ??= bitsOf(this.#ranges)
    return this.#bits
  }

  overlaps(other: PortRanges): boolean {
    return this.bits.some((word, at) => (word & other.bits[at]!) !== 0)
  }

  /** Returns the port at `fraction` (0 up to, but not including, 1) of all ports. */
  at(fraction: number): number {
    let rest = Math.floor(fraction * this.#size)
    for (const [first, last] of this.#ranges) {
      if (rest <= last - first) return first + rest
      rest -= last - first + 1
    }
    throw new RangeError('no such port')
  }

  get #size(): number {
    return this.#ranges.reduce((sum, [first, last]) => sum + last - first + 1, 0)
  }
}

function bitsOf(ranges: readonly (readonly [first: number, last: number])[]): Uint32Array {
  const bits = new Uint32Array(PORT_WORDS)
  for (const [first, last] of ranges)
    for (let port = first; port <= last; port++) bits[port >>> 5]! |= 1 << (port & 31)
  return bits
}
