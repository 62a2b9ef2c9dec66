// Text messages put together as WebSocket frames, so that all of one event-loop tick leave in one write.

import {
  encodeWebSocketMessage,
  MAX_WS_HEADER_BYTES,
  maskInPlace,
  TEXT,
  writeWebSocketHeader,
} from '../../wire/websocket.ts'

const FIRST_CAPACITY = 16_384
/** A buffer that grew beyond this is not kept for the next batch. */
const MAX_KEPT_CAPACITY = 262_144

const encoder = new TextEncoder()

export class TextBatch {
  readonly #maskKey: (() => number) | undefined
  #bytes: Uint8Array = new Uint8Array(0)
  #length = 0

  constructor(maskKey: (() => number) | undefined) {
    this.#maskKey = maskKey
  }

  get length(): number {
    return this.#length
  }

  /** Appends a message. Nearly all are ASCII, so it is first tried whether they fit in as many bytes as characters. */
  add(message: string): void {
    this.#reserve(MAX_WS_HEADER_BYTES + message.length)
    const key = this.#maskKey?.()
    const payloadStart = this.#length + headerBytes(message.length, key)
    const { read, written } = encoder.encodeInto(message, this.#bytes.subarray(payloadStart))
    if (read < message.length || headerBytes(written, key) !== payloadStart - this.#length) {
      return this.#append(encodeWebSocketMessage(TEXT, encoder.encode(message), key))
    }
    const end = payloadStart + written
    if (key !== undefined) maskInPlace(this.#bytes, payloadStart, end, key)
    writeWebSocketHeader(this.#bytes, payloadStart, written, TEXT, key)
    this.#length = end
  }

  /** All frames so far; they are the caller's until `reuse`, and a new batch begins. */
  take(): Uint8Array {
    const frames = this.#bytes.subarray(0, this.#length)
    this.#bytes = new Uint8Array(0)
    this.#length = 0
    return frames
  }

  /** What `take` returned is not needed any more. */
  reuse(frames: Uint8Array): void {
    if (frames.buffer.byteLength > MAX_KEPT_CAPACITY || this.#bytes.length > 0) return
    this.#bytes = new Uint8Array(frames.buffer)
  }

  #append(frame: Uint8Array): void {
    this.#reserve(frame.length)
    this.#bytes.set(frame, this.#length)
    this.#length += frame.length
  }

  #reserve(count: number): void {
    const needed = this.#length + count
    if (needed <= this.#bytes.length) return
    const larger = new Uint8Array(Math.max(needed, this.#bytes.length * 2, FIRST_CAPACITY))
    larger.set(this.#bytes.subarray(0, this.#length))
    this.#bytes = larger
  }
}

function headerBytes(length: number, key: number | undefined): number {
  return (length < 126 ? 2 : length < 0x1_0000 ? 4 : 10) + (key === undefined ? 0 : 4)
}
