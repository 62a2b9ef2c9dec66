// Reads HTTP/2 frames from bytes that are divided in any way, and reports which rule a frame breaks. DATA is passed
// on in pieces; field blocks are collected from all their frames.

import { copyBytes } from '../bytes.ts'
import { ENHANCE_YOUR_CALM, type Fault, FRAME_SIZE_ERROR, PROTOCOL_ERROR } from './error-codes.ts'
import { FieldBlock, roomFor } from './field-block.ts'
import * as Frame from './frame.ts'
import { faultOfHeader } from './frame-rules.ts'

export interface FrameHandler {
  /**
   * Called when the header of any frame has arrived and is valid, before its payload. The place for counting: frames
   * against floods, and `length` of DATA, which includes padding, against both windows.
   */
  frame(type: number, flags: number, stream: number, length: number): void
  /**
   * Called with bytes[start, end), a piece of the payload of a DATA frame, without padding. The array is valid only
   * during the call.
   */
  data(stream: number, bytes: Uint8Array, start: number, end: number): void
  /** Called when a DATA frame is complete. `padding`: how much of its length was not data. */
  dataEnded(stream: number, padding: number, isLast: boolean): void
  /**
   * Called with a whole field block, valid during the call. It must be decoded in any case. `isMalformed`: the frame
   * breaks a rule of its stream, which ends with PROTOCOL_ERROR.
   */
  headers(
    stream: number,
    isLast: boolean,
    isMalformed: boolean,
    bytes: Uint8Array,
    start: number,
    end: number,
  ): void
  reset(stream: number, code: number): void
  /** Called with the entries of a SETTINGS frame, six bytes each, valid during the call. `PeerSettings.read` checks them. */
  settings(bytes: Uint8Array, start: number, end: number): void
  settingsAcknowledged(): void
  /** Called with eight bytes from `start` on, valid during the call. */
  ping(bytes: Uint8Array, start: number): void
  pong(bytes: Uint8Array, start: number): void
  goaway(lastStream: number, code: number, bytes: Uint8Array, start: number, end: number): void
  /** Called with an increment of at least 1. Stream 0 is the connection. */
  windowUpdate(stream: number, increment: number): void
  /** Called when a frame breaks a rule that concerns its stream only. */
  streamFault(stream: number, code: number, reason: string): void
}

export interface FrameDecoderOptions {
  /** The role of this side. A server expects the preface first. */
  readonly role: 'server' | 'client'
  /** The SETTINGS_MAX_FRAME_SIZE of this side. Default 16,384 bytes. */
  readonly maxFrameBytes?: number
  /** The maximum size of a field block. A longer one ends the connection: it cannot be decoded, and the tables would differ. */
  readonly maxBlockBytes: number
  /** The maximum number of CONTINUATION frames in a block; more end the connection. */
  readonly maxContinuations: number
}

/** The initial size of the buffer for payloads. All frames of a fixed size fit. */
const PARTIAL_BYTES = 64

// The part that is being read.
const IN_PREFACE = 0
const IN_HEADER = 1
const IN_PADDING_LENGTH = 2
const IN_DATA = 3
const IN_PADDING = 4
const IN_PAYLOAD = 5
const IN_IGNORED = 6

/** An incremental parser. It stores one payload that is not DATA, and one field block in pieces, both limited. */
export class FrameDecoder {
  readonly #handler: FrameHandler
  readonly #maxFrameBytes: number
  #state: number
  #fault: Fault | undefined
  #isStopped = false
  #sawSettings = false
  /** The number of bytes of the preface that were read. */
  #prefaceBytes = 0

  // The frame in progress.
  #type = 0
  #flags = 0
  #stream = 0
  /** The number of bytes still to come: of data, padding or ignored bytes; for a payload that is collected, its whole size. */
  #left = 0
  #padding = 0
  /** The header or payload that arrives in several reads. */
  #partial: Uint8Array = new Uint8Array(PARTIAL_BYTES)
  #partialLength = 0

  readonly #block: FieldBlock

  /** The number of frames left in a portion: `receive` stops at 0, and `at` is the position reached. */
  framesLeft: number = Number.POSITIVE_INFINITY
  at = 0

  constructor(handler: FrameHandler, options: FrameDecoderOptions) {
    this.#handler = handler
    this.#state = options.role === 'server' ? IN_PREFACE : IN_HEADER
    this.#maxFrameBytes = options.maxFrameBytes ?? Frame.LEAST_MAX_FRAME_BYTES
    this.#block = new FieldBlock(options.maxBlockBytes, options.maxContinuations)
  }

