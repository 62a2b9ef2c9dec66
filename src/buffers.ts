// Operations of Buffer that are faster than anything else that Bun and Node both have.

import type { Base64 } from './wire/json.ts'

export const base64: Base64 = {
  encode: bytes => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64'),
  decode: text => Buffer.from(text, 'base64'),
}

/** Returns bytes[start, end) as Latin-1 text: in 50 ns, where a loop takes a microsecond. */
export function latin1Text(bytes: Uint8Array, start: number, end: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString('latin1')
}
