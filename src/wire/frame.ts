// The streams wire: how one frame looks, and how frames are written into and read out of plain bytes.
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

/**
 * The maximum payload of a frame: a small response waits behind at most 64 KiB of a download.
 */
export const MAX_FRAME_BYTES = 65_536

/** Bytes each side may send on a new stream before it gets credit. Part of the protocol, not a setting. */
export const INITIAL_CREDIT_BYTES = 262_144

export const DATA = 0
/** A frame to the client: a visitor's connection to the origin is wanted. Payload: tunnel number (u32). */
export const OPEN = 1
/** No more bytes this way (half-close). Payload: how many bytes of the other side were delivered (u48). */
export const END = 2
/** The stream failed, both ways. Payload: error number (u16), bytes of the other side delivered (u48). */
export const RESET = 3
/** The receiver consumed bytes: the sender may send as many more. Payload: bytes (u32). */
export const CREDIT = 4
/** A frame on stream 0. Payload: 8 opaque bytes that come back in a PONG. */
export const PING = 5
export const PONG = 6
/** A frame on stream 0. Payload: one JSON message of `wire/control.ts`. */
export const CONTROL = 7
/** A frame on stream 0 in either direction: no new streams; open ones may finish. Payload: error number (u16). */
export const GOAWAY = 8

/** The sender's bytes of this stream travel on a link from here on. Payload: link (u32), first byte of it (u48). */
export const LINK = 9
/**
 * A frame that ends the bytes on a link; only END or RESET follows. Payload: link (u32), the byte behind the last one (u48).
 */
export const UNLINK = 10
/**
 * A frame on stream 0. All bytes up to an UNLINK have come: the sender may use the link for another stream. Payload: link
 * (u32).
 */
export const LINK_FREE = 11

/** The highest frame type of this version; a higher one is a protocol error. */
export const MAX_FRAME_TYPE = 11

/** The WebSocket subprotocol by which both ends agree on this wire and its version. */
export const STREAMS_SUBPROTOCOL = 'localtunnels.streams.1'

/**
 * The first subprotocol that our client offers, in front of the streams wire. Servers that negotiate nothing repeat the first
 * offer (Bun and `ws` both do), and must not be taken for servers of the streams wire.
 */
export const TEXT_SUBPROTOCOL = 'localtunnels.json'

/** The Upgrade token by which a client opens a link: raw bytes both ways after the 101. */
export const LINK_PROTOCOL = 'localtunnels.link.1'

/** Writes a frame header at `at`; the payload belongs right behind it. */
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

/** Writes a number of 48 bits, which hold 281 TB: enough to count the bytes of any stream exactly. */
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
  /** Called with bytes[start, end), a piece of the DATA of a stream. The array is only valid during the call. */
  data(stream: number, bytes: Uint8Array, start: number, end: number): void
  /**
   * Called with any other frame, whole: its payload begins in `bytes` at `start` and is only valid during the call. There
   * is no view, because a small one costs more than the frame: 60 ns, and memory until the next collection.
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
  /** Collects a header or a control payload that arrived in pieces. */
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
      // The memory of a large control message is released.
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
