// Collects the frames of all streams of a connection that were written in one turn of the event loop.

import { copyBytes } from '../bytes.ts'

/**
 * The size from which the outbox is full: further bytes stay with their stream. One TLS write of this size keeps a
 * fast network busy.
 */
export const FULL_OUTBOX_BYTES = 65_536
/** The size of an array: a whole DATA frame fits after an outbox that is not full. */
const ARRAY_BYTES = FULL_OUTBOX_BYTES + 20_480
/** The number of arrays kept for the next connections. A connection has one only while frames wait. */
const MAX_SPARE_ARRAYS = 16

const EMPTY = new Uint8Array(0)
const spare: Uint8Array[] = []

export class Outbox {
  /** The frames, in [0, end). */
  bytes: Uint8Array = EMPTY
  end = 0

  get isEmpty(): boolean {
    return this.end === 0
  }

  get isFull(): boolean {
    return this.end >= FULL_OUTBOX_BYTES
  }

  /** Returns the array, with room for `count` bytes after `end`. */
  reserve(count: number): Uint8Array {
    const needed = this.end + count
    if (needed <= this.bytes.length) return this.bytes
    const before = this.bytes
    const larger =
      needed <= ARRAY_BYTES
        ? (spare.pop() ?? new Uint8Array(ARRAY_BYTES))
        : new Uint8Array(Math.max(needed, 2 * before.length))
    copyBytes(before, 0, this.end, larger, 0)
    keep(before)
    this.bytes = larger
    return larger
  }

  clear(): void {
    keep(this.bytes)
    this.bytes = EMPTY
    this.end = 0
  }
}

function keep(bytes: Uint8Array): void {
  if (bytes.length === ARRAY_BYTES && spare.length < MAX_SPARE_ARRAYS) spare.push(bytes)
}
