// What Buffer does faster than anything else that Bun and Node both have.

import type { Base64 } from './wire/json.ts'

export const base64: Base64 = {
  encode: bytes => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64'),
  decode: text => Buffer.from(text, 'base64'),
}

/** bytes[start, end) with each byte as the character of its number: in 50 ns what a loop takes a microsecond for. */
export function latin1Text(bytes: Uint8Array, start: number, end: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString('latin1')
}
