// Writes parsed HTTP/1.1 heads and trailers as HTTP/2 field blocks.

import { ascii, SLASH } from '../http/characters.ts'
import * as Field from '../http/field-names.ts'
import { Fields } from '../http/fields.ts'
import type { RequestHead, ResponseHead } from '../http/head.ts'
import { type HpackEncoder, maxBlockBytes } from './hpack-encoder.ts'
import { AUTHORITY, METHOD, PATH, SCHEME } from './static-table.ts'

/** Takes the fields of a response or of trailers. */
export interface FieldEncoder {
  begin(into: Uint8Array, at: number): number
  status(into: Uint8Array, at: number, status: number): number
  field(
    into: Uint8Array,
    at: number,
    nameBytes: Uint8Array,
    nameStart: number,
    nameEnd: number,
    valueBytes: Uint8Array,
    valueStart: number,
    valueEnd: number,
  ): number
}

const MAX_PSEUDO_FIELDS = 5
const MAX_PSEUDO_BYTES = 128

export function maxHeadBlockBytes(head: RequestHead | ResponseHead): number {
  return maxBlockBytes(head.end - head.start + MAX_PSEUDO_BYTES, head.fields.count + MAX_PSEUDO_FIELDS)
}

/**
 * Encodes a response, also an interim one, to `into` from `at` on, which has room for `maxHeadBlockBytes`. Returns the end of the
 * block. Lines about the connection to the origin are left out. A 101 becomes the 200 of an extended CONNECT (RFC 8441).
 */
export function encodeResponseHead(
  encoder: FieldEncoder,
  head: ResponseHead,
  into: Uint8Array,
  at: number,
): number {
  const { bytes, fields, status } = head
  const isUpgrade = status === 101
  // As in HTTP/1.1, neither may have a length (RFC 9110 section 8.6).
  const dropsLength = status < 200 || status === 204
  let to = encoder.status(into, encoder.begin(into, at), isUpgrade ? 200 : status)
  for (let line = 0; line < fields.count; line++) {
    const kind = fields.kind(line)
    if (isOfConnection(kind) || kind === Field.TE) continue
    if (kind === Field.CONTENT_LENGTH && dropsLength) continue
    if (fields.nominatedCount > 0 && fields.isNominated(line)) continue
    if (isUpgrade && fields.isNamed(line, 'sec-websocket-accept')) continue
    to = encodeLine(encoder, bytes, fields, line, into, to)
  }
  return to
}

/** The facts that a request's block depends on, in addition to the lines of its head. */
export interface RequestTerms {
  readonly scheme: 'http' | 'https'
  /** Whether the peer allows extended CONNECT, so that an upgrade to `websocket` becomes one. */
  readonly upgrades: boolean
}

const SCHEMES = { http: ascii('http'), https: ascii('https') }
const CONNECT = ascii('CONNECT')
const PROTOCOL = ascii(':protocol')
const WEBSOCKET = ascii('websocket')
const ROOT = ascii('/')
const ASTERISK = ascii('*')

/** Encodes a request, as `encodeResponseHead`. Host becomes `:authority`. */
export function encodeRequestHead(
  encoder: HpackEncoder,
  head: RequestHead,
  terms: RequestTerms,
  into: Uint8Array,
  at: number,
): number {
  const { bytes, fields } = head
  const isUpgrade = terms.upgrades && head.upgrade === 'websocket'
  const method = isUpgrade ? CONNECT : ascii(head.method)
  const scheme = SCHEMES[terms.scheme]
  let to = encoder.known(into, encoder.begin(into, at), METHOD, method, 0, method.length)
  if (isUpgrade) to = encoder.field(into, to, PROTOCOL, 0, PROTOCOL.length, WEBSOCKET, 0, WEBSOCKET.length)
  to = encoder.known(into, to, SCHEME, scheme, 0, scheme.length)
  const { hostLine } = fields
  to = encoder.known(into, to, AUTHORITY, bytes, fields.valueStart(hostLine), fields.valueEnd(hostLine))
  to = encodePath(encoder, head, into, to)
  for (let line = 0; line < fields.count; line++) {
    const kind = fields.kind(line)
    if (isOfConnection(kind) || kind === Field.HOST) continue
    if (kind === Field.TE && !fields.isValue(line, 'trailers')) continue
    if (fields.nominatedCount > 0 && fields.isNominated(line)) continue
    if (isUpgrade && fields.isNamed(line, 'sec-websocket-key')) continue
    to = encodeLine(encoder, bytes, fields, line, into, to)
  }
  return to
}

function encodePath(encoder: HpackEncoder, head: RequestHead, into: Uint8Array, at: number): number {
  const { bytes, pathStart, targetEnd } = head
  // The part after the authority of an absolute target may be empty, or begin with the query.
  if (pathStart === targetEnd) {
    const path = head.method === 'OPTIONS' ? ASTERISK : ROOT
    return encoder.known(into, at, PATH, path, 0, 1)
  }
  if (pathStart === head.targetStart || bytes[pathStart] === SLASH)
    return encoder.known(into, at, PATH, bytes, pathStart, targetEnd)
  const path = new Uint8Array(targetEnd - pathStart + 1)
  path[0] = SLASH
  path.set(bytes.subarray(pathStart, targetEnd), 1)
  return encoder.known(into, at, PATH, path, 0, path.length)
}

/** The lines of the trailers that are being encoded. */
const trailers = new Fields()

/** Returns the maximum size of the block of a trailer section. No line is shorter than three bytes. */
export function maxTrailerBlockBytes(length: number): number {
  return maxBlockBytes(length, Math.ceil(length / 3))
}

/**
 * Encodes the trailer section of a chunked body, which `BodyFramer` has checked: its lines and the blank line in
 * bytes[start, end). Returns the end of the block; `at` if there are no trailers.
 */
export function encodeTrailers(
  encoder: FieldEncoder,
  bytes: Uint8Array,
  start: number,
  end: number,
  into: Uint8Array,
  at: number,
): number {
  trailers.begin(bytes, start)
  if (trailers.scan(bytes, start, end, Number.POSITIVE_INFINITY) !== end)
    throw new RangeError('a trailer section that no BodyFramer judged')
  if (trailers.count === 0) return at
  let to = encoder.begin(into, at)
  for (let line = 0; line < trailers.count; line++) to = encodeLine(encoder, bytes, trailers, line, into, to)
  return to
}

function encodeLine(
  encoder: FieldEncoder,
  bytes: Uint8Array,
  fields: Fields,
  line: number,
  into: Uint8Array,
  at: number,
): number {
  const nameStart = fields.lineStart(line)
  const valueEnd = fields.valueEnd(line)
  return encoder.field(
    into,
    at,
    bytes,
    nameStart,
    fields.nameEnd(line),
    bytes,
    fields.valueStart(line),
    valueEnd,
  )
}

/** Whether a field does not exist in HTTP/2 (RFC 9113 section 8.2.2), or concerns one hop. */
function isOfConnection(kind: number): boolean {
  return (
    kind === Field.CONNECTION ||
    kind === Field.HOP ||
    kind === Field.UPGRADE ||
    kind === Field.TRANSFER_ENCODING
  )
}
