// The streams wire: the format of a frame, and how frames are written and read.
//
//   0               3       4                       8
//   +---------------+-------+-----------------------+----------------+
//   | length (u24)  | type  | stream id (u32)       | payload …      |
//   +---------------+-------+-----------------------+----------------+
//
// Integers are big-endian. `length` counts the payload only. Stream 0 is the session itself.

import { copyBytes } from '../bytes.ts'
import type { ErrorCode } from '../errors.ts'

export const FRAME_HEADER_BYTES = 8

/** The maximum payload of a frame: a small response waits behind at most 64 KiB of a download. */
export const MAX_FRAME_BYTES = 65_536

/** The number of bytes that each side may send on a new stream before it gets credit. Part of the protocol, not a setting. */
export const INITIAL_CREDIT_BYTES = 262_144

export const DATA = 0
/** A frame to the client: opens a connection to the origin for a visitor. Payload: tunnel number (u32). */
export const OPEN = 1
/** A frame that ends this direction (half-close). Payload: how many bytes of the other side were delivered (u48). */
export const END = 2
/** A frame that fails the stream in both directions. Payload: error number (u16), delivered bytes of the other side (u48). */
export const RESET = 3
/** A frame that lets the sender send as many more bytes as the receiver consumed. Payload: bytes (u32). */
export const CREDIT = 4
/** A frame on stream 0. Payload: 8 opaque bytes that a PONG returns. */
export const PING = 5
export const PONG = 6
/** A frame on stream 0. Payload: one JSON message of `wire/control.ts`. */
export const CONTROL = 7
/** A frame on stream 0 in either direction: no new streams; open ones may finish. Payload: error number (u16). */
export const GOAWAY = 8

/**
 * A frame that moves the sender's bytes of this stream to a link. Payload: link (u32), position of the first byte there (u48).
 */
export const LINK = 9
/**
 * A frame that ends the stream's bytes on a link; only END or RESET follows. Payload: link (u32), position after the
 * last byte (u48).
 */
export const UNLINK = 10
/**
 * A frame on stream 0: all bytes up to an UNLINK arrived, and the sender may use the link for another stream.
 * Payload: link (u32).
 */
export const LINK_FREE = 11

/** The highest frame type of this version; a higher one is a protocol error. */
export const MAX_FRAME_TYPE = 11

/** The WebSocket subprotocol with which both ends agree on this wire and its version. */
export const STREAMS_SUBPROTOCOL = 'localtunnels.streams.1'

/**
 * The first subprotocol that our client offers, before the streams wire. Servers that negotiate nothing repeat the
 * first offer (Bun and `ws` both do), and must not be mistaken for servers of the streams wire.
 */
export const TEXT_SUBPROTOCOL = 'localtunnels.json'

/** The Upgrade token with which a client opens a link: raw bytes both ways after the 101. */
export const LINK_PROTOCOL = 'localtunnels.link.1'

/** Writes a frame header at `at`. The payload belongs right after it. */
export function writeFrameHeader(
  into: Uint8Array,
  at: number,
  type: number,
  stream: number,
  length: number,
): void {
  into[at] = length >>> 16
  into[at + 1] = length >>> 8
  into[at + 2] = length
  into[at + 3] = type
  writeU32(into, at + 4, stream)
}

export function writeU32(into: Uint8Array, at: number, value: number): void {
  into[at] = value >>> 24
  into[at + 1] = value >>> 16
  into[at + 2] = value >>> 8
  into[at + 3] = value
}

export function readU32(from: Uint8Array, at: number): number {
  return ((from[at]! << 24) | (from[at + 1]! << 16) | (from[at + 2]! << 8) | from[at + 3]!) >>> 0
}

/** Writes a number of 48 bits, up to 281 TB: enough to count the bytes of any stream exactly. */
export function writeU48(into: Uint8Array, at: number, value: number): void {
  const high = Math.floor(value / 0x1_0000_0000)
  into[at] = high >>> 8
  into[at + 1] = high
  writeU32(into, at + 2, value >>> 0)
}

export function readU48(from: Uint8Array, at: number): number {
  return ((from[at]! << 8) | from[at + 1]!) * 0x1_0000_0000 + readU32(from, at + 2)
}

export interface FrameHandler {
  /** Called with bytes[start, end), a piece of a stream's DATA. The array is valid only during the call. */
  data(stream: number, bytes: Uint8Array, start: number, end: number): void
  /**
   * Called with any other frame, complete: its payload begins in `bytes` at `start` and is valid only during the call. There is
   * no view, because a small one costs more than the frame: 60 ns, and memory until the next collection.
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

/** Whether each frame type belongs to stream 0, the session itself. */
const IS_SESSION_FRAME: readonly boolean[] = PAYLOAD_BYTES.map((_, type) =>
  [PING, PONG, CONTROL, GOAWAY, LINK_FREE].includes(type),
)

/** The initial size of the buffer for incomplete frames. Every frame but a control message fits. */
const PARTIAL_BYTES = 64
/** The number of bytes of a control message that cost its reader as much as a frame. */
const BYTES_LIKE_A_FRAME = 512

/** An incremental frame parser. Stores at most one header and one control payload, never data. */
export class FrameDecoder {
  readonly #handler: FrameHandler
  /** The header or control payload that arrives in pieces. */
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

  /** Stops delivering, also during `receive`, for a session that ended while it handled a frame. */
  stop(): void {
    this.#stopped = true
  }

  /**
   * Takes bytes[start, end), or `framesLeft` frames of them: `at` is the position reached. Returns the code of an
   * error in them, after which the carrier cannot be used.
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
      // Frees the memory of a large control message.
      if (this.#partial.length > PARTIAL_BYTES) this.#partial = new Uint8Array(PARTIAL_BYTES)
      this.#handler.frame(this.#type, this.#stream, payload, 0, this.#remaining)
    }
    return at + taken
  }

  #collect(bytes: Uint8Array, at: number, taken: number): void {
    const wanted = this.#partialLength + taken
    if (wanted > this.#partial.length) {
      // Grows with the bytes that arrived, never by the announced length.
      const larger = new Uint8Array(Math.max(wanted, this.#partial.length * 2))
      larger.set(this.#partial.subarray(0, this.#partialLength))
      this.#partial = larger
    }
    copyBytes(bytes, at, at + taken, this.#partial, this.#partialLength)
    this.#partialLength += taken
  }
}
