// Encodes fields (RFC 7541) from bytes into bytes. Repeated fields become an index; secrets are never indexed.

import { copyBytes } from '../bytes.ts'
import { DEFAULT_TABLE_BYTES, DynamicTable, ENTRY_OVERHEAD } from './dynamic-table.ts'
import { encodeHuffman, huffmanLength } from './huffman.ts'
import { INDEXED, SENSITIVE } from './indexing.ts'
import { HASH_FACTOR, HASH_SEED, hashOf, knownName } from './known-names.ts'
import { NAME_STARTS, STATIC_BYTES, STATIC_COUNT, STATUS, VALUE_ENDS, VALUE_STARTS } from './static-table.ts'

/** The maximum size of a field in addition to its name and value: an index or two lengths of at most five bytes each. */
const MAX_ADDED_BYTES = 11
/** The maximum size of two size updates before the fields. */
const MAX_RESIZE_BYTES = 12

/** Returns the maximum size of a block with `textBytes` of names and values in `fieldCount` fields. */
export function maxBlockBytes(textBytes: number, fieldCount: number): number {
  return textBytes + fieldCount * MAX_ADDED_BYTES + MAX_RESIZE_BYTES
}

/** The number of slots of the dynamic table's index: twice as many as entries fit into 4,096 bytes. */
const SLOTS = 256

/**
 * The encoder of one connection. For each block call `begin`, then `field` or a similar method for each field, pseudo-header
 * fields first. Every call takes the position to write at and returns the end; the array needs room for `maxBlockBytes`.
 */
export class HpackEncoder {
  readonly #table: DynamicTable
  readonly #ownLimit: number
  /** The smallest table size since the last block, and whether the peer must be notified about sizes. */
  #smallest = 0
  #isResized: boolean
  /**
   * The number + 1 of the entry with this name and value, or with this name, by hash. A later entry replaces an
   * earlier one in its slot.
   */
  #pairs: Int32Array | undefined
  #names: Int32Array | undefined
  /** The name that is being encoded, in lower case. */
  #name = new Uint8Array(128)

  /**
   * Makes an encoder. `maxTableBytes` is the table size that this side wants to use, by default 4,096. At 0, no field
   * depends on an earlier one.
   */
  constructor(maxTableBytes: number = DEFAULT_TABLE_BYTES) {
    this.#ownLimit = maxTableBytes
    this.#smallest = maxTableBytes
    this.#table = new DynamicTable(Math.min(maxTableBytes, DEFAULT_TABLE_BYTES))
    this.#isResized = maxTableBytes < DEFAULT_TABLE_BYTES
  }

  /** The size of the table, as in RFC 7541. */
  get tableBytes(): number {
    return this.#table.size
  }

