// Bytes that a socket did not take yet: what every writer of this house keeps when the kernel is full.

import { copyBytes, copyOf } from './bytes.ts'
import type { Socket } from './socket.ts'

/** The maximum size of pieces that are copied together: a view would pin the whole read that it was cut from. */
const SMALL_BYTES = 4_096
/** The size of the buffer for small pieces. */
const TAIL_BYTES = 16_384

/** The receiver of the bytes: a socket, or anything that accepts as many as it has room for. */
export type Writing = Pick<Socket, 'write'>

/** A contract for accounts that are charged for queued bytes. */
export interface Account {
  /** Charges for `bytes` more; negative: fewer. */
  hold(bytes: number): void
  /** Whether more bytes are queued than the bound allows. */
  readonly isOver: boolean
}

export class Unsent {
  readonly #pieces: Uint8Array[] = []
  /** The array that collects small pieces; its filled part is the last of `#pieces`. */
  #tail: Uint8Array | undefined
  #tailEnd = 0
  #account: Account | undefined

  get account(): Account | undefined {
    return this.#account
  }

  /** Sets the account, which is also charged for bytes that are queued already. */
  set account(account: Account | undefined) {
    if (account === this.#account) return
    const waitingBytes = this.length
    this.#account?.hold(-waitingBytes)
    account?.hold(waitingBytes)
    this.#account = account
  }

  /** The first bytes that wait. */
  get first(): Uint8Array | undefined {
    return this.#pieces[0]
  }

  get isEmpty(): boolean {
    return this.#pieces.length === 0
  }

  /**
   * Writes bytes[start, end) to the socket, behind what waits. Returns how many the kernel took; the rest is kept (as a
   * copy, when `isScratch` says that the array is reused).
   */
  send(socket: Writing, bytes: Uint8Array, isScratch = false, start = 0, end: number = bytes.length): number {
    let taken = 0
    if (this.#pieces.length === 0) {
      taken = socket.write(bytes, start, end)
      if (taken === end - start) return taken
    }
    this.keep(bytes, isScratch, start + taken, end)
    return taken
  }

  /** Keeps bytes[start, end) without trying. */
  keep(bytes: Uint8Array, isScratch = false, start = 0, end: number = bytes.length): void {
    const count = end - start
    this.#account?.hold(count)
    if (count > SMALL_BYTES) {
      this.#tail = undefined
      this.#pieces.push(isScratch ? copyOf(bytes, start, end) : bytes.subarray(start, end))
      return
    }
    if (this.#tail === undefined || this.#tailEnd + count > TAIL_BYTES) {
      this.#tail = new Uint8Array(TAIL_BYTES)
      this.#tailEnd = 0
      this.#pieces.push(this.#tail)
    }
    copyBytes(bytes, start, end, this.#tail, this.#tailEnd)
    this.#tailEnd += count
    this.#pieces[this.#pieces.length - 1] = this.#tail.subarray(0, this.#tailEnd)
  }

  /** Writes what waits. Returns how many bytes the kernel took. */
  flush(socket: Writing): number {
    // Nothing is added to a piece of which the kernel has a part.
    this.#tail = undefined
    let total = 0
    for (let first = this.#pieces[0]; first !== undefined; first = this.#pieces[0]) {
      const taken = socket.write(first)
      total += taken
      if (taken < first.length) {
        this.#pieces[0] = first.subarray(taken)
        break
      }
      this.#pieces.shift()
    }
    if (total > 0) this.#account?.hold(-total)
    return total
  }

  clear(): void {
    if (this.#pieces.length === 0) return
    this.#account?.hold(-this.length)
    this.#tail = undefined
    this.#pieces.length = 0
  }

  /** Bytes that wait. */
  get length(): number {
    return this.#pieces.reduce((sum, { length }) => sum + length, 0)
  }
}
