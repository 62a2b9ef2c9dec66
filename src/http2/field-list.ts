// The fields of one decoded block as bytes, in order. One list serves every block, without strings.

import { copyBytes } from '../bytes.ts'
import { latin1 } from '../http/characters.ts'

const PER_FIELD = 3
const NAME_START = 0
const VALUE_START = 1
const VALUE_END = 2

const FEWEST_BYTES = 1024
/** The size above which arrays are not kept for the next block. */
const KEPT_BYTES = 65_536
/** The number of bytes up to which a loop is faster than `set`. */
const LOOP_BYTES = 32

/** The fields: each is its name with the value right after it. */
export class FieldList {
  bytes: Uint8Array = new Uint8Array(FEWEST_BYTES)
  count = 0
  /** The size as in RFC 7541: names, values and 32 for each field. Not exact if the list is too large. */
  size = 0
  /** Whether the block exceeded the list's limit. Then the list is empty. */
  isTooLarge = false
  /** Why the fields are not a valid message, set by the code that checks them. */
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

  /** Makes room for this many bytes after `end`. */
  reserve(length: number): void {
    if (this.end + length <= this.bytes.length) return
    const larger = new Uint8Array(Math.max(this.end + length, 2 * this.bytes.length))
    copyBytes(this.bytes, 0, this.end, larger, 0)
    this.bytes = larger
  }

  /** Appends from[start, end), and moves `end`. */
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

  /** Turns the bytes appended since `nameStart` into a field. */
  commit(nameStart: number, valueStart: number): void {
    const row = this.count * PER_FIELD
    if (row === this.#rows.length) this.#addRows()
    this.#rows[row + NAME_START] = nameStart
    this.#rows[row + VALUE_START] = valueStart
    this.#rows[row + VALUE_END] = this.end
    this.count++
  }

  /** Drops the fields. The rest of the block is only decoded for the dynamic table. */
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
