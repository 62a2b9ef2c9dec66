// Decodes bodies for reading, as far as they are stored.

import * as zlib from 'node:zlib'
import type { Entry } from './entry.ts'
import { isForm, maskedForm } from './form-secrets.ts'
import { fieldsOf, headerOf, REVEALING, type Showing } from './secrets.ts'

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

/** The longest zstd frame without content. */
const EMPTY_ZSTD_BYTES = 21

/** A body's bytes, and what went wrong when its coding was to be undone. */
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
  mayBeCut = true,
): Content {
  const [head, body] =
    side === 'request' ? [entry.requestHead, entry.requestBody] : [entry.responseHead, entry.responseBody]
  const { bytes } = body
  const encoding = decoded ? codingsOf(head) : ''
  if (encoding === '' || encoding === 'identity' || bytes.length === 0) return { bytes }
  const maxBytes = Math.max(floorBytes, DECODED_FACTOR * bytes.length)
  try {
    const codings = encoding.split(',')
    if (codings.length > MAX_CODINGS) throw new Error(`it has more than ${MAX_CODINGS} codings`)
    let content = bytes
    for (const coding of codings.reverse()) content = decode(content, coding.trim(), maxBytes, mayBeCut)
    return { bytes: content }
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException
    const isTooLarge = code === 'ERR_BUFFER_TOO_LARGE'
    return { bytes, fault: isTooLarge ? `it has more than ${maxBytes} bytes then` : message }
  }
}

/** A body without its secrets. */
export interface ShownContent extends Content {
  /** Whether secrets are masked or the body is left out. Masked bodies are decoded. */
  readonly hides: boolean
}

/** Returns the body without its secrets. A body that may have secrets and cannot be decoded is empty, with a fault. */
export function shownContent(
  entry: Entry,
  side: 'request' | 'response',
  decoded: boolean,
  { secrets, reveals }: Showing,
  floorBytes?: number,
): ShownContent {
  const content = contentOf(entry, side, decoded, floorBytes)
  const head = side === 'request' ? entry.requestHead : entry.responseHead
  const type = headerOf(head, 'content-type')
  if (reveals || !isForm(type)) return { ...content, hides: false }
  // Another decoder may read more of a body that ends early.
  const { bytes, fault = faultOf(bytes, type) } = decoded
    ? content
    : contentOf(entry, side, true, floorBytes, false)
  if (fault !== undefined)
    return { bytes: new Uint8Array(0), fault: `${fault}; it may have secrets`, hides: true }
  const masked = maskedForm(bytes, type, secrets)
  const isSure = decoded || !codingsOf(head).includes('zstd')
  return masked === bytes && isSure ? { ...content, hides: false } : { bytes: masked, hides: true }
}

/** The names of secrets are not found in JSON of other characters. */
function faultOf(bytes: Uint8Array, type: string): string | undefined {
  return /json/i.test(type) && bytes.includes(0) ? 'its characters are not UTF-8' : undefined
}

/** The codings of all lines, in their order. */
function codingsOf(head: Uint8Array): string {
  return fieldsOf(head, REVEALING)
    .flatMap(({ name, value }) => (name.toLowerCase() === 'content-encoding' ? value.toLowerCase() : []))
    .join(',')
}

function decode(bytes: Uint8Array, coding: string, maxOutputLength: number, mayBeCut: boolean): Uint8Array {
  const { Z_SYNC_FLUSH, Z_FINISH, BROTLI_OPERATION_FLUSH, BROTLI_OPERATION_FINISH } = zlib.constants
  // A body that was cut gives what it has.
  const finishFlush = mayBeCut ? Z_SYNC_FLUSH : Z_FINISH
  // Some senders leave out the frame of zlib, whose first byte says 8 in its lower half.
  if (coding === 'deflate' && (bytes[0]! & 0x0f) !== 8)
    return zlib.inflateRawSync(bytes, { finishFlush, maxOutputLength })
  if (coding === 'gzip' || coding === 'x-gzip' || coding === 'deflate')
    return zlib.unzipSync(bytes, { finishFlush, maxOutputLength })
  if (coding === 'br')
    return zlib.brotliDecompressSync(bytes, {
      finishFlush: mayBeCut ? BROTLI_OPERATION_FLUSH : BROTLI_OPERATION_FINISH,
      maxOutputLength,
    })
  if (coding === 'zstd' && 'zstdDecompressSync' in zlib) {
    const content = zlib.zstdDecompressSync(bytes, { maxOutputLength })
    // Bun gives the complete blocks of a cut one and no error.
    if (content.length === 0 && bytes.length > EMPTY_ZSTD_BYTES) throw new Error('unexpected end of file')
    return content
  }
  if (coding === 'identity') return bytes
  throw new Error(`the coding "${coding}" is not known here`)
}

/** Returns the text in the charset of its Content-Type, by default UTF-8, with replacement characters for invalid bytes. */
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
