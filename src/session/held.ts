// Frames of a stream that is lent: they wait, because bytes that come another way belong in front of them.

import { copyBytes } from '../bytes.ts'

/** LINK, UNLINK, END and RESET: an honest peer sends each once. */
const MAX_FRAMES = 4
const FIRST_BYTES = 1_024

export class Held {
  #data: Uint8Array = new Uint8Array(0)
  #dataEnd = 0
  readonly #frames: (() => unknown)[] = []

  /** Keeps a copy of bytes[start, end), which credit bounds. `false`: they cannot come now. */
  keepData(bytes: Uint8Array, start: number, end: number): boolean {
    // Whatever else is kept says that none follow.
    if (this.#frames.length > 0) return false
    const needed = this.#dataEnd + end - start
    if (needed > this.#data.length) {
      const grown = new Uint8Array(Math.max(needed, 2 * this.#data.length, FIRST_BYTES))
      copyBytes(this.#data, 0, this.#dataEnd, grown, 0)
      this.#data = grown
    }
    copyBytes(bytes, start, end, this.#data, this.#dataEnd)
    this.#dataEnd = needed
    return true
  }

  /** `false`: there are more than a stream can have. */
  keepFrame(arrived: () => unknown): boolean {
    return this.#frames.push(arrived) <= MAX_FRAMES
  }

  /** All that was kept, in its order. Without `data`, which a stream that is gone does not need, the frames alone. */
  letGo(data?: (bytes: Uint8Array, start: number, end: number) => void): void {
    if (this.#dataEnd > 0) data?.(this.#data, 0, this.#dataEnd)
    for (const arrived of this.#frames) arrived()
  }
}
