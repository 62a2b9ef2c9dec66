// The fields of one decoded block as bytes, in the order they came. One list serves every block; nothing becomes a string.

import { copyBytes } from '../bytes.ts'
import { latin1 } from '../http/characters.ts'

const PER_FIELD = 3
const NAME_START = 0
const VALUE_START = 1
const VALUE_END = 2

const FEWEST_BYTES = 1024
/** The size above which arrays are not kept for the next block. */
const KEPT_BYTES = 65_536
/** The number of bytes up to which a loop is faster than the call. */
const LOOP_BYTES = 32

/** Each field is its name with the value right behind it. */
export class FieldList {
  bytes: Uint8Array = new Uint8Array(FEWEST_BYTES)
  count = 0
  /** The size as RFC 7541 counts it: names, values and 32 for each field. Not exact when the list is too large. */
  size = 0
  /** Whether the block had more than the list may hold. Then there are no fields in it. */
  isTooLarge = false
  /** The fault of the fields as a message, set by those who read them. */
  problem = ''

  /** The position of the text of the next field. */
  end = 0

  #rows = new Int32Array(PER_FIELD * 32)

  clear(): void {
    this.count = this.size = this.end = 0
    this.isTooLarge = false
    this.problem = ''
    if (this.bytes.length > KEPT_BYTES) this.bytes = new Uint8Array(FEWEST_BYTES)
  }

  /** Makes room for this many bytes behind `end`. */
  reserve(length: number): void {
    if (this.end + length <= this.bytes.length) return
    const larger = new Uint8Array(Math.max(this.end + length, 2 * this.bytes.length))
    copyBytes(this.bytes, 0, this.end, larger, 0)
    this.bytes = larger
  }

  /** Copies from[start, end) behind what is there; `end` moves on. */
  append(from: Uint8Array, start: number, end: number): void {
    const length = end - start
    if (this.end + length > this.bytes.length) this.reserve(length)
    if (length > LOOP_BYTES) copyBytes(from, start, end, this.bytes, this.end)
    else {
      const { bytes } = this
      const at = this.end
      for (let index = 0; index < length; index++) bytes[at + index] = from[start + index]!
    }
    this.end += length
  }

  /** Makes what was appended since `nameStart` a field. */
  commit(nameStart: number, valueStart: number): void {
    const row = this.count * PER_FIELD
    if (row === this.#rows.length) this.#addRows()
    this.#rows[row + NAME_START] = nameStart
    this.#rows[row + VALUE_START] = valueStart
    this.#rows[row + VALUE_END] = this.end
    this.count++
  }

  /** Gives up the fields: the block is only read on for the sake of the dynamic table. */
  overflow(): void {
    this.isTooLarge = true
    this.count = this.end = 0
  }

  nameStart(field: number): number {
    return this.#rows[field * PER_FIELD + NAME_START]!
  }

  nameEnd(field: number): number {
    return this.#rows[field * PER_FIELD + VALUE_START]!
  }

  valueStart(field: number): number {
    return this.#rows[field * PER_FIELD + VALUE_START]!
  }

  valueEnd(field: number): number {
    return this.#rows[field * PER_FIELD + VALUE_END]!
  }

  name(field: number): string {
    return latin1(this.bytes, this.nameStart(field), this.nameEnd(field))
  }

  value(field: number): string {
    return latin1(this.bytes, this.valueStart(field), this.valueEnd(field))
  }

  list(): [name: string, value: string][] {
    return Array.from({ length: this.count }, (_, field) => [this.name(field), this.value(field)])
  }

  #addRows(): void {
    const larger = new Int32Array(this.#rows.length * 2)
    larger.set(this.#rows)
    this.#rows = larger
  }
}
