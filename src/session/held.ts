// The frames of a lent stream. They wait, because bytes on the other route belong before them.

import { ByteBuffer } from '../bytes.ts'

/** The maximum number of waiting frames: LINK, UNLINK, END and RESET. An honest peer sends each once. */
const MAX_FRAMES = 4

export class Held {
  readonly #data: ByteBuffer = new ByteBuffer()
  readonly #frames: (() => unknown)[] = []

  /** Stores a copy of bytes[start, end), which credit limits. Returns `false` if data is not allowed here. */
  keepData(bytes: Uint8Array, start: number, end: number): boolean {
    // After any of these frames, no data follows.
    if (this.#frames.length > 0) return false
    this.#data.add(bytes, start, end)
    return true
  }

  /** Stores a frame. Returns `false` if there are more than a stream can have. */
  keepFrame(arrived: () => unknown): boolean {
    return this.#frames.push(arrived) <= MAX_FRAMES
  }

  /** Passes on all stored frames in order. Without `data`, for a stream that is gone, only the frames without data. */
  letGo(data?: (bytes: Uint8Array, start: number, end: number) => void): void {
    if (!this.#data.isEmpty) data?.(this.#data.all, 0, this.#data.length)
    for (const arrived of this.#frames) arrived()
  }
}
