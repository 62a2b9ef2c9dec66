// Text messages collected as WebSocket frames, so that all of one event-loop tick leave in one write.

import { maskInPlace } from '../../wire/mask.ts'
import {
  encodeWebSocketMessage,
  MAX_WS_HEADER_BYTES,
  TEXT,
  writeWebSocketHeader,
} from '../../wire/websocket.ts'

const FIRST_CAPACITY = 16_384

const encoder = new TextEncoder()

export class TextBatch {
  readonly #maxKeptCapacity: number
  #bytes: Uint8Array = new Uint8Array(0)
  #length = 0

  /** Makes a batch. A buffer above `maxKeptCapacity` is not kept for the next batch. */
  constructor(maxKeptCapacity: number) {
    this.#maxKeptCapacity = maxKeptCapacity
  }

  get length(): number {
    return this.#length
  }

  /** Appends a message. Nearly all are ASCII, so the first attempt assumes one byte per character. */
  add(message: string, key: number | undefined): void {
    this.#reserve(MAX_WS_HEADER_BYTES + message.length)
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

  /** Returns all frames so far, valid until the next `add`, which begins a new batch. */
  take(): Uint8Array {
    const frames = this.#bytes.subarray(0, this.#length)
    this.#length = 0
    if (this.#bytes.length > this.#maxKeptCapacity) this.#bytes = new Uint8Array(0)
    return frames
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
