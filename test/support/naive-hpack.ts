// HPACK once more, written as plainly as possible from RFC 7541, over text of bits: the oracle of the fast one. It imports nothing
// from src on purpose; the tables come from another project by way of the vectors.

import vectors from '../vectors/http2.json' with { type: 'json' }
import type { Random } from './random.ts'

export type NaiveField = readonly [name: string, value: string]

const STATIC = vectors.staticTable as unknown as readonly NaiveField[]
const CODES = vectors.codes.map(([code, length]) => code!.toString(2).padStart(length!, '0'))
const BYTES = new Map(CODES.map((code, byte) => [code, byte]))

const sizeOf = ([name, value]: NaiveField) => name.length + value.length + 32

/** The dynamic table of one direction: newest entry first. */
export class NaiveTable {
  entries: NaiveField[] = []
  maxBytes = 4096
  limit = 4096

  get size(): number {
    return this.entries.reduce((sum, entry) => sum + sizeOf(entry), 0)
  }

  resize(bytes: number): void {
    this.maxBytes = bytes
    while (this.size > bytes) this.entries.pop()
  }

  add(field: NaiveField): void {
    this.entries.unshift(field)
    while (this.size > this.maxBytes) this.entries.pop()
  }

  at(index: number): NaiveField {
    const entry = [...STATIC, ...this.entries][index - 1]
    if (entry === undefined) throw new RangeError('index')
    return entry
  }
}

/** The fields of a block; throws a RangeError for one that is malformed. */
export function naiveDecode(table: NaiveTable, bytes: Uint8Array): NaiveField[] {
  const fields: NaiveField[] = []
  let at = 0
  const byte = () => {
    if (at === bytes.length) throw new RangeError('short')
    return bytes[at++]!
  }
  const integer = (first: number, bits: number) => {
    let value = BigInt(first % 2 ** bits)
    if (value < 2 ** bits - 1) return Number(value)
    for (let count = 0; ; count++) {
      if (count === 4) throw new RangeError('integer')
      const next = byte()
      value += BigInt(next % 128) * 128n ** BigInt(count)
      if (next < 128) return Number(value)
    }
  }
  const string = () => {
    const first = byte()
    const length = integer(first, 7)
    if (at + length > bytes.length) throw new RangeError('string')
    const part = bytes.slice(at, at + length)
    at += length
    return first >= 128 ? naiveHuffman(part) : Buffer.from(part).toString('latin1')
  }
  while (at < bytes.length) {
    const first = byte()
    if (first >= 128) fields.push(table.at(integer(first, 7)))
    else if (first >= 64 || first < 32) {
      const index = integer(first, first >= 64 ? 6 : 4)
      const name = index === 0 ? string() : table.at(index)[0]
      const field = [name, string()] as const
      fields.push(field)
      if (first >= 64) table.add(field)
    } else {
      const size = integer(first, 5)
      if (fields.length > 0 || size > table.limit) throw new RangeError('size')
      table.resize(size)
    }
  }
  return fields
}

export function naiveHuffman(bytes: Uint8Array): string {
  const bits = [...bytes].map(byte => byte.toString(2).padStart(8, '0')).join('')
  let text = ''
  let code = ''
  for (const bit of bits) {
    code += bit
    const byte = BYTES.get(code)
    if (byte === undefined) continue
    if (byte === 256) throw new RangeError('EOS')
    text += String.fromCharCode(byte)
    code = ''
  }
  if (code.length > 7 || code.includes('0')) throw new RangeError('padding')
  return text
}

/** Writes fields in one of the many ways that there are, sizes in front included. */
export function naiveEncode(table: NaiveTable, fields: readonly NaiveField[], random: Random): Uint8Array {
  const bytes: number[] = []
  const integer = (value: number, bits: number, pattern: number) => {
    const most = 2 ** bits - 1
    if (value < most) return bytes.push(pattern + value)
    bytes.push(pattern + most)
    let rest = value - most
    for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128)
    return bytes.push(rest)
  }
  const string = (text: string) => {
    const plain = [...Buffer.from(text, 'latin1')]
    if (random.chance(0.5)) {
      integer(plain.length, 7, 0)
      return bytes.push(...plain)
    }
    const bits = plain.map(byte => CODES[byte]).join('')
    const padded = bits.padEnd(Math.ceil(bits.length / 8) * 8, '1')
    integer(padded.length / 8, 7, 128)
    return bytes.push(...(padded.match(/.{8}/g) ?? []).map(byte => Number.parseInt(byte, 2)))
  }
  if (random.chance(0.1))
    for (let count = 1 + random.below(2); count > 0; count--) {
      const size = random.pick([0, 40, 100, 500, 4096])
      if (size > table.limit) continue
      integer(size, 5, 32)
      table.resize(size)
    }
  for (const field of fields) {
    const all = [...STATIC, ...table.entries]
    const same = all.flatMap(([name, value], index) =>
      name === field[0] && value === field[1] ? [index + 1] : [],
    )
    if (same.length > 0 && random.chance(0.8)) {
      integer(random.pick(same), 7, 128)
      continue
    }
    const named = all.flatMap(([name], index) => (name === field[0] ? [index + 1] : []))
    const index = named.length > 0 && random.chance(0.7) ? random.pick(named) : 0
    const kind = random.below(3)
    if (kind === 0) integer(index, 6, 64)
    else integer(index, 4, kind === 1 ? 0 : 16)
    if (index === 0) string(field[0])
    string(field[1])
    if (kind === 0) table.add(field)
  }
  return Uint8Array.from(bytes)
}
