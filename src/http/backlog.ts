// Bytes that arrived and are not used up yet. Pieces of it may be kept: what was appended is never overwritten.

const EMPTY = new Uint8Array(0)

export class Backlog {
  /** Holds the bytes in [start, end). */
  bytes: Uint8Array = EMPTY
  start = 0
  end = 0

  get length(): number {
    return this.end - this.start
  }

  /** Takes over `bytes`: without copying when nothing waits in front of them, as is nearly always so. */
  append(bytes: Uint8Array): void {
    if (this.start === this.end) {
      this.bytes = bytes
      this.start = 0
      this.end = bytes.length
      return
    }
    const length = this.length + bytes.length
    // A chunk that came in is full to its last byte, so room behind it is room that we made ourselves. Doubling it
    // keeps a message that comes byte by byte from being copied as often as it has bytes.
    if (this.end + bytes.length > this.bytes.length) {
      const larger = new Uint8Array(Math.max(1024, length * 2))
      larger.set(this.bytes.subarray(this.start, this.end))
      this.bytes = larger
      this.start = 0
      this.end = length - bytes.length
    }
    this.bytes.set(bytes, this.end)
    this.end += bytes.length
  }

  /** Drops everything before `index`. */
  consume(index: number): void {
    this.start = index
    if (index === this.end) this.clear()
  }

  clear(): void {
    this.bytes = EMPTY
    this.start = this.end = 0
  }
}
