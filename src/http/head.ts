// Parses request heads: strict HTTP/1.1 framing (RFC 9112) over bytes, in one object that is reused.
//
// A doubtful head is refused: requests are smuggled in text that two parsers read in two ways.

import { copyOf } from '../bytes.ts'
import type { ErrorCode } from '../errors.ts'
import {
  CR,
  DEL,
  HASH,
  isLikeVersion,
  isOurVersion,
  LF,
  latin1,
  methodOf,
  QUESTION,
  SLASH,
  SP,
  TOKEN,
} from './characters.ts'
import { Fields } from './fields.ts'
import { endOfHostName } from './host.ts'

// Exported here because most callers need both kinds of heads.
export { parseResponseHead, ResponseHead } from './answer-head.ts'

/** The limits of one head. Its bytes include leading empty lines, the first line and the blank line. */
export interface HeadLimits {
  readonly maxHeadBytes: number
  readonly maxHeaderCount: number
  readonly maxTargetBytes: number
}

/** Where a body ends: there is none, after a number of bytes, after its chunks, or (responses only) with the connection. */
export type BodyKind = 'none' | 'length' | 'chunked' | 'close'

/** The maximum length of a method; the longest registered one (UPDATEREDIRECTREF) has 17. */
const MAX_METHOD_BYTES = 32

/** The maximum number of bytes around a target: a method, two spaces, a version and CRLF. */
const MAX_AROUND_TARGET = MAX_METHOD_BYTES + 12

/** The maximum number of empty lines, which old clients send between requests. RFC 9112 section 2.2 asks for at least one. */
const MAX_LEADING_CRLF = 4

const EMPTY = new Uint8Array(0)

/** The head of a request. One object serves every request of a connection. */
export class RequestHead {
  /** The array with the head in [start, end); `end` is just after the blank line. */
  bytes: Uint8Array = EMPTY
  start = 0
  end = 0
  method = ''
  /** The start of the target as sent. */
  targetStart = 0
  targetEnd = 0
  /** The start of the path in an absolute-form target; for all other forms, equal to `targetStart`. */
  pathStart = 0
  minorVersion: 0 | 1 = 1
  /** The host in lower case, without port or trailing dot. */
  host = ''
  body: 'none' | 'length' | 'chunked' = 'none'
  contentLength = 0
  /** Whether the visitor wants to keep the connection. */
  keepAlive = true
  /** The protocols to which the visitor offers to switch and that may be forwarded, in lower case. Empty for none. */
  upgrade = ''
  expectsContinue = false
  refusal: ErrorCode = 'BAD_REQUEST'
  /** The header lines after the first line, for forwarding. */
  readonly fields: Fields = new Fields()
  /** The id from `tracing.ts`, forwarded in place of the visitor's. Empty for none. */
  requestId = ''
  traceparent = ''

  #hostWithPort = ''

  /** The target as sent, in any form. */
  get target(): string {
    return latin1(this.bytes, this.targetStart, this.targetEnd)
  }

  /** The path and query, also from an absolute-form target. */
  get path(): string {
    const path = latin1(this.bytes, this.pathStart, this.targetEnd)
    return path === '' || path.startsWith('?') ? `/${path}` : path
  }

  /** The Host as sent, including case and port. */
  get hostWithPort(): string {
    return this.#hostWithPort
  }

  get headerCount(): number {
    return this.fields.count
  }

  /** Returns the first value of a header, trimmed. `name` is lower-case. */
  header(name: string): string | undefined {
    const line = this.fields.find(name)
    return line < 0 ? undefined : this.fields.value(line)
  }

  /** Returns all values of a header, trimmed. `name` is lower-case. */
  headers(name: string): string[] {
    const values: string[] = []
    for (let line = 0; line < this.fields.count; line++)
      if (this.fields.isNamed(line, name)) values.push(this.fields.value(line))
    return values
  }

  /** Returns all headers, in the order and spelling in which they were sent. */
  headerList(): [name: string, value: string][] {
    return this.fields.list()
  }

  /** Forgets an incomplete head, because the next bytes belong to another connection. */
  reset(): void {
    this.fields.isPartial = false
    this.bytes = EMPTY
  }

  /** Returns a copy with bytes of its own, which stays valid after the read. */
  clone(): RequestHead {
    const copy = new RequestHead()
    copy.bytes = copyOf(this.bytes, this.start, this.end)
    copy.end = copy.bytes.length
    copy.method = this.method
    copy.targetStart = this.targetStart - this.start
    copy.targetEnd = this.targetEnd - this.start
    copy.pathStart = this.pathStart - this.start
    copy.minorVersion = this.minorVersion
    copy.host = this.host
    copy.body = this.body
    copy.contentLength = this.contentLength
    copy.keepAlive = this.keepAlive
    copy.upgrade = this.upgrade
    copy.expectsContinue = this.expectsContinue
    copy.fields.copyFrom(this.fields, copy.bytes, -this.start)
    copy.#hostWithPort = this.#hostWithPort
    return copy
  }

