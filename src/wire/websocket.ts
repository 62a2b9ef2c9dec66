// WebSocket framing (RFC 6455) for either role. Binary payload is passed on in pieces as it arrives: messages only
// wrap a byte stream, and their boundaries have no meaning.
//
//     0               1               2                          4 … 10          + 4 if masked
//   +---+---+-------+---+-----------+--------------------------+---------------+----------+
//   |FIN|RSV| opcode| M | length (7)| length (u16 if 126, u64 if 127)          | mask key | payload …
//   +---+---+-------+---+-----------+--------------------------+---------------+----------+

import { copyOf, free } from '../bytes.ts'
import { readU32, writeU32 } from './frame.ts'
import { maskInPlace } from './mask.ts'

export const CONTINUATION = 0
export const TEXT = 1
export const BINARY = 2
export const CLOSE = 8
export const PING = 9
export const PONG = 10

/** The size of the longest header: two bytes, a 64-bit length, a mask key. */
export const MAX_WS_HEADER_BYTES = 14
/** The maximum payload of a control frame (section 5.5). */
export const MAX_WS_CONTROL_BYTES = 125

// The reason codes for closing a connection (section 7.4.1).
export const CLOSE_NORMAL = 1000
export const CLOSE_PROTOCOL_ERROR = 1002
export const CLOSE_UNSUPPORTED = 1003
/** The code that stands for a close frame without a code. It is never sent. */
export const CLOSE_NO_CODE = 1005
export const CLOSE_INVALID_TEXT = 1007
export const CLOSE_TOO_LARGE = 1009

/** Receives the events of a parser. Payloads of `ping` and `pong` are valid only during the call. */
export interface WebSocketHandler {
  /** Called with bytes[start, end), a piece of a binary message, unmasked in place in the received array. */
  binary(bytes: Uint8Array, start: number, end: number): void
  /** Called when a binary message is complete, for receivers to whom the boundary matters. */
  binaryEnded?(): void
  text(message: string): void
  ping(payload: Uint8Array): void
  pong(payload: Uint8Array): void
  /** Called when the far side closes. The parser ignores later bytes. */
  closed(code: number, reason: string): void
  /** Called when the far side broke the protocol: close with this code. The parser ignores later bytes. */
  failed(code: number, reason: string): void
}

export interface WebSocketParserOptions {
  /** The role of this end: a server accepts only masked frames, a client only unmasked ones (section 5.1). */
  readonly role: 'server' | 'client'
  /**
   * The maximum length of a text message in bytes, read with each of its frames. If exceeded: `failed` with 1009. 0
   * refuses text with 1003.
   */
  readonly maxTextBytes: number | (() => number)
}

export class WebSocketParser {
  readonly #isServer: boolean
  readonly #maxTextBytes: () => number
  readonly #handler: WebSocketHandler
  readonly #header = new Uint8Array(MAX_WS_HEADER_BYTES)
  #headerLength = 0
  #isInPayload = false
  #isOver = false
  #isPaused = false
  /** The number of frames left in the current portion. */
  #framesLeft = 0
  /** The opcode of the frame that is arriving. */
  #opcode = CONTINUATION
  #isFinal = true
  #isMasked = false
  #maskKey = 0
  #maskOffset = 0
  #remaining = 0
  #message = CONTINUATION
  readonly #control = new Collector()
  readonly #text = new TextCollector()

  constructor(options: WebSocketParserOptions, handler: WebSocketHandler) {
    this.#isServer = options.role === 'server'
    const { maxTextBytes } = options
    this.#maxTextBytes = typeof maxTextBytes === 'number' ? () => maxTextBytes : maxTextBytes
    this.#handler = handler
  }

  /**
   * Takes bytes from `from` on in the form of the network. The parser unmasks them in place. Returns the next
   * position: before the end if it was paused, or handled `mostFrames`. A text message counts as several frames,
   * because its receiver has to parse it.
   */
  receive(bytes: Uint8Array, from = 0, mostFrames: number = Number.POSITIVE_INFINITY): number {
    let at = from
    this.#framesLeft = mostFrames
    while (at < bytes.length && !this.#isOver && !this.#isPaused && this.#framesLeft > 0) {
      at = this.#isInPayload ? this.#takePayload(bytes, at) : this.#takeHeader(bytes, at)
    }
    return this.#isOver ? bytes.length : at
  }

