// Base64 on Bun and Node: Buffer is the fastest that both have (Uint8Array.toBase64 needs Node 25).

import type { Base64 } from './wire/json.ts'

export const base64: Base64 = {
  encode: bytes => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64'),
  decode: text => Buffer.from(text, 'base64'),
}
