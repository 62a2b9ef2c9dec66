// Bytes of a connection that wait: the beginning of a head, or requests sent ahead of their turn.

import { copyBytes } from '../bytes.ts'

const FIRST_CAPACITY = 1024
const EMPTY = new Uint8Array(0)

/** Collects slices, without copying when a head came in one piece, which is nearly always. */
export class HeadBuffer {
  #bytes: Uint8Array = EMPTY
  #length = 0

  get isEmpty(): boolean {
    return this.#length === 0
  }

  get length(): number {
    return this.#length
  }

  /** All that waits with `bytes` behind it: `bytes` itself when nothing waits. It is only kept if told so. */
  with(bytes: Uint8Array): Uint8Array {
    if (this.#length === 0) return bytes
    this.add(bytes)
    return this.all
  }

  /** A view of all that waits. */
  get all(): Uint8Array {
    return this.#bytes.subarray(0, this.#length)
  }

  /** Keeps what `with` returned for the next time. */
  keep(bytes: Uint8Array): void {
    if (this.#length === 0) this.add(bytes)
  }

  add(bytes: Uint8Array, start = 0, end: number = bytes.length): void {
    const needed = this.#length + end - start
    if (needed > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(needed, this.#bytes.length * 2, FIRST_CAPACITY))
      larger.set(this.#bytes.subarray(0, this.#length))
      this.#bytes = larger
    }
    copyBytes(bytes, start, end, this.#bytes, this.#length)
    this.#length = needed
  }

  /** All that waits, which then is the caller's; `undefined` for nothing. */
  take(): Uint8Array | undefined {
    if (this.#length === 0) return undefined
    const bytes = this.all
    this.clear()
    return bytes
  }

  clear(): void {
    this.#bytes = EMPTY
    this.#length = 0
  }
}
