// Bytes of a connection that wait: the beginning of a head, or requests sent ahead of their turn.

const LF = 10
const FIRST_CAPACITY = 1024
/** A line longer than this is shown to the parser unfinished, and again at each doubling: it may refuse it. */
const FIRST_LOOK = 16_384

/**
 * Collects slices without copying when the head came in one piece, which is nearly always. A head that drips is
 * only handed out again once a line end arrived: the parser then runs at most once per line, not once per byte.
 */
export class HeadBuffer {
  #bytes: Uint8Array = EMPTY
  #length = 0
  #nextLook = FIRST_LOOK

  get isEmpty(): boolean {
    return this.#length === 0
  }

  get length(): number {
    return this.#length
  }

  /** Adds bytes and returns all that waits, or `undefined` while they cannot complete a line. */
  add(bytes: Uint8Array): Uint8Array | undefined {
    if (this.#length === 0) return bytes
    this.keepMore(bytes)
    if (bytes.indexOf(LF) === -1 && this.#length < this.#nextLook) return undefined
    if (this.#length >= this.#nextLook) this.#nextLook *= 2
    return this.#bytes.subarray(0, this.#length)
  }

  /** Keeps what `add` returned for the next time. */
  keep(bytes: Uint8Array): void {
    if (this.#length > 0) return
    this.keepMore(bytes)
  }

  keepMore(bytes: Uint8Array): void {
    const needed = this.#length + bytes.length
    if (needed > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(needed, this.#bytes.length * 2, FIRST_CAPACITY))
      larger.set(this.#bytes.subarray(0, this.#length))
      this.#bytes = larger
    }
    this.#bytes.set(bytes, this.#length)
    this.#length = needed
  }

  /** All that waits, which then is the caller's; `undefined` for nothing. */
  take(): Uint8Array | undefined {
    if (this.#length === 0) return undefined
    const bytes = this.#bytes.subarray(0, this.#length)
    this.clear()
    return bytes
  }

  clear(): void {
    this.#bytes = EMPTY
    this.#length = 0
    this.#nextLook = FIRST_LOOK
  }
}

const EMPTY = new Uint8Array(0)
