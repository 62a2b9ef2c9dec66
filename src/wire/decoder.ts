// Reads frames out of carrier bytes, however they were sliced. Data passes in pieces and is never reassembled.

import { copyBytes } from '../bytes.ts'
import type { ErrorCode } from '../errors.ts'
import {
  CONTROL,
  CREDIT,
  DATA,
  END,
  FRAME_HEADER_BYTES,
  GOAWAY,
  LINK,
  LINK_FREE,
  MAX_FRAME_BYTES,
  MAX_FRAME_TYPE,
  OPEN,
  PING,
  PONG,
  RESET,
  readU32,
  UNLINK,
} from './frame.ts'

export interface FrameHandler {
  /** Called with bytes[start, end), a piece of the DATA of a stream. The array is the handler's to keep. */
  data(stream: number, bytes: Uint8Array, start: number, end: number): void
  /**
   * Called with any other frame, whole: its payload begins in `bytes` at `start` and is only valid during the call. It is no
   * view, because a small one costs more than the frame: 60 ns, and memory until the next collection.
   */
  frame(type: number, stream: number, bytes: Uint8Array, start: number, end: number): void
}

/** The exact payload size by type; -1 for those that vary but are not empty. Any other size is a protocol error. */
const PAYLOAD_BYTES: readonly number[] = (() => {
  const sizes: number[] = []
  sizes[DATA] = -1
  sizes[OPEN] = 4
  sizes[END] = 6
  sizes[RESET] = 8
  sizes[CREDIT] = 4
  sizes[PING] = 8
  sizes[PONG] = 8
  sizes[CONTROL] = -1
  sizes[GOAWAY] = 2
  sizes[LINK] = 10
  sizes[UNLINK] = 10
  sizes[LINK_FREE] = 4
  return sizes
})()

/** Frames of stream 0, the session itself. */
const IS_SESSION_FRAME: readonly boolean[] = PAYLOAD_BYTES.map((_, type) =>
  [PING, PONG, CONTROL, GOAWAY, LINK_FREE].includes(type),
)

/** The initial size of the buffer for incomplete frames: every frame but a control message fits. */
const PARTIAL_BYTES = 64
/** The number of bytes of a control message that cost its reader as much as a frame. */
const BYTES_LIKE_A_FRAME = 512

/** An incremental frame parser. Holds at most one header and one control payload, never data. */
export class FrameDecoder {
  readonly #handler: FrameHandler
  /** Collects a header or a control payload that was cut by the slicing. */
  #partial: Uint8Array = new Uint8Array(PARTIAL_BYTES)
  #partialLength = 0
  #inPayload = false
  #type = 0
  #stream = 0
  /** The number of DATA bytes still to come, or the size of the control payload being collected. */
  #remaining = 0
  #stopped = false
  /** The number of frames left in a portion: `receive` stops at 0. A long control message counts as several. */
  framesLeft: number = Number.POSITIVE_INFINITY
  /** The position that `receive` has reached. */
  at = 0

  constructor(handler: FrameHandler) {
    this.#handler = handler
  }

  /** Stops delivering, also in the middle of a `receive`: for a session that ended while handling a frame. */
  stop(): void {
    this.#stopped = true
  }

  /**
   * Takes the next bytes, bytes[start, end), or `framesLeft` of them: `at` says how far it came. Returns the code of what is
   * wrong with them; after that the carrier is of no more use.
   */
  receive(bytes: Uint8Array, start = 0, end: number = bytes.length): ErrorCode | undefined {
    this.at = end
    let at = start
    while (at < end && !this.#stopped) {
      if (this.framesLeft <= 0) {
        this.at = at
        return undefined
      }
      if (this.#inPayload) {
        at = this.#type === DATA ? this.#takeData(bytes, at, end) : this.#takePayload(bytes, at, end)
        continue
      }
      if (this.#partialLength === 0 && end - at >= FRAME_HEADER_BYTES) {
        const problem = this.#takeHeader(bytes, at)
        if (problem !== undefined) return problem
        at += FRAME_HEADER_BYTES
      } else {
        const taken = Math.min(FRAME_HEADER_BYTES - this.#partialLength, end - at)
        copyBytes(bytes, at, at + taken, this.#partial, this.#partialLength)
        this.#partialLength += taken
        at += taken
        if (this.#partialLength < FRAME_HEADER_BYTES) return undefined
        this.#partialLength = 0
        const problem = this.#takeHeader(this.#partial, 0)
        if (problem !== undefined) return problem
      }
    }
    return undefined
  }

  #takeHeader(from: Uint8Array, at: number): ErrorCode | undefined {
    const length = (from[at]! << 16) | (from[at + 1]! << 8) | from[at + 2]!
    const type = from[at + 3]!
    const stream = readU32(from, at + 4)
    if (type > MAX_FRAME_TYPE) return 'PROTOCOL_ERROR'
    if (length > MAX_FRAME_BYTES) return 'PROTOCOL_ERROR'
    const expected = PAYLOAD_BYTES[type]!
    if (expected === -1 ? length === 0 : length !== expected) return 'PROTOCOL_ERROR'
    // Stream frames belong to a stream, session frames to none.
    if (IS_SESSION_FRAME[type] ? stream !== 0 : stream === 0) return 'PROTOCOL_ERROR'
    this.#type = type
    this.#stream = stream
    this.#remaining = length
    this.#inPayload = true
    return undefined
  }

  #takeData(bytes: Uint8Array, at: number, end: number): number {
    const to = Math.min(at + this.#remaining, end)
    this.#remaining -= to - at
    this.framesLeft--
    if (this.#remaining === 0) this.#inPayload = false
    this.#handler.data(this.#stream, bytes, at, to)
    return to
  }

  #takePayload(bytes: Uint8Array, at: number, end: number): number {
    const needed = this.#remaining - this.#partialLength
    if (this.#partialLength === 0 && end - at >= needed) {
      this.#inPayload = false
      this.framesLeft -= 1 + needed / BYTES_LIKE_A_FRAME
      this.#handler.frame(this.#type, this.#stream, bytes, at, at + needed)
      return at + needed
    }
    const taken = Math.min(needed, end - at)
    this.#collect(bytes, at, taken)
    if (this.#partialLength === this.#remaining) {
      this.#inPayload = false
      this.framesLeft -= 1 + this.#remaining / BYTES_LIKE_A_FRAME
      this.#partialLength = 0
      const payload = this.#partial
      // An array that a large control message made larger is not kept.
      if (this.#partial.length > PARTIAL_BYTES) this.#partial = new Uint8Array(PARTIAL_BYTES)
      this.#handler.frame(this.#type, this.#stream, payload, 0, this.#remaining)
    }
    return at + taken
  }

  #collect(bytes: Uint8Array, at: number, taken: number): void {
    const wanted = this.#partialLength + taken
    if (wanted > this.#partial.length) {
      // Grows with what arrived, never by the declared length.
      const larger = new Uint8Array(Math.max(wanted, this.#partial.length * 2))
      larger.set(this.#partial.subarray(0, this.#partialLength))
      this.#partial = larger
    }
    copyBytes(bytes, at, at + taken, this.#partial, this.#partialLength)
    this.#partialLength += taken
  }
}
