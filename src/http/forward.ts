// Forwards heads: removes hop-by-hop lines, adds X-Forwarded-* and Forwarded, and leaves every other byte.

import { copyBytes } from '../bytes.ts'
import type { ResponseHead } from './answer-head.ts'
import { ascii, SLASH } from './characters.ts'
import * as Field from './field-names.ts'
import type { RequestHead } from './head.ts'

/** The visitor of a request, and the names that the app gets. One object per visitor connection. */
export interface Hop {
  /** Address of the visitor's connection, without port. */
  readonly address: string
  readonly proto: 'http' | 'https'
  /** Whether forwarding headers of the request are trusted. */
  readonly trusted: boolean
  /** The Host for the origin; `''` preserves the visitor's. */
  readonly hostHeader: string
  /** The bytes that `forwardRequestHead` keeps between requests of a connection. */
  tail?: { readonly hostWithPort: string; readonly bytes: Uint8Array }
  /** The network of the address, which is kept between requests of a connection. */
  network?: string
}

/** The maximum size of the lines that we add: Host and the forwarding lines, with hosts of at most 300 bytes. */
const MAX_ADDED_BYTES = 2048

/** Returns the maximum size of a forwarded head, from its original size. */
export function maxForwardedBytes(headBytes: number): number {
  return headBytes + MAX_ADDED_BYTES
}

const HTTP_1 = ascii('HTTP/1.1')
const HOST_NAME = ascii('Host: ')
const CONNECTION_UPGRADE = ascii('Connection: Upgrade\r\n')
const CONNECTION_TE = ascii('Connection: TE\r\n')
const CONNECTION_CLOSE = ascii('Connection: close\r\n')
const CONNECTION_KEEP_ALIVE = ascii('Connection: keep-alive\r\n')
const CRLF = ascii('\r\n')
const COMMA_SPACE = ascii(', ')
const X_FORWARDED_FOR_NAME = ascii('X-Forwarded-For: ')
const FORWARDED_NAME = ascii('Forwarded: ')

/** Writes the head for the origin to `into` from `at` on. Returns the end. `into` needs room for `maxForwardedBytes`. */
export function forwardRequestHead(head: RequestHead, hop: Hop, into: Uint8Array, at: number): number {
  const { bytes, fields } = head
  const isUpgrade = head.upgrade !== ''
  let to = at
  let from = head.start
  if (head.pathStart !== head.targetStart) {
    to = copy(bytes, from, head.targetStart, into, to)
    // A target in absolute form may have no path: for OPTIONS it then means "*", for all others "/".
    if (head.pathStart === head.targetEnd) into[to++] = head.method === 'OPTIONS' ? 0x2a : SLASH
    else if (bytes[head.pathStart] !== SLASH) into[to++] = SLASH
    from = head.pathStart
  }

  const isTraced = head.requestId !== ''
  let keepsTe = false
  let given = 0
  const { nominatedCount, count } = fields
  for (let line = 0; line < count; line++) {
    const kind = fields.kind(line)
    if (kind === Field.OTHER && nominatedCount === 0 && !isTraced) continue
    let isKept = true
    let isReplaced = false
    if (nominatedCount > 0 && fields.isNominated(line)) isKept = false
    else
      switch (kind) {
        case Field.OTHER:
          isKept = !isTraced || !(fields.isNamed(line, 'x-request-id') || fields.isNamed(line, 'traceparent'))
          break
        case Field.CONNECTION:
        case Field.HOP:
          isKept = false
          break
        case Field.UPGRADE:
          isKept = isUpgrade
          break
        case Field.TE:
          // We forward trailers, so a TE header that asks for nothing else is also forwarded.
          isKept = fields.nominatesTe && fields.isValue(line, 'trailers')
          keepsTe ||= isKept
          break
        case Field.HOST:
          isReplaced = hop.hostHeader !== ''
          break
        case Field.FORWARDED:
        case Field.X_FORWARDED_FOR:
          // Written again at the end, as one line with our values after the others.
          isKept = false
          if (hop.trusted) given |= 1 << kind
          break
        case Field.X_FORWARDED_HOST:
        case Field.X_FORWARDED_PROTO:
        case Field.X_FORWARDED_OTHER:
        case Field.CLIENT_ADDRESS:
          isKept = hop.trusted
          if (isKept) given |= 1 << kind
          break
      }
    if (isKept && !isReplaced) continue
    to = copy(bytes, from, fields.lineStart(line), into, to)
    from = fields.lineEnd(line)
    if (!isReplaced) continue
    to = copy(HOST_NAME, 0, HOST_NAME.length, into, to)
    to = write(hop.hostHeader, into, to)
    to = copy(CRLF, 0, 2, into, to)
  }
  to = copy(bytes, from, head.end - 2, into, to)
  if (isTraced)
    to = write(`X-Request-Id: ${head.requestId}\r\ntraceparent: ${head.traceparent}\r\n`, into, to)
  if (isUpgrade) to = copy(CONNECTION_UPGRADE, 0, CONNECTION_UPGRADE.length, into, to)
  if (keepsTe) to = copy(CONNECTION_TE, 0, CONNECTION_TE.length, into, to)
  to = given === 0 ? writeTail(head, hop, into, to) : writeGivenTail(head, hop, given, into, to)
  return fitting(to, into)
}

