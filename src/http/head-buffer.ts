// Bytes of a connection that wait: the beginning of a head, or requests sent ahead of their turn.

import { copyBytes } from '../bytes.ts'

const FIRST_CAPACITY = 1024
const EMPTY = new Uint8Array(0)

/** What all buffers of one kind hold together. */
export class HeldBytes {
  bytes = 0
  /** Buffers that hold any. */
  count = 0

  /** Whether a buffer with so many bytes has more than its share, when all together hold more than `limit`. */
  isTooMuch(bytes: number, limit: number): boolean {
    return this.bytes > limit && bytes * this.count > limit
  }
}

/** Collects slices, without copying when a head came in one piece, which is nearly always. */
export class HeadBuffer {
  #bytes: Uint8Array = EMPTY
  #length = 0
  /** Of the array that holds what waits: it may be more than what is seen of it. */
  #arrayBytes = 0
  readonly #held: HeldBytes | undefined

  /** `held`: where it is counted what keeping costs. */
  constructor(held?: HeldBytes) {
    this.#held = held
  }

  get isEmpty(): boolean {
    return this.#length === 0
  }

  get length(): number {
    return this.#length
  }

  /** What keeping it costs. */
  get arrayBytes(): number {
    return this.#length === 0 ? 0 : this.#arrayBytes
  }

  /** A view of all that waits. */
  get all(): Uint8Array {
    return this.#bytes.subarray(0, this.#length)
  }

  add(bytes: Uint8Array, start = 0, end: number = bytes.length): void {
    const needed = this.#length + end - start
    if (this.#held !== undefined) this.#count(this.#held, -1)
    if (needed > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(needed, this.#bytes.length * 2, FIRST_CAPACITY))
      larger.set(this.#bytes.subarray(0, this.#length))
      this.#bytes = larger
      this.#arrayBytes = larger.length
    }
    copyBytes(bytes, start, end, this.#bytes, this.#length)
    this.#length = needed
    if (this.#held !== undefined) this.#count(this.#held, 1)
  }

  /**
   * Keeps the end of `bytes`, from `start` on, which is a view of an array of `arrayBytes`: without a copy, unless most of
   * that array has been used already. Of many requests that came at once, each copies half of the rest at most once.
   */
  adopt(bytes: Uint8Array, start: number, arrayBytes: number): void {
    if (this.#length > 0 || (bytes.length - start) * 2 < arrayBytes) return this.add(bytes, start)
    this.#bytes = bytes.subarray(start)
    this.#length = this.#bytes.length
    this.#arrayBytes = arrayBytes
    if (this.#held !== undefined) this.#count(this.#held, 1)
  }

  /** All that waits, which then is the caller's; `undefined` for nothing. */
  take(): Uint8Array | undefined {
    if (this.#length === 0) return undefined
    const bytes = this.all
    this.clear()
    return bytes
  }

  clear(): void {
    if (this.#held !== undefined) this.#count(this.#held, -1)
    this.#bytes = EMPTY
    this.#length = 0
  }

  #count(held: HeldBytes, sign: 1 | -1): void {
    if (this.#length === 0) return
    held.bytes += sign * this.#arrayBytes
    held.count += sign
  }
}
