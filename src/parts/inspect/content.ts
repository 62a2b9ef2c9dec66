// Decodes bodies for reading, as far as they are stored.

import * as zlib from 'node:zlib'
import type { Entry } from './entry.ts'
import { headerOf } from './secrets.ts'

/**
 * The maximum size of a decoded body, as a multiple of its stored bytes, unless the floor is larger: ten bytes may
 * grow to gigabytes.
 */
const DECODED_FACTOR = 16
const SHOWN_FLOOR_BYTES = 4_194_304
/** The size up to which filters decode every stored body, in about 3 ms each. */
export const SEARCHED_FLOOR_BYTES = 1_048_576
/** The maximum number of codings of one body. Senders use one or two, and each takes as long as the first. */
const MAX_CODINGS = 4

/** A body's bytes, and what went wrong during decoding. */
export interface Content {
  readonly bytes: Uint8Array
  readonly fault?: string
}

/**
 * Returns the bytes as sent, or with gzip, deflate, br and zstd decoded. If they cannot be decoded, returns them as
 * sent, with a fault.
 */
export function contentOf(
  entry: Entry,
  side: 'request' | 'response',
  decoded: boolean,
  floorBytes: number = SHOWN_FLOOR_BYTES,
): Content {
  const [head, body] =
    side === 'request' ? [entry.requestHead, entry.requestBody] : [entry.responseHead, entry.responseBody]
  const { bytes } = body
  const encoding = decoded ? headerOf(head, 'content-encoding').toLowerCase() : ''
  if (encoding === '' || encoding === 'identity' || bytes.length === 0) return { bytes }
  const maxBytes = Math.max(floorBytes, DECODED_FACTOR * bytes.length)
  try {
    const codings = encoding.split(',')
    if (codings.length > MAX_CODINGS) throw new Error(`it has more than ${MAX_CODINGS} codings`)
    let content = bytes
    for (const coding of codings.reverse()) content = decode(content, coding.trim(), maxBytes)
    return { bytes: content }
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException
    const isTooLarge = code === 'ERR_BUFFER_TOO_LARGE'
    return { bytes, fault: isTooLarge ? `it has more than ${maxBytes} bytes then` : message }
  }
}

function decode(bytes: Uint8Array, coding: string, maxOutputLength: number): Uint8Array {
  // A truncated body is decoded as far as it goes.
  const { Z_SYNC_FLUSH, BROTLI_OPERATION_FLUSH } = zlib.constants
  // Some senders leave out the zlib header, whose first byte has 8 in its lower half.
  if (coding === 'deflate' && (bytes[0]! & 0x0f) !== 8)
    return zlib.inflateRawSync(bytes, { finishFlush: Z_SYNC_FLUSH, maxOutputLength })
  if (coding === 'gzip' || coding === 'x-gzip' || coding === 'deflate')
    return zlib.unzipSync(bytes, { finishFlush: Z_SYNC_FLUSH, maxOutputLength })
  if (coding === 'br')
    return zlib.brotliDecompressSync(bytes, { finishFlush: BROTLI_OPERATION_FLUSH, maxOutputLength })
  if (coding === 'zstd' && 'zstdDecompressSync' in zlib)
    return zlib.zstdDecompressSync(bytes, { maxOutputLength })
  if (coding === 'identity') return bytes
  throw new Error(`the coding "${coding}" is not known here`)
}

/**
 * Returns the text in the charset of its Content-Type, by default UTF-8, with replacement characters for invalid
 * bytes.
 */
export function textOfContent({ bytes }: Content, type = ''): string {
  return decoderOf(type).decode(bytes)
}

export function decoderOf(type: string): TextDecoder {
  const charset = /;\s*charset\s*=\s*"?([\w.:-]+)/i.exec(type)?.[1] ?? 'utf-8'
  try {
    // Any label of the encoding standard; the types list only some.
    return new TextDecoder(charset as ConstructorParameters<typeof TextDecoder>[0])
  } catch {
    // This runtime does not know the charset.
    return new TextDecoder()
  }
}
