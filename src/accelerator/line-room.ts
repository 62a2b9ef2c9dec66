// Collects lines of the access log as bytes, in the format of `plugins/access-line.ts`.

import type { LaneLog } from '../accelerator.ts'
import { BACKSLASH, DEL, DOT, HASH, QUESTION, QUOTE } from '../http/characters.ts'

const ZERO = 0x30

/** A request that a lane served. Its path is bytes[start, end), without a space or control characters. */
export interface ServedLine {
  readonly requestId: string
  readonly bytes: Uint8Array
  readonly start: number
  readonly end: number
  readonly status: number
  readonly durationMs: number
  readonly requestBytes: number
  readonly responseBytes: number
}

/** The maximum size of a line without its middle, its path and its request id. */
const REST_BYTES = 320
const BEGINNING = Buffer.from('{"time":"2000-01-01T00:00:00.000Z","id":')
const TIME_AT = 9
let writtenMs = 0
const REQUEST_ID = Buffer.from(',"requestId":"')
const PATH = Buffer.from(',"path":"')
const STATUS = Buffer.from('","status":')
const MS = Buffer.from(',"ms":')
const APP_MS = Buffer.from(',"waitMs":0,"appMs":')
const REQUEST_BYTES = Buffer.from(',"transferMs":0,"requestBytes":')
const ANSWER_BYTES = Buffer.from(',"responseBytes":')
const END = Buffer.from('}\n')

/** Lines collected without a string or an object for each, which would cost five times as much. */
export class LineRoom {
  readonly #bytes: Uint8Array<ArrayBuffer>
  #end = 0
  count = 0

  constructor(size: number) {
    this.#bytes = new Uint8Array(size)
  }

  /** Returns a copy of all lines, and empties the buffer. */
  take(): Uint8Array<ArrayBuffer> {
    const lines = this.#bytes.slice(0, this.#end)
    this.#end = this.count = 0
    return lines
  }

  /** Adds a line. Returns `false` if it does not fit. */
  add(id: number, { middle, query }: Pick<LaneLog, 'middle' | 'query'>, line: ServedLine): boolean {
    const { requestId, bytes, start, end } = line
    const most = REST_BYTES + middle.length + requestId.length + 2 * (end - start)
    if (this.#end + most > this.#bytes.length) return false
    const now = Date.now()
    if (now !== writtenMs) {
      writtenMs = now
      BEGINNING.write(new Date(now).toISOString(), TIME_AT, 'latin1')
    }
    this.#put(BEGINNING)
    this.#number(id)
    if (requestId !== '') {
      this.#put(REQUEST_ID)
      this.#text(requestId)
      this.#bytes[this.#end++] = QUOTE
    }
    this.#put(middle)
    this.#put(PATH)
    this.#path(bytes, start, query ? end : pathEnd(bytes, start, end))
    this.#put(STATUS)
    this.#number(line.status)
    this.#put(MS)
    const msAt = this.#end
    this.#hundredths(Math.round(line.durationMs * 100))
    const msEnd = this.#end
    this.#put(APP_MS)
    this.#bytes.copyWithin(this.#end, msAt, msEnd)
    this.#end += msEnd - msAt
    this.#put(REQUEST_BYTES)
    this.#number(line.requestBytes)
    this.#put(ANSWER_BYTES)
    this.#number(line.responseBytes)
    this.#put(END)
    this.count++
    return true
  }

  /** Copies a short piece, faster than `set` for so few bytes. */
  #put(piece: Uint8Array): void {
    const bytes = this.#bytes
    const at = this.#end
    const { length } = piece
    for (let index = 0; index < length; index++) bytes[at + index] = piece[index]!
    this.#end = at + length
  }

  #text(ascii: string): void {
    for (let index = 0; index < ascii.length; index++) this.#bytes[this.#end++] = ascii.charCodeAt(index)
  }

  #path(bytes: Uint8Array, start: number, end: number): void {
    const at = this.#end
    for (let index = start; index < end; index++) {
      const byte = bytes[index]!
      if (byte === QUOTE || byte === BACKSLASH || byte >= DEL) {
        const text = JSON.stringify(Buffer.from(bytes.subarray(start, end)).toString('latin1')).slice(1, -1)
        this.#end = at + Buffer.from(this.#bytes.buffer).write(text, at)
        return
      }
      this.#bytes[this.#end++] = byte
    }
  }

  /** Writes a whole number of at least 0. */
  #number(number: number): void {
    let end = this.#end + 1
    for (let rest = number; rest >= 10; rest = Math.floor(rest / 10)) end++
    this.#end = end
    for (let rest = number; ; ) {
      const tens = Math.floor(rest / 10)
      this.#bytes[--end] = ZERO + rest - 10 * tens
      if (tens === 0) return
      rest = tens
    }
  }

  #hundredths(hundredths: number): void {
    const whole = Math.floor(hundredths / 100)
    const rest = hundredths - 100 * whole
    this.#number(whole)
    if (rest === 0) return
    this.#bytes[this.#end++] = DOT
    this.#bytes[this.#end++] = ZERO + Math.floor(rest / 10)
    if (rest % 10 !== 0) this.#bytes[this.#end++] = ZERO + (rest % 10)
  }
}

function pathEnd(bytes: Uint8Array, start: number, end: number): number {
  for (let at = start; at < end; at++) if (bytes[at] === QUESTION || bytes[at] === HASH) return at
  return end
}
