// Answer heads: as strict as those of requests, for the origin that wrote them is not trusted.

import { CR, isForbiddenInValue, LF, latin1, SP } from './characters.ts'
import { Fields } from './fields.ts'
import type { BodyKind, HeadLimits } from './head.ts'
import { isOurVersion } from './request-line.ts'

const EMPTY = new Uint8Array(0)

/** The head of an answer. One object serves every answer of a stream. */
export class ResponseHead {
  /** Holds the head in [start, end); `end` is just past the blank line. */
  bytes: Uint8Array = EMPTY
  start = 0
  end = 0
  minorVersion: 0 | 1 = 1
  /** 0 until the status line was parsed. */
  status = 0
  /** Where the reason lies; empty when there is none. */
  reasonStart = 0
  reasonEnd = 0
  body: BodyKind = 'none'
  contentLength = 0
  /** Whether the origin lets its connection go on after this answer. */
  keepAlive = true
  /** What a 101 switches to, lower-case, else empty. */
  upgrade = ''
  /** Why a head is refused: there is but one reason. */
  readonly refusal = 'ORIGIN_INVALID'
  /** The lines behind the first one, for forwarding. */
  readonly fields: Fields = new Fields()

  get reason(): string {
    return latin1(this.bytes, this.reasonStart, this.reasonEnd)
  }

  get headerCount(): number {
    return this.fields.count
  }

  /** First value of a header, trimmed. `name` is lower-case. */
  header(name: string): string | undefined {
    const line = this.fields.find(name)
    return line < 0 ? undefined : this.fields.value(line)
  }

  /** All headers in the order and spelling they were sent in. */
  headerList(): [name: string, value: string][] {
    return this.fields.list()
  }
}

/**
 * Parses the head of an answer to `requestMethod`, on the terms of `parseRequestHead`. Its sender is not trusted: what
 * is ambiguous is refused with `ORIGIN_INVALID`. A missing reason, with or without the space, is fine.
 */
export function parseResponseHead(
  head: ResponseHead,
  bytes: Uint8Array,
  start: number,
  end: number,
  limits: Pick<HeadLimits, 'maxHeadBytes' | 'maxHeaderCount'>,
  requestMethod: string,
): number {
  const { fields } = head
  const stop = Math.min(end, start + limits.maxHeadBytes)
  head.bytes = bytes
  if (fields.isPartial) {
    const moved = start - fields.start
    head.reasonStart += moved
    head.reasonEnd += moved
    if (!fields.resume(bytes, start, stop) && stop < start + limits.maxHeadBytes) return fields.suspend(stop)
  } else {
    fields.begin(bytes, start)
    head.status = 0
  }
  let at = fields.nextLine
  if (head.status === 0) {
    at = parseStatusLine(head, at, stop)
    if (at < 0) return -1
    if (at === 0) return wantMore(fields, start, stop, limits.maxHeadBytes)
    fields.nextLine = at
  }
  at = fields.scan(bytes, at, stop, limits.maxHeaderCount)
  if (at < 0) return -1
  if (at === 0) return wantMore(fields, start, stop, limits.maxHeadBytes)
  head.start = start
  head.end = at
  return isAnswerFramed(head, requestMethod) ? at : -1
}

/** Index of the first header line, 0 for more bytes, -1 for refused. */
function parseStatusLine(head: ResponseHead, start: number, end: number): number {
  const { bytes } = head
  // "HTTP/1.1 200" is 12 bytes; at least CR LF follows.
  if (end - start < 13) return isLikeStatusLine(bytes, start, end) ? 0 : -1
  if (!isOurVersion(bytes, start) || bytes[start + 8] !== SP) return -1
  const hundreds = bytes[start + 9]! - 0x30
  const tens = bytes[start + 10]! - 0x30
  const ones = bytes[start + 11]! - 0x30
  if (hundreds < 1 || hundreds > 9 || tens < 0 || tens > 9 || ones < 0 || ones > 9) return -1
  let at = start + 12
  if (bytes[at] === SP) at++
  else if (bytes[at] !== CR) return -1
  head.minorVersion = bytes[start + 7] === 0x31 ? 1 : 0
  head.reasonStart = at
  while (at < end && !isForbiddenInValue(bytes[at]!)) at++
  head.reasonEnd = at
  if (at === end) return 0
  if (bytes[at] !== CR) return -1
  if (at + 1 === end) return 0
  if (bytes[at + 1] !== LF) return -1
  head.status = hundreds * 100 + tens * 10 + ones
  return at + 2
}

/** Whether bytes[start, end), fewer than 13 of them, may go on to be a status line. */
function isLikeStatusLine(bytes: Uint8Array, start: number, end: number): boolean {
  const likely = 'HTTP/1.1 200'
  for (let at = start; at < end; at++) {
    const place = at - start
    const byte = bytes[at]!
    if (place === 7) {
      if (byte !== 0x30 && byte !== 0x31) return false
    } else if (place >= 9) {
      if (byte < (place === 9 ? 0x31 : 0x30) || byte > 0x39) return false
    } else if (byte !== likely.charCodeAt(place)) return false
  }
  return true
}

/** Decides body and connection of a complete answer head (RFC 9112 section 6.3). False: refused. */
function isAnswerFramed(head: ResponseHead, requestMethod: string): boolean {
  const { fields, status } = head
  const isOld = head.minorVersion === 0
  head.body = 'close'
  head.contentLength = 0
  if (fields.encodingLine >= 0) {
    if (isOld || fields.lengthLine >= 0 || !fields.isChunked()) return false
    head.body = 'chunked'
  } else if (fields.lengthLine >= 0) {
    const length = fields.readLength(fields.lengthLine)
    if (length < 0) return false
    head.contentLength = length
    head.body = length > 0 ? 'length' : 'none'
  }
  if (requestMethod === 'HEAD' || status < 200 || status === 204 || status === 304) head.body = 'none'

  head.keepAlive = !isOld
  head.upgrade = ''
  if (fields.hasConnection) {
    if (!fields.readConnection(true)) return false
    head.keepAlive = !fields.closes && (!isOld || fields.keepsAlive)
  }
  if (head.body === 'close') head.keepAlive = false
  if (status === 101) {
    // RFC 9110 section 7.8: a 101 says what it switches to. One that does not is a trick or a mistake.
    if (isOld || !fields.upgrades || fields.upgradeLine < 0) return false
    head.upgrade = fields.readUpgrade()
  }
  return true
}

/** The bytes ended inside the head: more of them, unless it already has all it may have. */
function wantMore(fields: Fields, start: number, stop: number, maxHeadBytes: number): 0 | -1 {
  return stop < start + maxHeadBytes ? fields.suspend(stop) : -1
}