  /**
   * Takes the Host line. Returns whether it is valid. A connection nearly always repeats its Host, so the strings of
   * the last one are reused for the same bytes.
   */
  takeHost(start: number, end: number): boolean {
    const last = this.#hostWithPort
    if (end - start === last.length && last !== '') {
      let at = 0
      while (at < last.length && last.charCodeAt(at) === this.bytes[start + at]) at++
      if (at === last.length) return true
    }
    const nameEnd = endOfHostName(this.bytes, start, end)
    if (nameEnd < 0) return false
    this.#hostWithPort = latin1(this.bytes, start, end)
    const host = this.#hostWithPort.slice(0, nameEnd - start).toLowerCase()
    this.host = host.endsWith('.') ? host.slice(0, -1) : host
    return true
  }
}

/**
 * Parses the head at `start`. Returns the index after it; 0 if it is incomplete; -1 if it is refused, as soon as the
 * bytes show it, with the reason in `head.refusal`. Up to four empty lines before it are skipped.
 *
 * After a 0, call again with the same bytes and more after them, in the same array or another one; `start` is their
 * position there. Complete lines are not parsed again.
 */
export function parseRequestHead(
  head: RequestHead,
  bytes: Uint8Array,
  start: number,
  end: number,
  limits: HeadLimits,
): number {
  const { fields } = head
  // Bytes beyond the limit are ignored, so that the verdict does not depend on how the bytes were divided into reads.
  const stop = Math.min(end, start + limits.maxHeadBytes)
  head.bytes = bytes
  if (fields.isPartial) {
    if (head.method !== '') moveRequestLine(head, start - fields.start)
    const canDecide = fields.resume(bytes, start, stop)
    const isLong = stop === start + limits.maxHeadBytes
    const isTargetLong =
      head.method === '' && stop - fields.nextLine > limits.maxTargetBytes + MAX_AROUND_TARGET
    if (!canDecide && !isLong && !isTargetLong) return fields.suspend(stop)
  } else {
    fields.begin(bytes, start)
    head.method = ''
  }
  let at = fields.nextLine
  if (head.method === '') {
    at = skipEmptyLines(bytes, at, stop)
    if (at >= 0) at = parseRequestLine(head, at, stop, limits.maxTargetBytes)
    if (at < 0) return refuse(head, fields.refusal)
    if (at === 0) return wantMore(head, start, stop, limits.maxHeadBytes)
    fields.nextLine = at
  }
  at = fields.scan(bytes, at, stop, limits.maxHeaderCount)
  if (at < 0) return refuse(head, fields.refusal)
  if (at === 0) return wantMore(head, start, stop, limits.maxHeadBytes)
  head.end = at
  return isFramed(head) ? at : refuse(head, 'BAD_REQUEST')
}

/**
 * Reads a whole head that has been parsed before, or was built here. Returns `false` if the bytes are not exactly one valid head.
 */
export function readWhole(
  head: RequestHead,
  bytes: Uint8Array,
  start = 0,
  end: number = bytes.length,
): boolean {
  const most = end - start
  const limits = { maxHeadBytes: most, maxHeaderCount: most, maxTargetBytes: most }
  return parseRequestHead(head, bytes, start, end, limits) === end
}

/** Adjusts the positions of a request line that has moved by `by` bytes. */
function moveRequestLine(head: RequestHead, by: number): void {
  head.start += by
  head.targetStart += by
  head.targetEnd += by
  head.pathStart += by
}

/** Returns the index of the first byte after leading empty lines; -1 if there are too many. */
function skipEmptyLines(bytes: Uint8Array, start: number, end: number): number {
  let at = start
  while (at + 1 < end && bytes[at] === CR && bytes[at + 1] === LF) at += 2
  return at - start > 2 * MAX_LEADING_CRLF ? -1 : at
}

/** Parses the request line into `head`. Returns the index of the first header line; 0 if more bytes are needed; -1 if refused. */
function parseRequestLine(head: RequestHead, start: number, end: number, maxTargetBytes: number): number {
  const { bytes, fields } = head
  fields.refusal = 'BAD_REQUEST'
  let at = start
  while (at < end && TOKEN[bytes[at]!] === 1) at++
  const methodEnd = at
  if (methodEnd - start > MAX_METHOD_BYTES) return -1
  if (at === end) return 0
  // A single CR may begin an empty line before the head.
  if (at === start && bytes[at] === CR && at + 1 === end) return 0
  if (bytes[at] !== SP || at === start) return -1

  const targetStart = ++at
  const targetStop = Math.min(end, targetStart + maxTargetBytes + 1)
  while (at < targetStop) {
    const byte = bytes[at]!
    // Bytes from 0x80 are accepted, because clients send raw UTF-8 and no parser uses these bytes as delimiters.
    if (byte <= SP || byte === DEL || byte === HASH) break
    at++
  }
  if (at - targetStart > maxTargetBytes) return fields.refuse('TARGET_TOO_LONG')
  if (at === end) return 0
  if (bytes[at] !== SP || at === targetStart) return -1
  const targetEnd = at++
  // "HTTP/1.1" CR LF
  if (end - at < 10) return isLikeVersion(bytes, at, end) ? 0 : -1
  const minor = bytes[at + 7]! - 0x30
  if (!isOurVersion(bytes, at) || bytes[at + 8] !== CR || bytes[at + 9] !== LF)
    return isLikeVersion(bytes, at, at + 10) ? fields.refuse('VERSION_UNSUPPORTED') : -1

  const method = methodOf(bytes, start, methodEnd)
  if (method === 'CONNECT') return fields.refuse('METHOD_REFUSED')
  head.start = start
  head.targetStart = targetStart
  head.targetEnd = targetEnd
  head.pathStart = targetStart
  head.minorVersion = minor === 1 ? 1 : 0
  if (bytes[targetStart] !== SLASH && !isOtherTarget(head, method)) return -1
  head.method = method
  return at + 10
}