/** The facts in the head of a response about the visitor's connection. */
export interface AnswerStyle {
  /** Whether the connection ends after this response. */
  readonly close: boolean
  /** Whether the connection of a visitor with HTTP/1.0 stays open. */
  readonly keepAlive10: boolean
  /** Whether only the payload of chunks is passed on. Default: the chunks. */
  readonly dropsChunks?: boolean
}

/** Writes the head of a response for the visitor. The version becomes HTTP/1.1. */
export function forwardResponseHead(
  head: ResponseHead,
  options: AnswerStyle,
  into: Uint8Array,
  at: number,
): number {
  const { bytes, fields, status } = head
  const isInterim = status < 200
  // A 426 must name the protocol to upgrade to. Any other response would offer protocols that we do not forward.
  const keepsUpgrade = head.upgrade !== '' || (status === 426 && fields.upgradeLine >= 0)
  // RFC 9110 section 8.6, RFC 9112 section 6.1: neither header is allowed here; a visitor might wait for a body.
  const dropsLength = isInterim || status === 204 || options.dropsChunks === true
  let to = copy(HTTP_1, 0, HTTP_1.length, into, at)
  let from = head.start + HTTP_1.length
  if (bytes[head.start + 12] !== 0x20) {
    // Visitors may require the space before a reason phrase even if that is empty.
    to = copy(bytes, from, head.start + 12, into, to)
    into[to++] = 0x20
    from = head.start + 12
  }
  const { nominatedCount, count } = fields
  for (let line = 0; line < count; line++) {
    const kind = fields.kind(line)
    if (kind === Field.OTHER && nominatedCount === 0) continue
    let isKept = true
    if (nominatedCount > 0 && fields.isNominated(line)) isKept = false
    else if (kind === Field.CONNECTION || kind === Field.HOP || kind === Field.TE) isKept = false
    else if (kind === Field.UPGRADE) isKept = keepsUpgrade
    else if (kind === Field.CONTENT_LENGTH || kind === Field.TRANSFER_ENCODING) isKept = !dropsLength
    if (isKept) continue
    to = copy(bytes, from, fields.lineStart(line), into, to)
    from = fields.lineEnd(line)
  }
  to = copy(bytes, from, head.end - 2, into, to)
  if (keepsUpgrade) to = copy(CONNECTION_UPGRADE, 0, CONNECTION_UPGRADE.length, into, to)
  if (!isInterim) {
    if (options.close) to = copy(CONNECTION_CLOSE, 0, CONNECTION_CLOSE.length, into, to)
    else if (options.keepAlive10) to = copy(CONNECTION_KEEP_ALIVE, 0, CONNECTION_KEEP_ALIVE.length, into, to)
  }
  return fitting(copy(CRLF, 0, 2, into, to), into)
}

/**
 * Writes the forwarding lines and the blank line, if the head had none of them. The bytes are the same for a whole connection.
 */
