// Limits the bytes to a visitor: those above the rate wait here, and their sender waits too.

import { type Account, SendQueue, type Writing } from '../../bytes.ts'
import type { Shape, ShapedTurn } from './shaping.ts'

export interface ShapedTarget {
  /**
   * Takes all of bytes[start, end), and stores those for which the visitor has no room. Returns `false` to ask for no
   * more until `drained`.
   */
  write(bytes: Uint8Array, start: number, end: number): boolean
  /** Called when no bytes wait any more: write again. */
  drained(): void
}

export class ShapedOutput implements ShapedTurn, Writing {
  readonly #shape: Shape
  readonly #target: ShapedTarget
  readonly #unsent: SendQueue = new SendQueue()
  /** Whether the visitor has no room. */
  #isFull = false
  #isTurn = false
  /** The call for after the last byte. */
  #last: (() => void) | undefined

  constructor(shape: Shape, target: ShapedTarget) {
    this.#shape = shape
    this.#target = target
  }

  /** Sends bytes, like `Visit.write`. */
  send(bytes: Uint8Array, start: number, end: number): boolean {
    this.#unsent.send(this, bytes, start, end)
    if (!this.#unsent.isEmpty && !this.#isFull) this.#shape.await(this)
    return this.#unsent.isEmpty && !this.#isFull
  }

  /** Writes as many bytes as the rate allows now. Called by `SendQueue`. */
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

  /** Called when the visitor has room again. */
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

  /** Calls `last` when no bytes wait here: at once, or later. */
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
