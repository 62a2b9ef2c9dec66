// The streams wire: how one frame looks, and how frames are written into and read out of plain bytes.
//
//   0               3       4                       8
//   +---------------+-------+-----------------------+----------------+
//   | length (u24)  | type  | stream id (u32)       | payload …      |
//   +---------------+-------+-----------------------+----------------+
//
// Integers are big-endian. `length` counts the payload only. Stream 0 is the session itself.

export const FRAME_HEADER_BYTES = 8

/**
 * The maximum payload of a frame: a small response waits behind at most 64 KiB of a download. 64 KiB: a small response waits
 * behind at most this much of a download.
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
 * The first subprotocol that our client offers, in front of the streams wire. Servers that negotiate nothing answer
 * with whatever was offered first (Bun and `ws` both do), and must not be taken for servers of the streams wire.
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