function writeTail(head: RequestHead, hop: Hop, into: Uint8Array, at: number): number {
  let { tail } = hop
  if (tail === undefined || tail.hostWithPort !== head.hostWithPort) {
    const { hostWithPort } = head
    const text =
      `X-Forwarded-For: ${plainAddress(hop.address)}\r\nX-Forwarded-Host: ${hostWithPort}\r\n` +
      `X-Forwarded-Proto: ${hop.proto}\r\nForwarded: ${forwardedElement(head, hop)}\r\n\r\n`
    tail = { hostWithPort, bytes: ascii(text) }
    hop.tail = tail
  }
  return copy(tail.bytes, 0, tail.bytes.length, into, at)
}

/** Writes the forwarding lines after those of a trusted proxy in front: extends its list, and keeps its host and scheme. */
function writeGivenTail(head: RequestHead, hop: Hop, kinds: number, into: Uint8Array, at: number): number {
  const isGiven = (kind: number): boolean => (kinds & (1 << kind)) !== 0
  let to = copy(X_FORWARDED_FOR_NAME, 0, X_FORWARDED_FOR_NAME.length, into, at)
  to = writeValues(head, Field.X_FORWARDED_FOR, into, to)
  to = write(`${plainAddress(hop.address)}\r\n`, into, to)
  if (!isGiven(Field.X_FORWARDED_HOST)) to = write(`X-Forwarded-Host: ${head.hostWithPort}\r\n`, into, to)
  if (!isGiven(Field.X_FORWARDED_PROTO)) to = write(`X-Forwarded-Proto: ${hop.proto}\r\n`, into, to)
  to = copy(FORWARDED_NAME, 0, FORWARDED_NAME.length, into, to)
  to = writeValues(head, Field.FORWARDED, into, to)
  // A proxy that sends only the X- form determines both; otherwise an app that reads Forwarded would see another scheme.
  const isOnlyX = isGiven(Field.X_FORWARDED_PROTO) && !isGiven(Field.FORWARDED)
  const given = isOnlyX ? head.header('x-forwarded-proto') : undefined
  const proto = given === 'http' || given === 'https' ? given : hop.proto
  return write(`${forwardedElement(head, hop, proto)}\r\n\r\n`, into, to)
}

/** Writes the values of all lines of a kind, each with a comma after it. */
function writeValues(head: RequestHead, kind: number, into: Uint8Array, at: number): number {
  const { fields } = head
  let to = at
  for (let line = 0; line < fields.count; line++) {
    if (fields.kind(line) !== kind || fields.valueStart(line) === fields.valueEnd(line)) continue
    if (fields.nominatedCount > 0 && fields.isNominated(line)) continue
    to = copy(head.bytes, fields.valueStart(line), fields.valueEnd(line), into, to)
    to = copy(COMMA_SPACE, 0, 2, into, to)
  }
  return to
}

/** Returns an element of RFC 7239. Values with a colon or a bracket get quotes; a valid Host needs no escapes. */
function forwardedElement(head: RequestHead, hop: Hop, proto: Hop['proto'] = hop.proto): string {
  const address = plainAddress(hop.address)
  const node = address === '' ? 'unknown' : address.includes(':') ? `"[${address}]"` : address
  const { hostWithPort } = head
  const host = hostWithPort.includes(':') ? `"${hostWithPort}"` : hostWithPort
  return `for=${node};host=${host};proto=${proto}`
}

/**
 * Returns the address for headers: IPv4 that arrived on an IPv6 socket as IPv4, and without a zone, which means
 * nothing to others.
 */
function plainAddress(address: string): string {
  if (address.startsWith('::ffff:') && address.includes('.')) return address.slice(7)
  const zone = address.indexOf('%')
  return zone < 0 ? address : address.slice(0, zone)
}

/** The number of bytes up to which a loop is faster than the call. */
const LOOP_BYTES = 32

function copy(from: Uint8Array, start: number, end: number, into: Uint8Array, at: number): number {
  const length = end - start
  if (length > LOOP_BYTES) copyBytes(from, start, end, into, at)
  else for (let index = 0; index < length; index++) into[at + index] = from[start + index]!
  return at + length
}

function write(text: string, into: Uint8Array, at: number): number {
  for (let index = 0; index < text.length; index++) into[at + index] = text.charCodeAt(index)
  return at + text.length
}

/** Throws if the head did not fit. Writes past the end of a typed array are ignored, and a truncated head must never be sent. */
function fitting(end: number, into: Uint8Array): number {
  if (end > into.length) throw new RangeError('a forwarded head needs the room of maxForwardedBytes')
  return end
}
