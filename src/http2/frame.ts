// How HTTP/2 frames look (RFC 9113 sections 4 and 6), and how those that this side sends are written into plain bytes.
//
//   0               3       4       5                       9
//   +---------------+-------+-------+-----------------------+----------------+
//   | length (u24)  | type  | flags | R + stream id (u31)   | payload …      |
//   +---------------+-------+-------+-----------------------+----------------+

import { copyBytes } from '../bytes.ts'
import { ascii } from '../http/characters.ts'

export const FRAME_HEADER_BYTES = 9

/** The maximum frame size that every endpoint accepts. SETTINGS_MAX_FRAME_SIZE may be larger. */
export const LEAST_MAX_FRAME_BYTES = 16_384
export const MOST_MAX_FRAME_BYTES = 16_777_215

/** The maximum of stream ids, windows and their increments, which have 31 bits. */
export const MAX_U31 = 0x7fff_ffff

/** The bytes that a client sends before its first frame. */
export const PREFACE: Uint8Array = ascii('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')

export const DATA = 0x0
export const HEADERS = 0x1
export const PRIORITY = 0x2
export const RST_STREAM = 0x3
export const SETTINGS = 0x4
export const PUSH_PROMISE = 0x5
export const PING = 0x6
export const GOAWAY = 0x7
export const WINDOW_UPDATE = 0x8
export const CONTINUATION = 0x9

/** A flag of DATA and HEADERS. */
export const END_STREAM = 0x01
/** A flag of SETTINGS and PING. */
export const ACK = 0x01
export const END_HEADERS = 0x04
export const PADDED = 0x08
export const HAS_PRIORITY = 0x20

export function writeFrameHeader(
  into: Uint8Array,
  at: number,
  type: number,
  flags: number,
  stream: number,
  length: number,
): number {
  into[at] = length >>> 16
  into[at + 1] = length >>> 8
  into[at + 2] = length
  into[at + 3] = type
  into[at + 4] = flags
  writeU32(into, at + 5, stream)
  return at + FRAME_HEADER_BYTES
}

export function writeSettings(
  into: Uint8Array,
  at: number,
  settings: readonly (readonly [id: number, value: number])[],
): number {
  let to = writeFrameHeader(into, at, SETTINGS, 0, 0, settings.length * 6)
  for (const [id, value] of settings) {
    into[to] = id >>> 8
    into[to + 1] = id
    writeU32(into, to + 2, value)
    to += 6
  }
  return to
}

export function writeSettingsAck(into: Uint8Array, at: number): number {
  return writeFrameHeader(into, at, SETTINGS, ACK, 0, 0)
}

/** Writes a PING, or the reply to one, with the eight bytes at `start`. */
export function writePing(
  into: Uint8Array,
  at: number,
  isAnswer: boolean,
  bytes: Uint8Array,
  start: number,
): number {
  const to = writeFrameHeader(into, at, PING, isAnswer ? ACK : 0, 0, 8)
  copyBytes(bytes, start, start + 8, into, to)
  return to + 8
}

export function writeReset(into: Uint8Array, at: number, stream: number, code: number): number {
  const to = writeFrameHeader(into, at, RST_STREAM, 0, stream, 4)
  writeU32(into, to, code)
  return to + 4
}

/** Writes a WINDOW_UPDATE. `stream` 0 is the window of the connection. */
export function writeWindowUpdate(into: Uint8Array, at: number, stream: number, increment: number): number {
  const to = writeFrameHeader(into, at, WINDOW_UPDATE, 0, stream, 4)
  writeU32(into, to, increment)
  return to + 4
}

/** Writes a GOAWAY: streams above `lastStream` were not handled. `debug` is ASCII text for readers of logs. */
export function writeGoaway(
  into: Uint8Array,
  at: number,
  lastStream: number,
  code: number,
  debug = '',
): number {
  const to = writeFrameHeader(into, at, GOAWAY, 0, 0, 8 + debug.length)
  writeU32(into, to, lastStream)
  writeU32(into, to + 4, code)
  for (let index = 0; index < debug.length; index++) into[to + 8 + index] = debug.charCodeAt(index)
  return to + 8 + debug.length
}

export function maxHeadersBytes(blockBytes: number, maxFrameBytes: number): number {
  return blockBytes + FRAME_HEADER_BYTES * (Math.floor(blockBytes / maxFrameBytes) + 1)
}

/**
 * Wraps the field block in into[at + 9, end) in HEADERS, and CONTINUATION frames if one frame is too small. Returns
 * the end; the array needs room for `maxHeadersBytes` from `at` on. The encoder leaves nine bytes before the block,
 * whose length is not known earlier, so that it need not be copied.
 */
export function frameHeaders(
  into: Uint8Array,
  at: number,
  end: number,
  stream: number,
  isLast: boolean,
  maxFrameBytes: number,
): number {
  const start = at + FRAME_HEADER_BYTES
  const flags = isLast ? END_STREAM : 0
  const length = end - start
  if (length <= maxFrameBytes) {
    writeFrameHeader(into, at, HEADERS, flags | END_HEADERS, stream, length)
    return end
  }
  // Starts at the end, because each piece moves back by the headers of the pieces before it.
  const pieces = Math.ceil(length / maxFrameBytes)
  for (let piece = pieces - 1; piece > 0; piece--) {
    const from = start + piece * maxFrameBytes
    const to = Math.min(end, from + maxFrameBytes)
    const header = from + (piece - 1) * FRAME_HEADER_BYTES
    copyBytes(into, from, to, into, header + FRAME_HEADER_BYTES)
    const isEnd = piece === pieces - 1
    writeFrameHeader(into, header, CONTINUATION, isEnd ? END_HEADERS : 0, stream, to - from)
  }
  writeFrameHeader(into, at, HEADERS, flags, stream, maxFrameBytes)
  return end + (pieces - 1) * FRAME_HEADER_BYTES
}

export function readU32(from: Uint8Array, at: number): number {
  return ((from[at]! << 24) | (from[at + 1]! << 16) | (from[at + 2]! << 8) | from[at + 3]!) >>> 0
}

export function writeU32(into: Uint8Array, at: number, value: number): void {
  into[at] = value >>> 24
  into[at + 1] = value >>> 16
  into[at + 2] = value >>> 8
  into[at + 3] = value
}