  /** Takes the peer's SETTINGS_HEADER_TABLE_SIZE. The next block tells the peer how much of it is used. */
  setPeerLimit(bytes: number): void {
    const size = Math.min(bytes, this.#ownLimit)
    if (size === this.#table.maxBytes) return
    this.#smallest = this.#isResized ? Math.min(this.#smallest, size) : size
    this.#isResized = true
    this.#table.resize(size)
  }

  begin(into: Uint8Array, at: number): number {
    if (!this.#isResized) return at
    this.#isResized = false
    let to = at
    const { maxBytes } = this.#table
    if (this.#smallest < maxBytes) to = writeInteger(into, to, 0x20, 0x1f, this.#smallest)
    return writeInteger(into, to, 0x20, 0x1f, maxBytes)
  }

  status(into: Uint8Array, at: number, status: number): number {
    for (let index = STATUS; index < STATUS + 7; index++)
      if (STATUSES[index - STATUS] === status) {
        into[at] = 0x80 | index
        return at + 1
      }
    // Not indexed, because statuses outside of the static table are rare.
    into[at] = STATUS
    into[at + 1] = 3
    into[at + 2] = 0x30 + Math.trunc(status / 100)
    into[at + 3] = 0x30 + (Math.trunc(status / 10) % 10)
    into[at + 4] = 0x30 + (status % 10)
    return at + 5
  }

  /** Writes a field whose name is in the static table; `index` is the first entry with that name. */
  known(into: Uint8Array, at: number, index: number, bytes: Uint8Array, start: number, end: number): number {
    const nameStart = NAME_STARTS[index]!
    return this.field(into, at, STATIC_BYTES, nameStart, VALUE_STARTS[index]!, bytes, start, end)
  }

  /** Writes a field. The name becomes lower-case. */
  field(
    into: Uint8Array,
    at: number,
    nameBytes: Uint8Array,
    nameStart: number,
    nameEnd: number,
    bytes: Uint8Array,
    start: number,
    end: number,
  ): number {
    const nameHash = this.#takeName(nameBytes, nameStart, nameEnd)
    const nameLength = nameEnd - nameStart
    const known = knownName(this.#name, nameLength, nameHash)
    let index = 0
    let indexing = INDEXED
    if (known !== undefined) {
      index = known.index
      indexing = known.indexing
      if (index > 0) {
        const pair = staticPair(index, bytes, start, end)
        if (pair > 0) return writeInteger(into, at, 0x80, 0x7f, pair)
      }
    }
    const table = this.#table
    const size = nameLength + end - start + ENTRY_OVERHEAD
    // An entry that would displace most others is not stored.
    if (indexing === INDEXED && size <= (table.maxBytes * 3) >> 2) {
      const hash = hashOf(bytes, start, end, nameHash)
      this.#pairs ??= new Int32Array(SLOTS)
      this.#names ??= new Int32Array(SLOTS)
      const pairs = this.#pairs
      const names = this.#names
      const slot = (hash ^ (hash >>> 16)) & (SLOTS - 1)
      const pair = pairs[slot]! - 1
      if (table.has(pair) && table.hash(pair) === hash && this.#isPair(pair, nameLength, bytes, start, end))
        return writeInteger(into, at, 0x80, 0x7f, STATIC_COUNT + table.added - pair)
      const nameSlot = (nameHash ^ (nameHash >>> 16)) & (SLOTS - 1)
      if (index === 0) index = this.#nameIndex(names[nameSlot]! - 1, nameLength)
      const to = this.#literal(into, at, 0x40, 0x3f, index, nameLength, bytes, start, end)
      table.add(this.#name, 0, nameLength, bytes, start, end, hash)
      pairs[slot] = table.added
      names[nameSlot] = table.added
      return to
    }
    const prefix = indexing === SENSITIVE ? 0x10 : 0
    return this.#literal(into, at, prefix, 0x0f, index, nameLength, bytes, start, end)
  }

  #literal(
    into: Uint8Array,
    at: number,
    prefix: number,
    mask: number,
    index: number,
    nameLength: number,
    bytes: Uint8Array,
    start: number,
    end: number,
  ): number {
    let to = writeInteger(into, at, prefix, mask, index)
    if (index === 0) to = writeString(into, to, this.#name, 0, nameLength)
    return writeString(into, to, bytes, start, end)
  }

  /** Copies the name in lower case and returns its hash. */
  #takeName(bytes: Uint8Array, start: number, end: number): number {
    const length = end - start
    if (length > this.#name.length) this.#name = new Uint8Array(2 * length)
    const name = this.#name
    let hash = HASH_SEED
    for (let at = 0; at < length; at++) {
      let byte = bytes[start + at]!
      if (byte >= 0x41 && byte <= 0x5a) byte |= 0x20
      name[at] = byte
      hash = Math.imul(hash ^ byte, HASH_FACTOR)
    }
    return hash
  }

  /** Returns the index of the entry if it exists and has the current name; otherwise 0. */
  #nameIndex(entry: number, nameLength: number): number {
    const table = this.#table
    if (!table.has(entry) || table.nameLength(entry) !== nameLength) return 0
    if (!isSame(table.bytes, table.start(entry), this.#name, 0, nameLength)) return 0
    return STATIC_COUNT + table.added - entry
  }

  #isPair(entry: number, nameLength: number, bytes: Uint8Array, start: number, end: number): boolean {
    const table = this.#table
    const at = table.start(entry)
    return (
      table.nameLength(entry) === nameLength &&
      table.valueLength(entry) === end - start &&
      isSame(table.bytes, at, this.#name, 0, nameLength) &&
      isSame(table.bytes, at + nameLength, bytes, start, end - start)
    )
  }
}

const STATUSES = [200, 204, 206, 304, 400, 404, 500]

/** Returns the index of the static entry with the name of `index` and this value, or 0. */
function staticPair(index: number, bytes: Uint8Array, start: number, end: number): number {
  for (let pair = index; pair < index + 7; pair++) {
    const from = VALUE_STARTS[pair]!
    const length = VALUE_ENDS[pair]! - from
    // Few names have values, and all entries of one name follow each other.
    if (length === 0) return 0
    if (length === end - start && isSame(STATIC_BYTES, from, bytes, start, length))
      return isSameName(pair, index) ? pair : 0
  }
  return 0
}

function isSameName(pair: number, index: number): boolean {
  const start = NAME_STARTS[pair]!
  const length = VALUE_STARTS[pair]! - start
  const first = NAME_STARTS[index]!
  return length === VALUE_STARTS[index]! - first && isSame(STATIC_BYTES, start, STATIC_BYTES, first, length)
}

function isSame(a: Uint8Array, aStart: number, b: Uint8Array, bStart: number, length: number): boolean {
  for (let at = 0; at < length; at++) if (a[aStart + at] !== b[bStart + at]) return false
  return true
}

/** Writes an integer whose prefix fills `mask`, with the bits of `pattern` above it (RFC 7541 section 5.1). */
function writeInteger(into: Uint8Array, at: number, pattern: number, mask: number, value: number): number {
  let to = at
  if (value < mask) {
    into[to++] = pattern | value
    return to
  }
  into[to++] = pattern | mask
  let rest = value - mask
  while (rest >= 0x80) {
    into[to++] = (rest & 0x7f) | 0x80
    rest >>>= 7
  }
  into[to++] = rest
  return to
}

function writeString(into: Uint8Array, at: number, bytes: Uint8Array, start: number, end: number): number {
  const length = end - start
  const coded = huffmanLength(bytes, start, end)
  if (coded < length) return encodeHuffman(bytes, start, end, into, writeInteger(into, at, 0x80, 0x7f, coded))
  const to = writeInteger(into, at, 0, 0x7f, length)
  copyBytes(bytes, start, end, into, to)
  return to + length
}
