// Converts fields of HTTP/3, in the runtime's form, into those of the HTTP/2 code, and responses back.

import { latin1 } from '../../http/characters.ts'
import type { FieldList } from '../../http2/field-list.ts'
import type { FieldEncoder } from '../../http2/head-block.ts'
import type { FieldValues } from './quic.ts'

const NOTHING = new Uint8Array(0)

/** The size of a field in addition to its name and value, as RFC 9114 counts it. */
export const FIELD_BYTES = 32

/**
 * Puts a section into `list`, which becomes too large above `maxBytes`. Fields of one name stay together, at the
 * place of the first.
 */
export function takeFields(values: FieldValues, list: FieldList, maxBytes: number): void {
  list.clear()
  for (const [name, value] of Object.entries(values))
    if (Array.isArray(value)) for (const one of value) add(list, name, one)
    else if (value !== undefined) add(list, name, value)
  if (list.size > maxBytes) list.overflow()
}

function add(list: FieldList, name: string, value: string): void {
  const nameStart = list.end
  const nameBytes = Buffer.from(name, 'latin1')
  list.append(nameBytes, 0, nameBytes.length)
  const valueStart = list.end
  const valueBytes = Buffer.from(value, 'latin1')
  list.append(valueBytes, 0, valueBytes.length)
  list.commit(nameStart, valueStart)
  list.size += nameBytes.length + valueBytes.length + FIELD_BYTES
}

/** An app may call a field `constructor` or `__proto__`. */
const noValues = (): Record<string, string | string[]> => Object.create(null)

/** Collects the output of `encodeResponseHead` and `encodeTrailers` as fields rather than bytes. */
export class FieldCollector implements FieldEncoder {
  values: Record<string, string | string[]> = noValues()

  /** Returns the fields that `encode` makes. */
  of(encode: (collector: FieldCollector, into: Uint8Array) => void): Record<string, string | string[]> {
    this.values = noValues()
    encode(this, NOTHING)
    return this.values
  }

  begin(_into: Uint8Array, at: number): number {
    return at
  }

  status(_into: Uint8Array, at: number, status: number): number {
    this.values[':status'] = String(status)
    return at + 1
  }

  field(
    _into: Uint8Array,
    at: number,
    nameBytes: Uint8Array,
    nameStart: number,
    nameEnd: number,
    valueBytes: Uint8Array,
    valueStart: number,
    valueEnd: number,
  ): number {
    const name = latin1(nameBytes, nameStart, nameEnd).toLowerCase()
    const value = latin1(valueBytes, valueStart, valueEnd)
    const before = this.values[name]
    if (before === undefined) this.values[name] = value
    else if (Array.isArray(before)) before.push(value)
    else this.values[name] = [before, value]
    return at + 1
  }
}