  /** Whether something other than DATA is incomplete: the preface, the first SETTINGS, a field block or another frame. */
  get isInside(): boolean {
    if (!this.#sawSettings || this.#block.stream !== 0 || this.#partialLength > 0) return true
    return this.#state === IN_PAYLOAD || this.#state === IN_IGNORED
  }

  /** Stops delivering, also during `receive`. */
  stop(): void {
    this.#isStopped = true
  }

  /** Called by the handler when the frame breaks a rule of the connection. `receive` returns the fault and takes nothing more. */
  fail(code: number, reason: string): void {
    this.#fault ??= { code, reason }
    this.#isStopped = true
  }

  /** Takes bytes[start, end), or `framesLeft` frames of them. Returns the fault that ends the connection, if there is one. */
  receive(bytes: Uint8Array, start = 0, end: number = bytes.length): Fault | undefined {
    let at = start
    // A frame without payload is complete with its header; all others need a byte.
    while (at < end && !this.#isStopped && this.framesLeft > 0) at = this.#take(bytes, at, end)
    this.at = at
    return this.#fault
  }

  #take(bytes: Uint8Array, at: number, end: number): number {
    switch (this.#state) {
      case IN_HEADER: {
        const whole = this.#partialLength === 0 && end - at >= Frame.FRAME_HEADER_BYTES
        if (whole) {
          this.#takeHeader(bytes, at)
          return at + Frame.FRAME_HEADER_BYTES
        }
        const next = this.#collect(bytes, at, end, Frame.FRAME_HEADER_BYTES)
        if (this.#partialLength === Frame.FRAME_HEADER_BYTES) {
          this.#partialLength = 0
          this.#takeHeader(this.#partial, 0)
        }
        return next
      }
      case IN_DATA: {
        const to = Math.min(end, at + this.#left)
        this.#left -= to - at
        this.#handler.data(this.#stream, bytes, at, to)
        if (this.#left === 0) this.#endData()
        return to
      }
      case IN_PADDING_LENGTH:
        this.#takePaddingLength(bytes[at]!)
        return at + 1
      case IN_PAYLOAD:
        return this.#takePayload(bytes, at, end)
      case IN_PREFACE:
        return this.#takePreface(bytes, at, end)
      default: {
        const to = Math.min(end, at + this.#left)
        this.#left -= to - at
        if (this.#left === 0) {
          if (this.#state === IN_PADDING) this.#finishData()
          else this.#nextFrame()
        }
        return to
      }
    }
  }

  #takePreface(bytes: Uint8Array, start: number, end: number): number {
    let at = start
    while (at < end && this.#prefaceBytes < Frame.PREFACE.length)
      if (bytes[at++] !== Frame.PREFACE[this.#prefaceBytes++]) {
        this.fail(PROTOCOL_ERROR, 'no HTTP/2 preface')
        return at
      }
    if (this.#prefaceBytes === Frame.PREFACE.length) this.#state = IN_HEADER
    return at
  }

  #takeHeader(from: Uint8Array, at: number): void {
    const length = (from[at]! << 16) | (from[at + 1]! << 8) | from[at + 2]!
    const type = from[at + 3]!
    const flags = from[at + 4]!
    // The reserved bit is ignored.
    const stream = Frame.readU32(from, at + 5) & Frame.MAX_U31
    this.#type = type
    this.#flags = flags
    this.#stream = stream
    this.#left = length
    if (!this.#isSoundHeader(type, flags, stream, length)) return
    this.#handler.frame(type, flags, stream, length)
    if (this.#isStopped) return
    if (type === Frame.DATA) {
      this.#padding = 0
      if (flags & Frame.PADDED) this.#state = IN_PADDING_LENGTH
      else if (length > 0) this.#state = IN_DATA
      else this.#finishData()
      return
    }
    const isKnown = type <= Frame.CONTINUATION
    if (length > 0) this.#state = isKnown ? IN_PAYLOAD : IN_IGNORED
    else if (isKnown) this.#finishPayload(from, at, at)
    else this.#nextFrame()
  }

  #isSoundHeader(type: number, flags: number, stream: number, length: number): boolean {
    const block = this.#block
    if (length > this.#maxFrameBytes) return this.#refuse(FRAME_SIZE_ERROR, 'a frame above the maximum size')
    if (!this.#sawSettings) {
      if (type !== Frame.SETTINGS || flags & Frame.ACK)
        return this.#refuse(PROTOCOL_ERROR, 'the first frame is not SETTINGS')
      this.#sawSettings = true
    }
    if (block.stream !== 0 && (type !== Frame.CONTINUATION || stream !== block.stream))
      return this.#refuse(PROTOCOL_ERROR, 'a frame inside a field block')
    const fault = faultOfHeader(type, flags, stream, length)
    if (fault !== undefined) return this.#refuse(fault.code, fault.reason)
    if (type !== Frame.HEADERS && type !== Frame.CONTINUATION) return true
    if (type === Frame.CONTINUATION && block.stream === 0)
      return this.#refuse(PROTOCOL_ERROR, 'CONTINUATION without HEADERS')
    return block.admits(length) || this.#refuse(ENHANCE_YOUR_CALM, 'a field block that is too long')
  }

  #takePaddingLength(padding: number): void {
    this.#left -= 1 + padding
    this.#padding = 1 + padding
    if (this.#left < 0) this.fail(PROTOCOL_ERROR, 'padding longer than the frame')
    else if (this.#left > 0) this.#state = IN_DATA
    else this.#endData()
  }

  /** Handles the end of a DATA frame's data. Its padding may still come. */
  #endData(): void {
    this.#left = Math.max(0, this.#padding - 1)
    if (this.#left > 0) this.#state = IN_PADDING
    else this.#finishData()
  }

  #finishData(): void {
    this.#nextFrame()
    if (this.#isStopped) return
    this.#handler.dataEnded(this.#stream, this.#padding, (this.#flags & Frame.END_STREAM) !== 0)
  }

  #nextFrame(): void {
    this.#state = IN_HEADER
    this.framesLeft--
  }

  #takePayload(bytes: Uint8Array, at: number, end: number): number {
    if (this.#partialLength === 0 && end - at >= this.#left) {
      this.#finishPayload(bytes, at, at + this.#left)
      return at + this.#left
    }
    const next = this.#collect(bytes, at, end, this.#left)
    if (this.#partialLength === this.#left) {
      const payload = this.#partial
      this.#partialLength = 0
      // An array that was enlarged for a large payload is not kept.
      if (payload.length > PARTIAL_BYTES) this.#partial = new Uint8Array(PARTIAL_BYTES)
      this.#finishPayload(payload, 0, this.#left)
    }
    return next
  }

  /**
   * Collects until there are `wanted` bytes. Returns the position reached. Grows with the bytes that arrived, never
   * by the announced length.
   */
  #collect(bytes: Uint8Array, at: number, end: number, wanted: number): number {
    const taken = Math.min(wanted - this.#partialLength, end - at)
    this.#partial = roomFor(this.#partial, this.#partialLength, taken)
    copyBytes(bytes, at, at + taken, this.#partial, this.#partialLength)
    this.#partialLength += taken
    return at + taken
  }

  #finishPayload(bytes: Uint8Array, start: number, end: number): void {
    this.#nextFrame()
    const handler = this.#handler
    const stream = this.#stream
    switch (this.#type) {
      case Frame.HEADERS:
        return this.#takeHeaders(bytes, start, end)
      case Frame.CONTINUATION:
        return this.#takeContinuation(bytes, start, end)
      case Frame.PRIORITY:
        if (end - start !== 5) handler.streamFault(stream, FRAME_SIZE_ERROR, 'PRIORITY of a wrong size')
        else if (dependsOn(bytes, start) === stream)
          handler.streamFault(stream, PROTOCOL_ERROR, 'a stream that depends on itself')
        return
      case Frame.RST_STREAM:
        return handler.reset(stream, Frame.readU32(bytes, start))
      case Frame.SETTINGS:
        if (this.#flags & Frame.ACK) return handler.settingsAcknowledged()
        return handler.settings(bytes, start, end)
      case Frame.PING:
        return this.#flags & Frame.ACK ? handler.pong(bytes, start) : handler.ping(bytes, start)
      case Frame.GOAWAY: {
        const lastStream = Frame.readU32(bytes, start) & Frame.MAX_U31
        return handler.goaway(lastStream, Frame.readU32(bytes, start + 4), bytes, start + 8, end)
      }
      default: {
        const increment = Frame.readU32(bytes, start) & Frame.MAX_U31
        if (increment > 0) return handler.windowUpdate(stream, increment)
        if (stream === 0) return this.fail(PROTOCOL_ERROR, 'a window grows by 0')
        return handler.streamFault(stream, PROTOCOL_ERROR, 'a window grows by 0')
      }
    }
  }

  #takeHeaders(bytes: Uint8Array, start: number, end: number): void {
    let from = start
    let padding = 0
    let isMalformed = false
    if (this.#flags & Frame.PADDED) padding = bytes[from++]!
    if (this.#flags & Frame.HAS_PRIORITY) {
      isMalformed = dependsOn(bytes, from) === this.#stream
      from += 5
    }
    const to = end - padding
    if (to < from) return this.fail(PROTOCOL_ERROR, 'padding longer than the frame')
    const isLast = (this.#flags & Frame.END_STREAM) !== 0
    if (this.#flags & Frame.END_HEADERS)
      return this.#handler.headers(this.#stream, isLast, isMalformed, bytes, from, to)
    this.#block.begin(this.#stream, isLast, isMalformed, bytes, from, to)
  }

  #takeContinuation(bytes: Uint8Array, start: number, end: number): void {
    const block = this.#block
    block.append(bytes, start, end)
    if ((this.#flags & Frame.END_HEADERS) === 0) return
    const { stream } = block
    const whole = block.finish()
    this.#handler.headers(stream, block.isLast, block.isMalformed, whole, 0, block.length)
  }

  #refuse(code: number, reason: string): false {
    this.fail(code, reason)
    return false
  }
}

/** Returns the stream that a priority names, without its exclusive bit. */
function dependsOn(bytes: Uint8Array, at: number): number {
  return Frame.readU32(bytes, at) & Frame.MAX_U31
}
