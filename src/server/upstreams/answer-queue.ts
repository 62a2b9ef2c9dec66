// Bytes of an app that wait for a turn of the event loop, because looking through them takes time: the rest of a response, or
// frames of HTTP/2; and how the stream ended behind them.

import { copyOf } from '../../bytes.ts'
import type { Turns, Waiting } from '../../session/turns.ts'

export class AnswerQueue implements Waiting {
  readonly #turns: Turns
  readonly #take: (bytes: Uint8Array, start: number, end: number) => void
  readonly #pieces: Uint8Array[] = []
  /** The current piece: a rest that is put back needs no copy. */
  #own: Uint8Array | undefined
  #ending: (() => void) | undefined
  /** Counts the ends: a piece can be the last of its response. */
  #answer = 0

  /** `take` does a portion of a piece, and puts back what is left of it. */
  constructor(turns: Turns, take: (bytes: Uint8Array, start: number, end: number) => void) {
    this.#turns = turns
    this.#take = take
  }

  get isEmpty(): boolean {
    return this.#pieces.length === 0
  }

  /** The stream has ended behind what waits. */
  get isEnding(): boolean {
    return this.#ending !== undefined
  }

  /** Keeps a copy of bytes[start, end) behind what waits: they arrived in the meantime. How many that can be is bounded by the stream's window. */
  add(bytes: Uint8Array, start: number, end: number): void {
    this.#pieces.push(copyOf(bytes, start, end))
  }

  /** Keeps bytes[start, end) in front of what waits, until there is a turn. */
  putBack(bytes: Uint8Array, start: number, end: number): void {
    this.#pieces.unshift(bytes === this.#own ? bytes.subarray(start, end) : copyOf(bytes, start, end))
    this.#turns.wait(this)
  }

  endWith(ending: () => void): void {
    this.#ending = ending
  }

  turn(): void {
    const piece = this.#pieces.shift()
    if (piece === undefined) return
    const answer = this.#answer
    this.#own = piece
    this.#take(piece, 0, piece.length)
    this.#own = undefined
    if (this.#answer !== answer) return
    if (this.#pieces.length > 0) return this.#turns.wait(this)
    const ending = this.#ending
    this.#ending = undefined
    ending?.()
  }

  clear(): void {
    this.#answer++
    this.#ending = undefined
    if (this.isEmpty) return
    this.#pieces.length = 0
    this.#turns.forget(this)
  }
}