/** Whether the target is `*` for OPTIONS, or in absolute form, whose authority is later compared with Host. */
function isOtherTarget(head: RequestHead, method: string): boolean {
  const { bytes, targetStart, targetEnd } = head
  if (bytes[targetStart] === 0x2a) return targetEnd - targetStart === 1 && method === 'OPTIONS'
  const authority = authorityStart(bytes, targetStart, targetEnd)
  if (authority < 0) return false
  let at = authority
  while (at < targetEnd && bytes[at] !== SLASH && bytes[at] !== QUESTION) at++
  head.pathStart = at
  return at > authority
}

/** Returns the index after `http://` or `https://`; -1 if the target has neither. */
function authorityStart(bytes: Uint8Array, start: number, end: number): number {
  const scheme = latin1(bytes, start, Math.min(end, start + 8)).toLowerCase()
  return scheme.startsWith('http://') ? start + 7 : scheme === 'https://' ? start + 8 : -1
}

/** Determines host, body and connection of a complete head. Returns `false` if it is refused. */
function isFramed(head: RequestHead): boolean {
  const { bytes, fields } = head
  // HTTP/1.0 allows a request without Host, but nothing would say which tunnel it is for.
  if (fields.hostLine < 0) return false
  const hostStart = fields.valueStart(fields.hostLine)
  const hostEnd = fields.valueEnd(fields.hostLine)
  if (!head.takeHost(hostStart, hostEnd)) return false
  if (head.pathStart !== head.targetStart) {
    const from = authorityStart(bytes, head.targetStart, head.targetEnd)
    const authority = latin1(bytes, from, head.pathStart).toLowerCase()
    if (authority !== head.hostWithPort.toLowerCase()) return false
  }

  const isOld = head.minorVersion === 0
  head.body = 'none'
  head.contentLength = 0
  if (fields.encodingLine >= 0) {
    if (isOld || fields.lengthLine >= 0 || !fields.isChunked()) return false
    head.body = 'chunked'
  } else if (fields.lengthLine >= 0) {
    const length = fields.readLength(fields.lengthLine)
    if (length < 0) return false
    head.contentLength = length
    if (length > 0) head.body = 'length'
  }

  head.keepAlive = !isOld
  head.upgrade = ''
  if (fields.hasConnection) {
    if (!fields.readConnection(false)) return false
    head.keepAlive = !fields.closes && (!isOld || fields.keepsAlive)
    if (fields.upgrades && !isOld) head.upgrade = forwardable(fields.readUpgrade())
  }
  head.expectsContinue = !isOld && fields.expectLine >= 0 && fields.isValue(fields.expectLine, '100-continue')
  return true
}

/** A pattern for one protocol of a list (RFC 9110 section 7.8). */
const PROTOCOL = /^[ \t]*[!#$%&'*+.^_`|~0-9a-z-]+(?:\/[!#$%&'*+.^_`|~0-9a-z-]+)?[ \t]*$/
/** A pattern for protocols that carry further requests, which this server could not frame, route or guard after a switch. */
const HIDING = /^[ \t]*(?:h2c?|h3|http|tls)(?:[-/ \t]|$)/

/**
 * Returns the list of protocols; "" if one of them is malformed or would hide requests. The request is then served
 * without an upgrade.
 */
function forwardable(list: string): string {
  if (list === 'websocket') return list
  const isPlain = (protocol: string) => PROTOCOL.test(protocol) && !HIDING.test(protocol)
  return list.split(',').every(isPlain) ? list : ''
}

function refuse(head: RequestHead, code: ErrorCode): -1 {
  head.refusal = code
  return -1
}

/** Asks for more bytes of an incomplete head, unless it has reached its limit. */
function wantMore(head: RequestHead, start: number, stop: number, maxHeadBytes: number): 0 | -1 {
  return stop < start + maxHeadBytes ? head.fields.suspend(stop) : refuse(head, 'HEAD_TOO_LARGE')
}
