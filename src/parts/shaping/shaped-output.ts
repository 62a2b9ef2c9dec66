// Bytes in transit to a visitor no faster than they may: what may not go yet waits here, and the sender with it.

import { type Account, SendQueue, type Writing } from '../../bytes.ts'
import type { Shape, ShapedTurn } from './shaping.ts'

export interface ShapedTarget {
  /** Takes all of bytes[start, end), and keeps what the visitor has no room for. `false`: stop until `drained`. */
  write(bytes: Uint8Array, start: number, end: number): boolean
  /** Nothing waits any more: write again. */
  drained(): void
}

export class ShapedOutput implements ShapedTurn, Writing {
  readonly #shape: Shape
  readonly #target: ShapedTarget
  readonly #unsent: SendQueue = new SendQueue()
  /** The visitor has no room. */
  #isFull = false
  #isTurn = false
  /** The end behind the last byte. */
  #last: (() => void) | undefined

  constructor(shape: Shape, target: ShapedTarget) {
    this.#shape = shape
    this.#target = target
  }

  /** As `Visit.write`. */
  send(bytes: Uint8Array, start: number, end: number): boolean {
    this.#unsent.send(this, bytes, start, end)
    if (!this.#unsent.isEmpty && !this.#isFull) this.#shape.await(this)
    return this.#unsent.isEmpty && !this.#isFull
  }

  /** Of `SendQueue`: as many as may go now. */
  write(bytes: Uint8Array, start = 0, end: number = bytes.length): number {
    if (this.#isFull) return 0
    const count = this.#shape.take(end - start, this.#isTurn)
    if (count > 0) this.#isFull = !this.#target.write(bytes, start, start + count)
    return count
  }

  turn(): void {
    this.#isTurn = true
    this.#unsent.flush(this)
    this.#isTurn = false
    this.#settle()
  }

  /** The visitor has room again. */
  drained(): void {
    this.#isFull = false
    this.#shape.forget(this)
    this.#unsent.flush(this)
    this.#settle()
  }

  #settle(): void {
    if (this.#isFull) return
    if (!this.#unsent.isEmpty) return this.#shape.await(this)
    const last = this.#last
    this.#last = undefined
    if (last === undefined) this.#target.drained()
    else last()
  }

  /** Calls `last` when nothing waits here: at once, or later. */
  behind(last: () => void): void {
    if (this.#unsent.isEmpty) last()
    else this.#last = last
  }

  set account(account: Account | undefined) {
    this.#unsent.account = account
  }

  /** The exchange is over: waiting bytes are not needed. */
  close(): void {
    this.#shape.forget(this)
    this.#unsent.clear()
    this.#last = undefined
  }
}
