// Decodes field blocks (RFC 7541) into a list of bytes. A malformed block ends the connection, because the tables would differ.

import { DEFAULT_TABLE_BYTES, DynamicTable, ENTRY_OVERHEAD } from './dynamic-table.ts'
import type { FieldList } from './field-list.ts'
import { decodeHuffman, maxDecodedBytes } from './huffman.ts'
import { NAME_STARTS, STATIC_BYTES, STATIC_COUNT, VALUE_ENDS, VALUE_STARTS } from './static-table.ts'

/** The maximum number of bytes after the prefix of an integer. Four hold 28 bits, far more than any accepted length. */
const MAX_INTEGER_BYTES = 4

export interface HpackDecoderOptions {
  /** The maximum size of a list, as in RFC 7541. If exceeded, no field of the block is kept. */
  readonly maxListBytes: number
  /** The table size that this side announced and the peer acknowledged. Default 4,096 bytes. */
  readonly maxTableBytes?: number
}

/** The decoder of one connection. It stores only the dynamic table: at most twice `maxTableBytes`. */
export class HpackDecoder {
  /** The error, after `decode` returned false. */
  problem = ''

  readonly #maxListBytes: number
  readonly #table: DynamicTable
  /** The largest size that the peer may choose. */
  #limit: number
  /** Whether the limit was lowered below the size in use, so that the peer's next block must begin with a smaller size. */
  #wantsResize = false
  /** The position after the integer or string that was read last. */
  #at = 0

  constructor(options: HpackDecoderOptions) {
    this.#maxListBytes = options.maxListBytes
    this.#limit = options.maxTableBytes ?? DEFAULT_TABLE_BYTES
    this.#table = new DynamicTable(this.#limit)
  }

  /** The size of the table, as in RFC 7541. */
  get tableBytes(): number {
    return this.#table.size
  }

  /** Sets the limit of our table. Call it when the peer acknowledges the SETTINGS. */
  setTableLimit(bytes: number): void {
    this.#limit = bytes
    this.#wantsResize = this.#table.maxBytes > bytes
  }

  /**
   * Decodes bytes[start, end), one whole field block, into `list`. Returns `false` for a COMPRESSION_ERROR, see `problem`. A
   * block of more than `maxListBytes` is not an error: it sets `list.isTooLarge`, and the connection stays open.
   */
  decode(bytes: Uint8Array, start: number, end: number, list: FieldList): boolean {
    list.clear()
    let at = start
    while (at < end && (bytes[at]! & 0xe0) === 0x20) {
      const size = this.#integer(bytes, at, end, 0x1f)
      if (size < 0) return false
      if (size > this.#limit) return this.#refuse('the table size is above the limit')
      this.#table.resize(size)
      this.#wantsResize = false
      at = this.#at
    }
    if (this.#wantsResize) return this.#refuse('the table size was not lowered')

    while (at < end) {
      const byte = bytes[at]!
      const nameStart = list.end
      let valueStart: number
      if (byte & 0x80) {
        const index = this.#integer(bytes, at, end, 0x7f)
        if (index < 0) return false
        const nameLength = this.#appendEntry(list, index, true)
        if (nameLength < 0) return false
        valueStart = nameStart + nameLength
      } else {
        const isAdded = (byte & 0x40) !== 0
        if (!isAdded && (byte & 0x20) !== 0) return this.#refuse('a table size behind a field')
        const index = this.#integer(bytes, at, end, isAdded ? 0x3f : 0x0f)
        if (index < 0) return false
        if (index === 0 ? !this.#appendString(list, bytes, end) : this.#appendEntry(list, index, false) < 0)
          return false
        valueStart = list.end
        if (!this.#appendString(list, bytes, end)) return false
        if (isAdded) this.#table.add(list.bytes, nameStart, valueStart, list.bytes, valueStart, list.end)
      }
      at = this.#at
      list.size += list.end - nameStart + ENTRY_OVERHEAD
      if (list.size > this.#maxListBytes) list.overflow()
      else list.commit(nameStart, valueStart)
    }
    return true
  }

  /** Appends the name of an entry, and its value if wanted. Returns the length of the name, or -1 if there is no such entry. */
  #appendEntry(list: FieldList, index: number, withValue: boolean): number {
    if (index === 0) return this.#miss('index 0')
    if (index <= STATIC_COUNT) {
      const nameStart = NAME_STARTS[index]!
      const nameEnd = VALUE_STARTS[index]!
      list.append(STATIC_BYTES, nameStart, withValue ? VALUE_ENDS[index]! : nameEnd)
      return nameEnd - nameStart
    }
    const table = this.#table
    const entry = table.added - (index - STATIC_COUNT)
    if (!table.has(entry)) return this.#miss('an index that is not in the table')
    const start = table.start(entry)
    const nameLength = table.nameLength(entry)
    // The fields of a list that is too large are not read. Without this check, a block of 16 KB would cause 64 MB of copies.
    if (withValue && list.isTooLarge) return nameLength
    list.append(table.bytes, start, start + nameLength + (withValue ? table.valueLength(entry) : 0))
    return nameLength
  }

  /** Appends the string literal at `#at`. */
  #appendString(list: FieldList, bytes: Uint8Array, end: number): boolean {
    const start = this.#at
    if (start >= end) return this.#refuse('the block ends inside a field')
    const length = this.#integer(bytes, start, end, 0x7f)
    if (length < 0) return false
    const from = this.#at
    if (length > end - from) return this.#refuse('a string longer than the block')
    this.#at = from + length
    if ((bytes[start]! & 0x80) === 0) {
      list.append(bytes, from, from + length)
      return true
    }
    list.reserve(maxDecodedBytes(length))
    const to = decodeHuffman(bytes, from, from + length, list.bytes, list.end)
    if (to < 0) return this.#refuse('a broken Huffman string')
    list.end = to
    return true
  }

  /**
   * Reads the integer at `at`, whose prefix fills `mask` (RFC 7541 section 5.1), and sets `#at` after it. Returns -1
   * if it is refused.
   */
  #integer(bytes: Uint8Array, at: number, end: number, mask: number): number {
    let value = bytes[at]! & mask
    let next = at + 1
    if (value === mask) {
      let byte = 0x80
      for (let shift = 0; byte & 0x80; shift += 7) {
        if (next === end) return this.#miss('the block ends inside an integer')
        if (shift === 7 * MAX_INTEGER_BYTES) return this.#miss('an integer that is too long')
        byte = bytes[next++]!
        value += (byte & 0x7f) << shift
      }
    }
    this.#at = next
    return value
  }

  #refuse(problem: string): false {
    this.problem = problem
    return false
  }

  #miss(problem: string): -1 {
    this.problem = problem
    return -1
  }
}
