// Parses heads of responses as strictly as those of requests, because their sender is not trusted. A tolerant reader gives a head
// that is not strict a second chance: `loose-head.ts` rewrites it as strict text, which the same parser reads.

import { CR, isForbiddenInValue, isLikeStatusLine, isOurVersion, LF, latin1, SP } from './characters.ts'
import { Fields } from './fields.ts'
import type { BodyKind, HeadLimits } from './head.ts'
import { LooseHead } from './loose-head.ts'

const EMPTY = new Uint8Array(0)

/** The head of a response. One object serves every response of a stream. */
export class ResponseHead {
  /** The array with the head in [start, end); `end` is just after the blank line. */
  bytes: Uint8Array = EMPTY
  start = 0
  end = 0
  minorVersion: 0 | 1 = 1
  /** The status. 0 until the status line was parsed. */
  status = 0
  /** The start of the reason phrase. Empty if there is none. */
  reasonStart = 0
  reasonEnd = 0
  body: BodyKind = 'none'
  contentLength = 0
  /** Whether the origin allows another request on the connection. */
  keepAlive = true
  /** The protocol of a 101, in lower case. Empty for other statuses. */
  upgrade = ''
  /** Whether `bytes` are the strict text that stands for the app's head, rather than the app's own bytes. */
  isAmended = false
  /** The code of a refused head. */
  readonly refusal = 'ORIGIN_INVALID'
  /** The fault in words for the app's owner, such as "line 3 of its head has no colon". A tolerant reader sets it. */
  fault = ''
  /** The header lines after the first line, for forwarding. */
  readonly fields: Fields = new Fields()
  readonly isTolerant: boolean
  /** The head so far, if it is not strict and not complete. */
  loose: LooseHead | undefined

  /** Makes a head. `isTolerant`: it reads responses of apps rather than of servers. */
  constructor(isTolerant = false) {
    this.isTolerant = isTolerant
  }

  /** Forgets an incomplete head. */
  reset(): void {
    this.fields.isPartial = false
    this.loose = undefined
  }

  get reason(): string {
    return latin1(this.bytes, this.reasonStart, this.reasonEnd)
  }

  get headerCount(): number {
    return this.fields.count
  }

  /** Returns the first value of a header, trimmed. `name` is lower-case. */
  header(name: string): string | undefined {
    const line = this.fields.find(name)
    return line < 0 ? undefined : this.fields.value(line)
  }

  /** Returns all headers, in the order and spelling in which they were sent. */
  headerList(): [name: string, value: string][] {
    return this.fields.list()
  }
}

/** The limits of a head. `isOption`: the server's operator can raise them. */
export type AnswerLimits = Pick<HeadLimits, 'maxHeadBytes' | 'maxHeaderCount'> & {
  readonly isOption?: boolean
}

/**
 * Parses the head of a response to `requestMethod`, as `parseRequestHead` does. Its sender is not trusted: an
 * ambiguous head is refused with `ORIGIN_INVALID`. The reason phrase may be missing, with or without the space before
 * it.
 *
 * The returned index refers to `bytes`, even if `head.bytes` is another array.
 */
export function parseResponseHead(
  head: ResponseHead,
  bytes: Uint8Array,
  start: number,
  end: number,
  limits: AnswerLimits,
  requestMethod: string,
): number {
  if (head.loose === undefined) {
    const at = parseStrictly(head, bytes, start, end, limits, requestMethod)
    if (at !== -1 || !head.isTolerant) return at
    head.loose = new LooseHead()
  }
  const { loose } = head
  const { maxHeadBytes, maxHeaderCount, isOption = true } = limits
  const stop = Math.min(end, start + maxHeadBytes)
  const length = loose.take(bytes, start, stop)
  if (length === 0 && stop < start + maxHeadBytes) return 0
  head.reset()
  head.fault =
    length === 0
      ? `its head is longer than ${maxHeadBytes} bytes${isOption ? ' (max-head)' : ''}`
      : loose.fault
  if (length <= 0) return -1
  const text = loose.text()
  // The limit applies to the app's bytes. The rewritten text may be longer, because CRLF is longer than LF.
  const own = { maxHeadBytes: text.length + 1, maxHeaderCount }
  if (parseStrictly(head, text, 0, text.length, own, requestMethod) === text.length) {
    head.isAmended = true
    // RFC 9112 section 6.3: after a message with two lengths, the connection cannot be used again.
    if (loose.hasDoubtfulLength) head.keepAlive = false
    return start + length
  }
  head.reset()
  if (head.fields.refusal === 'HEAD_TOO_LARGE')
    head.fault = `its head has more than ${maxHeaderCount} lines${isOption ? ' (max-header-count)' : ''}`
  // Transfer-Encoding is the only repeated line that the rewriting leaves for the strict parser to refuse.
  else if (head.fault === '') head.fault = 'it has Transfer-Encoding twice'
  return -1
}

function parseStrictly(
  head: ResponseHead,
  bytes: Uint8Array,
  start: number,
  end: number,
  limits: AnswerLimits,
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
    head.isAmended = false
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

/** Returns the index of the first header line; 0 if more bytes are needed; -1 if refused. */
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

/** Determines body and connection of a complete response head (RFC 9112 section 6.3). Returns `false` if it is refused. */
function isAnswerFramed(head: ResponseHead, requestMethod: string): boolean {
  const { fields, status } = head
  const isOld = head.minorVersion === 0
  head.body = 'close'
  head.contentLength = 0
  if (fields.encodingLine >= 0) {
    if (isOld || fields.lengthLine >= 0) return false
    if (!fields.isChunked()) return isFault(head, 'its Transfer-Encoding is not just "chunked"')
    head.body = 'chunked'
  } else if (fields.lengthLine >= 0) {
    const length = fields.readLength(fields.lengthLine)
    if (length < 0) return isFault(head, 'its Content-Length is not a number of bytes')
    head.contentLength = length
    head.body = length > 0 ? 'length' : 'none'
  }
  if (requestMethod === 'HEAD' || status < 200 || status === 204 || status === 304) head.body = 'none'

  head.keepAlive = !isOld
  head.upgrade = ''
  if (fields.hasConnection) {
    if (!fields.readConnection(true)) return isFault(head, 'its Connection names more than 32 lines')
    head.keepAlive = !fields.closes && (!isOld || fields.keepsAlive)
  }
  if (head.body === 'close') head.keepAlive = false
  if (status === 101) {
    // RFC 9110 section 7.8: a 101 names the protocol that it switches to. A 101 without it is an attack or a mistake.
    if (isOld || !fields.upgrades || fields.upgradeLine < 0)
      return isFault(head, 'it is a 101 without "Connection: Upgrade", or without Upgrade')
    head.upgrade = fields.readUpgrade()
  }
  return true
}

function isFault(head: ResponseHead, fault: string): false {
  head.fault = fault
  return false
}

/** Asks for more bytes of an incomplete head, unless it has reached its limit. */
function wantMore(fields: Fields, start: number, stop: number, maxHeadBytes: number): 0 | -1 {
  return stop < start + maxHeadBytes ? fields.suspend(stop) : -1
}
