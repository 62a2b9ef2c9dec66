// The dynamic table of HPACK (RFC 7541 section 2.3.2): entries as bytes, the oldest removed first, never above its size.

import { copyBytes } from '../bytes.ts'

/** The size of an entry in addition to its bytes (RFC 7541 section 4.1). */
export const ENTRY_OVERHEAD = 32

/** The size of a table before either side sets one (RFC 9113 section 6.5.2). */
export const DEFAULT_TABLE_BYTES = 4096

const PER_ENTRY = 4
const START = 0
const NAME_LENGTH = 1
const VALUE_LENGTH = 2
const HASH = 3

const EMPTY = new Uint8Array(0)
const NO_ENTRIES = new Int32Array(0)
const FEWEST_ENTRIES = 8
const FEWEST_BYTES = 256

/**
 * The table of one side for one direction. It allocates memory with its entries: at most twice `maxBytes`, and 16
 * bytes per entry.
 */
export class DynamicTable {
  /** All entries: name, then value. Adding an entry may replace the array. */
  bytes: Uint8Array = EMPTY
  count = 0
  /**
   * The number of entries ever added. The newest one has the number `added - 1`; unlike an index, the number of an
   * entry never changes.
   */
  added = 0
  /** The size, as RFC 7541 counts it. */
  size = 0

  #maxBytes: number
  /** The position of the text of the next entry. Entries follow each other without gaps. */
  #end = 0
  /** A ring: entry number n is in row n & mask. */
  #rows = NO_ENTRIES
  #mask = -1

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  get maxBytes(): number {
    return this.#maxBytes
  }

  /** Sets the size. Entries beyond it are removed, the oldest first. */
  resize(maxBytes: number): void {
    this.#maxBytes = maxBytes
    this.#evict(maxBytes)
    if (maxBytes > 0) return
    this.bytes = EMPTY
    this.#rows = NO_ENTRIES
    this.#mask = -1
    this.#end = 0
  }

  /**
   * Adds an entry, whose name and value are in other arrays than the table's. An entry larger than the whole table
   * empties it and is not added, which is not an error (RFC 7541 section 4.4).
   */
  add(
    nameBytes: Uint8Array,
    nameStart: number,
    nameEnd: number,
    valueBytes: Uint8Array,
    valueStart: number,
    valueEnd: number,
    hash = 0,
  ): boolean {
    const nameLength = nameEnd - nameStart
    const length = nameLength + valueEnd - valueStart
    const size = length + ENTRY_OVERHEAD
    this.#evict(Math.max(0, this.#maxBytes - size))
    if (size > this.#maxBytes) return false
    if (this.#end + length > this.bytes.length) this.#makeRoom(length)
    if (this.count > this.#mask) this.#addRows()
    const row = (this.added & this.#mask) * PER_ENTRY
    this.#rows[row + START] = this.#end
    this.#rows[row + NAME_LENGTH] = nameLength
    this.#rows[row + VALUE_LENGTH] = length - nameLength
    this.#rows[row + HASH] = hash
    copyBytes(nameBytes, nameStart, nameEnd, this.bytes, this.#end)
    copyBytes(valueBytes, valueStart, valueEnd, this.bytes, this.#end + nameLength)
    this.#end += length
    this.size += size
    this.added++
    this.count++
    return true
  }

  has(entry: number): boolean {
    return entry < this.added && entry >= this.added - this.count
  }

  start(entry: number): number {
    return this.#rows[(entry & this.#mask) * PER_ENTRY + START]!
  }

  nameLength(entry: number): number {
    return this.#rows[(entry & this.#mask) * PER_ENTRY + NAME_LENGTH]!
  }

  valueLength(entry: number): number {
    return this.#rows[(entry & this.#mask) * PER_ENTRY + VALUE_LENGTH]!
  }

  hash(entry: number): number {
    return this.#rows[(entry & this.#mask) * PER_ENTRY + HASH]!
  }

  #evict(maxBytes: number): void {
    while (this.size > maxBytes) {
      const oldest = this.added - this.count
      this.size -= this.nameLength(oldest) + this.valueLength(oldest) + ENTRY_OVERHEAD
      this.count--
    }
    if (this.count === 0) this.#end = 0
  }

  /** Moves the entries to the front of the array; of a larger one if this one is half full. */
  #makeRoom(length: number): void {
    const first = this.count === 0 ? this.#end : this.start(this.added - this.count)
    const used = this.#end - first
    const needed = 2 * (used + length)
    const into = needed <= this.bytes.length ? this.bytes : new Uint8Array(Math.max(needed, FEWEST_BYTES))
    copyBytes(this.bytes, first, this.#end, into, 0)
    this.bytes = into
    this.#end = used
    for (let entry = this.added - this.count; entry < this.added; entry++)
      this.#rows[(entry & this.#mask) * PER_ENTRY + START]! -= first
  }

  #addRows(): void {
    const capacity = Math.max(FEWEST_ENTRIES, 2 * (this.#mask + 1))
    const larger = new Int32Array(capacity * PER_ENTRY)
    for (let entry = this.added - this.count; entry < this.added; entry++) {
      const from = (entry & this.#mask) * PER_ENTRY
      larger.set(this.#rows.subarray(from, from + PER_ENTRY), (entry & (capacity - 1)) * PER_ENTRY)
    }
    this.#rows = larger
    this.#mask = capacity - 1
  }
}
