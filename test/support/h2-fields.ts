// Fields of HTTP/2 for tests: into a list as a decoder leaves it, and out of a block. By the naive HPACK, so that what is tested does
// not depend on ours.

import { FieldList } from '../../src/http2/field-list.ts'
import { type NaiveField, NaiveTable, naiveDecode } from './naive-hpack.ts'

/** A list with these fields; each text is latin1. */
export function listOf(fields: readonly NaiveField[], into: FieldList = new FieldList()): FieldList {
  into.clear()
  for (const [name, value] of fields) {
    const bytes = Buffer.from(name + value, 'latin1')
    const start = into.end
    into.append(bytes, 0, bytes.length)
    into.commit(start, start + name.length)
  }
  return into
}

/** The fields of one block that stands alone. */
export function fieldsOf(block: Uint8Array): NaiveField[] {
  return naiveDecode(new NaiveTable(), block)
}

/** `name: value` for each, as tests read best. */
export function linesOf(fields: readonly NaiveField[]): string[] {
  return fields.map(([name, value]) => `${name}: ${value}`)
}
