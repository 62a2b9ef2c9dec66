// Bodies for reading: content codings undone, as far as they are kept.

import * as zlib from 'node:zlib'
import type { Entry } from './entry.ts'
import { headerOf } from './secrets.ts'

/** A decoded body has at most so many times the bytes that were kept as the bound of a body: a small one may grow a thousandfold. */
const DECODED_FACTOR = 16
const DECODED_FLOOR_BYTES = 4_194_304

/** A body's bytes, and what went wrong when its coding was to be undone. */
export interface Content {
  readonly bytes: Uint8Array
  readonly fault?: string
}

/** The bytes as sent, or with gzip, deflate, br and zstd undone. What cannot be decoded comes as sent, with a fault. */
export function contentOf(entry: Entry, side: 'request' | 'answer', decoded: boolean): Content {
  const [head, body] =
    side === 'request' ? [entry.requestHead, entry.requestBody] : [entry.answerHead, entry.answerBody]
  const { bytes } = body
  const encoding = decoded ? headerOf(head, 'content-encoding').toLowerCase() : ''
  if (encoding === '' || encoding === 'identity' || bytes.length === 0) return { bytes }
  try {
    const maxBytes = Math.max(DECODED_FLOOR_BYTES, DECODED_FACTOR * bytes.length)
    let content = bytes
    for (const coding of encoding.split(',').reverse()) content = decode(content, coding.trim(), maxBytes)
    return { bytes: content }
  } catch (cause) {
    return { bytes, fault: cause instanceof Error ? cause.message : String(cause) }
  }
}

function decode(bytes: Uint8Array, coding: string, maxOutputLength: number): Uint8Array {
  // A body that was cut gives what it has.
  const { Z_SYNC_FLUSH, BROTLI_OPERATION_FLUSH } = zlib.constants
  if (coding === 'gzip' || coding === 'x-gzip' || coding === 'deflate')
    return zlib.unzipSync(bytes, { finishFlush: Z_SYNC_FLUSH, maxOutputLength })
  if (coding === 'br')
    return zlib.brotliDecompressSync(bytes, { finishFlush: BROTLI_OPERATION_FLUSH, maxOutputLength })
  if (coding === 'zstd' && 'zstdDecompressSync' in zlib)
    return zlib.zstdDecompressSync(bytes, { maxOutputLength })
  if (coding === 'identity') return bytes
  throw new Error(`the coding "${coding}" is not known here`)
}

/** As text, for filters and comparing: what is no UTF-8 has replacement characters. */
export function textOfContent({ bytes }: Content): string {
  return new TextDecoder().decode(bytes)
}
