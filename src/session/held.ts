// Frames of a stream that is lent: they wait, because bytes that come another way belong in front of them.

import { ByteBuffer } from '../bytes.ts'

/** The maximum number of held frames: LINK, UNLINK, END and RESET. An honest peer sends each once. */
const MAX_FRAMES = 4

export class Held {
  readonly #data: ByteBuffer = new ByteBuffer()
  readonly #frames: (() => unknown)[] = []

  /** Keeps a copy of bytes[start, end), which credit bounds. `false`: they cannot come now. */
  keepData(bytes: Uint8Array, start: number, end: number): boolean {
    // Whatever else is kept says that none follow.
    if (this.#frames.length > 0) return false
    this.#data.add(bytes, start, end)
    return true
  }

  /** Holds a frame. Returns `false` if there are more than a stream can have. */
  keepFrame(arrived: () => unknown): boolean {
    return this.#frames.push(arrived) <= MAX_FRAMES
  }

  /** All that was kept, in its order. Without `data`, which a stream that is gone does not need, the frames alone. */
  letGo(data?: (bytes: Uint8Array, start: number, end: number) => void): void {
    if (!this.#data.isEmpty) data?.(this.#data.all, 0, this.#data.length)
    for (const arrived of this.#frames) arrived()
  }
}
