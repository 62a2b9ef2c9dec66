// Bytes of an app that wait for a turn of the event loop, because parsing takes time: the rest of a response, or
// frames of HTTP/2. Also stores how the stream ended after them.

import { copyOf } from '../../bytes.ts'
import type { Turns, Waiting } from '../../session/turns.ts'

export class AnswerQueue implements Waiting {
  readonly #turns: Turns
  readonly #take: (bytes: Uint8Array, start: number, end: number) => void
  readonly #pieces: Uint8Array[] = []
  /** The piece that is being handled. If a part of it is put back, no copy is needed. */
  #own: Uint8Array | undefined
  #ending: (() => void) | undefined
  /** The number of responses that ended, to notice a piece that was the last of its response. */
  #answer = 0

  /** Makes a queue. `take` handles a portion of a piece, and puts the rest back. */
  constructor(turns: Turns, take: (bytes: Uint8Array, start: number, end: number) => void) {
    this.#turns = turns
    this.#take = take
  }

  get isEmpty(): boolean {
    return this.#pieces.length === 0
  }

  /** Whether the stream has ended after the bytes that wait. */
  get isEnding(): boolean {
    return this.#ending !== undefined
  }

  /** Adds a copy of bytes[start, end) that arrived while others wait. The stream's window limits their number. */
  add(bytes: Uint8Array, start: number, end: number): void {
    this.#pieces.push(copyOf(bytes, start, end))
  }

  /** Puts bytes[start, end) in front of the bytes that wait, until the next turn. */
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
