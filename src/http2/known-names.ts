// The names that an encoder knows in advance, found by their bytes: the index in the static table, and whether to
// index the field.

import { ascii } from '../http/characters.ts'
import { INDEXED, INDEXING } from './indexing.ts'
import { INDEX_OF_NAME } from './static-table.ts'

export interface KnownName {
  readonly bytes: Uint8Array
  /** The index in the static table; 0 if it is not there. */
  readonly index: number
  readonly indexing: number
}

const SLOTS = 512
const slots: (KnownName | undefined)[] = Array.from({ length: SLOTS })

/** Returns the FNV-1a hash of bytes[start, end), continuing from the hash of the bytes before them. */
export function hashOf(bytes: Uint8Array, start: number, end: number, seed: number = HASH_SEED): number {
  let hash = seed
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ bytes[at]!, HASH_FACTOR)
  return hash
}
export const HASH_SEED = -2_128_831_035
export const HASH_FACTOR = 16_777_619

const slotOf = (hash: number): number => (hash ^ (hash >>> 15)) & (SLOTS - 1)

for (const name of new Set([...INDEX_OF_NAME.keys(), ...INDEXING.keys()])) {
  const bytes = ascii(name)
  let slot = slotOf(hashOf(bytes, 0, bytes.length))
  while (slots[slot] !== undefined) slot = (slot + 1) & (SLOTS - 1)
  slots[slot] = {
    bytes,
    index: INDEX_OF_NAME.get(name) ?? 0,
    indexing: INDEXING.get(name) ?? INDEXED,
  }
}

/** Returns the known name in the first `length` bytes, whose hash is `hash`. */
export function knownName(bytes: Uint8Array, length: number, hash: number): KnownName | undefined {
  for (let slot = slotOf(hash); ; slot = (slot + 1) & (SLOTS - 1)) {
    const known = slots[slot]
    if (known === undefined) return undefined
    if (known.bytes.length !== length) continue
    let at = 0
    while (at < length && known.bytes[at] === bytes[at]) at++
    if (at === length) return known
  }
}
