// Collects a field block from several frames, HEADERS and CONTINUATION, with limits on bytes and frames.

import { copyBytes, copyOf } from '../bytes.ts'

const EMPTY = new Uint8Array(0)

/** A field block. One object serves all blocks of a connection, of which at most one is open. */
export class FieldBlock {
  /** The stream. 0 if no block is open. */
  stream = 0
  isLast = false
  isMalformed = false
  length = 0

  readonly #maxBytes: number
  readonly #maxContinuations: number
  #bytes: Uint8Array = EMPTY
  #continuations = 0

  constructor(maxBytes: number, maxContinuations: number) {
    this.#maxBytes = maxBytes
    this.#maxContinuations = maxContinuations
  }

  /** Whether a frame of this length may belong to the block, or begin one. */
  admits(length: number): boolean {
    if (this.stream === 0) return length <= this.#maxBytes
    return this.length + length <= this.#maxBytes && this.#continuations < this.#maxContinuations
  }

  begin(
    stream: number,
    isLast: boolean,
    isMalformed: boolean,
    bytes: Uint8Array,
    start: number,
    end: number,
  ): void {
    this.stream = stream
    this.isLast = isLast
    this.isMalformed = isMalformed
    this.#bytes = copyOf(bytes, start, end)
    this.length = end - start
    this.#continuations = 0
  }

  append(bytes: Uint8Array, start: number, end: number): void {
    this.#bytes = roomFor(this.#bytes, this.length, end - start)
    copyBytes(bytes, start, end, this.#bytes, this.length)
    this.length += end - start
    this.#continuations++
  }

  /** Returns the array whose first `length` bytes are the block. Keeps no memory. */
  finish(): Uint8Array {
    const bytes = this.#bytes
    this.stream = 0
    this.#bytes = EMPTY
    return bytes
  }
}

/** Returns `bytes`, or a larger copy of its first `length` bytes with room for `more`. */
export function roomFor(bytes: Uint8Array, length: number, more: number): Uint8Array {
  if (length + more <= bytes.length) return bytes
  const larger = new Uint8Array(Math.max(length + more, 2 * bytes.length))
  copyBytes(bytes, 0, length, larger, 0)
  return larger
}