  /** Stops after the current frame, or piece of one: `receive` returns. */
  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    this.#isPaused = false
  }

  /** The size of an incomplete text message. */
  get unfinishedTextBytes(): number {
    return this.#text.length
  }

  /** Ignores everything from now on. The arrays of an incomplete text are detached, and cannot be used again. */
  stop(): void {
    this.#isOver = true
    this.#text.free()
  }

  #takeHeader(bytes: Uint8Array, from: number): number {
    const header = this.#header
    let at = from
    while (at < bytes.length) {
      header[this.#headerLength++] = bytes[at++]!
      if (this.#headerLength < 2) continue
      // Refused as early as possible.
      if (this.#headerLength === 2 && !this.#checkStart(header[0]!, header[1]!)) return at
      if (this.#headerLength === headerBytes(header[1]!)) {
        this.#headerLength = 0
        this.#beginPayload()
        return at
      }
    }
    return at
  }

  #checkStart(first: number, second: number): boolean {
    const opcode = first & 0x0f
    const isFinal = first >= 0x80
    this.#opcode = opcode
    this.#isFinal = isFinal
    this.#isMasked = second >= 0x80
    if ((first & 0x70) !== 0) return this.#broken('reserved bits without an extension')
    if (this.#isMasked !== this.#isServer)
      return this.#broken('a mask where none may be, or none where one must')
    if (opcode >= CLOSE) {
      if (opcode > PONG) return this.#broken('unknown opcode')
      if (!isFinal) return this.#broken('a fragmented control frame')
      const length = second & 0x7f
      if (length > MAX_WS_CONTROL_BYTES) return this.#broken('a control frame over 125 bytes')
      if (opcode === CLOSE && length === 1) return this.#broken('half a close code')
      return true
    }
    if (opcode > BINARY) return this.#broken('unknown opcode')
    if ((opcode === CONTINUATION) === (this.#message === CONTINUATION)) {
      return this.#broken('a fragment without its message, or a message within another')
    }
    if (opcode !== CONTINUATION) this.#message = opcode
    if (opcode === TEXT && this.#maxTextBytes() === 0)
      return this.#fail(CLOSE_UNSUPPORTED, 'text is not taken')
    return true
  }

  #beginPayload(): void {
    this.#framesLeft--
    const header = this.#header
    const short = header[1]! & 0x7f
    let length = short
    let at = 2
    if (short === 126) {
      length = (header[2]! << 8) | header[3]!
      at = 4
      if (length < 126) return void this.#broken('a length in more bytes than needed')
    } else if (short === 127) {
      if (header[2]! >= 0x80) return void this.#broken('a negative length')
      length = readU32(header, 2) * 0x1_0000_0000 + readU32(header, 6)
      at = 10
      if (length < 0x1_0000) return void this.#broken('a length in more bytes than needed')
      if (!Number.isSafeInteger(length)) return void this.#fail(CLOSE_TOO_LARGE, 'a frame too long to count')
    }
    if (this.#isMasked) {
      this.#maskKey = header[at]! | (header[at + 1]! << 8) | (header[at + 2]! << 16) | (header[at + 3]! << 24)
      this.#maskOffset = 0
    }
    if (this.#opcode < CLOSE && this.#message === TEXT && this.#text.length + length > this.#maxTextBytes()) {
      return void this.#fail(CLOSE_TOO_LARGE, 'a text message over the limit')
    }
    this.#remaining = length
    this.#isInPayload = length > 0
    if (length === 0) this.#frameEnded(NOTHING)
  }

  #takePayload(bytes: Uint8Array, at: number): number {
    const taken = Math.min(this.#remaining, bytes.length - at)
    const end = at + taken
    if (this.#isMasked) {
      maskInPlace(bytes, at, end, this.#maskKey, this.#maskOffset)
      this.#maskOffset = (this.#maskOffset + taken) & 3
    }
    this.#remaining -= taken
    const isWhole = this.#remaining === 0
    if (isWhole) this.#isInPayload = false
    if (this.#opcode < CLOSE && this.#message === BINARY) {
      const isEnd = isWhole && this.#isFinal
      if (isEnd) this.#message = CONTINUATION
      this.#handler.binary(bytes, at, end)
      if (isEnd && !this.#isOver) this.#handler.binaryEnded?.()
      return end
    }
    const piece = taken === bytes.length ? bytes : bytes.subarray(at, end)
    if (isWhole) this.#frameEnded(piece)
    else this.#collector().add(piece)
    return end
  }

  #collector(): Collector | TextCollector {
    return this.#opcode >= CLOSE ? this.#control : this.#text
  }

  /** Called at the end of a frame. `last` is the piece that completed it. */
  #frameEnded(last: Uint8Array): void {
    if (this.#opcode >= CLOSE) return this.#controlArrived(this.#control.finish(last))
    const message = this.#message
    if (!this.#isFinal) {
      if (message === TEXT) this.#text.add(last)
      return
    }
    this.#message = CONTINUATION
    if (message !== TEXT) return this.#handler.binaryEnded?.()
    this.#framesLeft -= TEXT_COST + (this.#text.length + last.length) / BYTES_LIKE_A_FRAME
    const text = this.#text.finish(last)
    if (text === undefined) this.#fail(CLOSE_INVALID_TEXT, 'text that is not UTF-8')
    else this.#handler.text(text)
  }

  #controlArrived(payload: Uint8Array): void {
    if (this.#opcode === PING) this.#handler.ping(payload)
    else if (this.#opcode === PONG) this.#handler.pong(payload)
    else this.#closeArrived(payload)
  }

  #closeArrived(payload: Uint8Array): void {
    const code = payload.length === 0 ? CLOSE_NO_CODE : (payload[0]! << 8) | payload[1]!
    if (payload.length > 0 && !isCloseCode(code))
      return void this.#broken('a close code that may not be sent')
    const reason = decodeText(payload.subarray(2))
    if (reason === undefined) return void this.#fail(CLOSE_INVALID_TEXT, 'a reason that is not UTF-8')
    this.#isOver = true
    this.#handler.closed(code, reason)
  }

  #broken(reason: string): false {
    return this.#fail(CLOSE_PROTOCOL_ERROR, reason)
  }

  #fail(code: number, reason: string): false {
    this.#isOver = true
    this.#handler.failed(code, reason)
    return false
  }
}

// ── Writing ────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Writes the header of a whole message so that it ends at `payloadStart`. Returns its start, at most
 * `MAX_WS_HEADER_BYTES` before. With a `maskKey`, then mask the payload with `maskInPlace`.
 */
export function writeWebSocketHeader(
  into: Uint8Array,
  payloadStart: number,
  length: number,
  opcode: number,
  maskKey?: number,
): number {
  let at = payloadStart
  let maskBit = 0
  if (maskKey !== undefined) {
    maskBit = 0x80
    at -= 4
    into[at] = maskKey
    into[at + 1] = maskKey >>> 8
    into[at + 2] = maskKey >>> 16
    into[at + 3] = maskKey >>> 24
  }
  if (length < 126) {
    at -= 2
    into[at + 1] = maskBit | length
  } else if (length < 0x1_0000) {
    at -= 4
    into[at + 1] = maskBit | 126
    into[at + 2] = length >>> 8
    into[at + 3] = length
  } else {
    at -= 10
    into[at + 1] = maskBit | 127
    writeU32(into, at + 2, Math.floor(length / 0x1_0000_0000))
    writeU32(into, at + 6, length >>> 0)
  }
  into[at] = 0x80 | opcode
  return at
}

/** Encodes a whole message in an array of its own. */
export function encodeWebSocketMessage(opcode: number, payload: Uint8Array, maskKey?: number): Uint8Array {
  const whole = new Uint8Array(MAX_WS_HEADER_BYTES + payload.length)
  whole.set(payload, MAX_WS_HEADER_BYTES)
  if (maskKey !== undefined) maskInPlace(whole, MAX_WS_HEADER_BYTES, whole.length, maskKey)
  return whole.subarray(writeWebSocketHeader(whole, MAX_WS_HEADER_BYTES, payload.length, opcode, maskKey))
}

/** Encodes the payload of a close frame. A reason above 123 bytes is truncated between characters. */
export function encodeClosePayload(code: number, reason = ''): Uint8Array {
  const payload = new Uint8Array(MAX_WS_CONTROL_BYTES)
  payload[0] = code >>> 8
  payload[1] = code
  const { written } = encoder.encodeInto(reason, payload.subarray(2))
  return payload.subarray(0, 2 + written)
}

// ── Parts ──────────────────────────────────────────────────────────────────────────────────────────────────────

/** The cost of a text message for its receiver, in frames: about 1 µs, and 2 ns for each byte. */
const TEXT_COST = 16
const BYTES_LIKE_A_FRAME = 32

const NOTHING = new Uint8Array(0)
const encoder = new TextEncoder()
/** Keeps a leading U+FEFF, which is part of the message. */
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Joins pieces. Grows with the bytes that arrived, never by an announced length. */
class Collector {
  #bytes = NOTHING
  length = 0

  add(piece: Uint8Array): void {
    const wanted = this.length + piece.length
    if (wanted > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(wanted, this.#bytes.length * 2))
      larger.set(this.#bytes.subarray(0, this.length))
      this.#bytes = larger
    }
    this.#bytes.set(piece, this.length)
    this.length = wanted
  }

  /** Returns all pieces with the last one, and starts again. */
  finish(last: Uint8Array): Uint8Array {
    if (this.length === 0) return last
    this.add(last)
    const whole = this.#bytes.subarray(0, this.length)
    this.#bytes = NOTHING
    this.length = 0
    return whole
  }
}

/** A text message in pieces, which are decoded at its end. A message that is never completed costs only its bytes. */
class TextCollector {
  length = 0
  readonly #small = new Collector()
  #pieces: Uint8Array[] = []

  add(piece: Uint8Array): void {
    this.length += piece.length
    if (this.#small.length + piece.length < MIN_PIECE_BYTES) this.#small.add(piece)
    else this.#pieces.push(this.#small.length === 0 ? copyOf(piece) : this.#small.finish(piece))
  }

  /**
   * Frees the buffers of an incomplete message. About 100 MB of kept reads would otherwise wait for a full
   * collection, which comes late.
   */
  free(): void {
    for (const piece of this.#pieces) free(piece)
    this.#pieces = []
    this.length = 0
  }

  /** Returns the whole text with the last piece. `undefined` if it is not UTF-8. Starts again. */
  finish(last: Uint8Array): string | undefined {
    const rest = this.#small.finish(last)
    const pieces = this.#pieces
    this.length = 0
    if (pieces.length === 0) return decodeText(rest)
    this.#pieces = []
    // Joining the pieces first would copy them once more.
    const whole = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
    let text = ''
    try {
      for (const piece of pieces) text += whole.decode(piece, { stream: true })
      return text + whole.decode(rest)
    } catch {
      // The text is not UTF-8: the caller fails with the code for that.
      return undefined
    }
  }
}

/** The minimum size of a piece. Smaller ones are joined: an array for each byte would cost far more than the byte. */
const MIN_PIECE_BYTES = 16_384

function headerBytes(second: number): number {
  const length = second & 0x7f
  return 2 + (length < 126 ? 0 : length === 126 ? 2 : 8) + (second >= 0x80 ? 4 : 0)
}

/**
 * Whether a close frame may contain the code: 1004 to 1006 and 1015 exist only inside of programs; 1016 to 2999 are
 * not assigned (section 7.4).
 */
function isCloseCode(code: number): boolean {
  if (code >= 3000) return code < 5000
  return code >= 1000 && code <= 1014 && (code < 1004 || code > 1006)
}

function decodeText(bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes)
  } catch {
    // The text is not UTF-8: the caller fails with the code for that.
    return undefined
  }
}
