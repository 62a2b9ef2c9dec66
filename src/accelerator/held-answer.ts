// Answers that came in part: each waits for its rest in memory from which the visitor can be sent all of it.

import { copyBytes } from '../bytes.ts'
import { maxForwardedBytes } from '../http/forward.ts'
import type { Kernel, Room } from './kernel.ts'
import { MAX_LANE_ANSWER_BYTES } from './trunk.ts'

/** Where it begins: the visitor's head, in front of the same body, may be longer. */
const START: number = maxForwardedBytes(0)
/** Of all that a thread holds. */
const MAX_BYTES = 16_777_216
/** Kept for the next ones. */
const MAX_SPARE = 64
/** An answer that does not say how long it is gets parsed anew with each piece: so often. */
const MAX_PARSED = 64

export class HeldAnswer {
  readonly room: Room
  readonly start: number = START
  end: number = START
  /** `undefined`: not known yet, or known only when its last piece is here. */
  wholeBytes: number | undefined
  parsed = 0

  constructor(room: Room) {
    this.room = room
  }

  /** All of it is here, or it has to be parsed to find out. */
  get mayBeWhole(): boolean {
    return this.wholeBytes === undefined || this.end - START >= this.wholeBytes
  }

  /** It may be whole with more pieces. */
  get mayFollow(): boolean {
    return (this.wholeBytes ?? 0) <= MAX_LANE_ANSWER_BYTES && this.parsed++ < MAX_PARSED
  }
}

export class HeldAnswers {
  readonly #kernel: Kernel
  readonly #spare: HeldAnswer[] = []
  #bytes = 0

  constructor(kernel: Kernel) {
    this.#kernel = kernel
  }

  take(): HeldAnswer {
    return this.#spare.pop() ?? new HeldAnswer(this.#kernel.room(START + MAX_LANE_ANSWER_BYTES))
  }

  /** `false`: there is no room for it. */
  add(held: HeldAnswer, bytes: Uint8Array, start: number, end: number): boolean {
    const count = end - start
    const into = held.room.bytes
    if (held.end + count > into.length || this.#bytes + count > MAX_BYTES) return false
    copyBytes(bytes, start, end, into, held.end)
    held.end += count
    this.#bytes += count
    return true
  }

  /** It is not used any more. */
  give(held: HeldAnswer): void {
    this.#bytes -= held.end - START
    held.end = START
    held.parsed = 0
    if (this.#spare.length < MAX_SPARE) this.#spare.push(held)
  }
}
