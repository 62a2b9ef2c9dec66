// Stores incomplete responses, each in memory from which the whole response can be sent to the visitor.

import { copyBytes } from '../bytes.ts'
import { maxForwardedBytes } from '../http/forward.ts'
import type { Kernel, Room } from './kernel.ts'
import { MAX_LANE_ANSWER_BYTES } from './trunk.ts'

/** The offset of the response. The head for the visitor, written before the same body, may be longer. */
const START: number = maxForwardedBytes(0)
/** The size into which most responses fit. Apps write head and body one after the other. */
const SMALL_BYTES = 16_384
/** The maximum size of all buffers that a thread uses. */
const MAX_BYTES = 16_777_216
/** The number of buffers kept for the next responses: 1.2 MB of small ones, 2.1 MB of large ones. */
const MAX_SPARE_SMALL = 64
const MAX_SPARE_LARGE = 16
/**
 * The number of bytes that may be parsed again. A response without a length is parsed with each new piece. This many
 * cost 4 ms if all are chunk sizes.
 */
const MAX_PARSED_BYTES = 524_288

export class HeldAnswer {
  room: Room
  end: number = START
  /** The size of the whole response. `undefined` while it is unknown, or if only its last piece shows it. */
  wholeBytes: number | undefined
  #parsedBytes = 0

  constructor(room: Room) {
    this.room = room
  }

  get start(): number {
    return START
  }

  /** Whether the response may be complete: all bytes have arrived, or it must be parsed to find out. */
  get mayBeWhole(): boolean {
    return this.wholeBytes === undefined || this.end - START >= this.wholeBytes
  }

  /** Whether the thread waits for the rest of an incomplete response. If not, the main thread takes over. */
  waitsFor(wholeBytes: number | undefined): boolean {
    this.wholeBytes = wholeBytes
    this.#parsedBytes += this.end - START
    return (wholeBytes ?? 0) <= MAX_LANE_ANSWER_BYTES && this.#parsedBytes <= MAX_PARSED_BYTES
  }
}

export class HeldAnswers {
  readonly #kernel: Kernel
  readonly #small: Room[] = []
  readonly #large: Room[] = []
  #bytes = 0

  constructor(kernel: Kernel) {
    this.#kernel = kernel
  }

  /** Begins a stored response with these bytes. `undefined` if there is no room. */
  hold(bytes: Uint8Array, start: number, end: number): HeldAnswer | undefined {
    const room = this.#take(end - start)
    if (room === undefined) return undefined
    const held = new HeldAnswer(room)
    this.add(held, bytes, start, end)
    return held
  }

  /** Adds bytes. Returns `false` if there is no room. */
  add(held: HeldAnswer, bytes: Uint8Array, start: number, end: number): boolean {
    const count = end - start
    if (held.end + count > held.room.bytes.length) {
      const room = this.#take(held.end - START + count)
      if (room === undefined) return false
      copyBytes(held.room.bytes, START, held.end, room.bytes, START)
      this.#give(held.room)
      held.room = room
    }
    copyBytes(bytes, start, end, held.room.bytes, held.end)
    held.end += count
    return true
  }

  /** Frees a buffer. */
  give(held: HeldAnswer): void {
    this.#give(held.room)
  }

  #take(count: number): Room | undefined {
    if (count > MAX_LANE_ANSWER_BYTES) return undefined
    const isSmall = count <= SMALL_BYTES
    const length = START + (isSmall ? SMALL_BYTES : MAX_LANE_ANSWER_BYTES)
    if (this.#bytes + length > MAX_BYTES) return undefined
    this.#bytes += length
    return (isSmall ? this.#small : this.#large).pop() ?? this.#kernel.room(length)
  }

  #give(room: Room): void {
    this.#bytes -= room.bytes.length
    const isSmall = room.bytes.length === START + SMALL_BYTES
    const spare = isSmall ? this.#small : this.#large
    if (spare.length < (isSmall ? MAX_SPARE_SMALL : MAX_SPARE_LARGE)) spare.push(room)
  }
}
