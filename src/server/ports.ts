// Public ports as ranges: which of them the server, or a token, has to give.

import { TunnelError } from '../errors.ts'

/** Ports and ranges of ports, as in `20000-29999,2222`. */
export class PortRanges {
  readonly text: string
  readonly #ranges: readonly (readonly [first: number, last: number])[]

  /** Throws `OPTION_INVALID`, naming `option`. An empty text: no port at all. */
  constructor(text: string, option: string) {
    this.text = text
    const parts = text.split(',').filter(part => part.trim() !== '')
    this.#ranges = parts.map(part => {
      const [, from = '', to = from] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(part.trim()) ?? []
      const [first, last] = [Number(from), Number(to)]
      if (from !== '' && first >= 1 && first <= last && last <= 65_535) return [first, last] as const
      throw new TunnelError(
        'OPTION_INVALID',
        `${option}: "${part.trim()}" is not a port or a range of ports.`,
      )
    })
  }

  get isEmpty(): boolean {
    return this.#ranges.length === 0
  }

  includes(port: number): boolean {
    return this.#ranges.some(([first, last]) => port >= first && port <= last)
  }

  /** Every port once, from an unpredictable one on: who has left is not followed by the next who comes. */
  *shuffled(random: () => number): Generator<number> {
    const size = this.#ranges.reduce((sum, [first, last]) => sum + last - first + 1, 0)
    const start = Math.floor(random() * size)
    for (let index = 0; index < size; index++) yield this.#at((start + index) % size)
  }

  #at(index: number): number {
    let rest = index
    for (const [first, last] of this.#ranges) {
      if (rest <= last - first) return first + rest
      rest -= last - first + 1
    }
    throw new RangeError('no such port')
  }
}
