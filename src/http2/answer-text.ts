// Writes HTTP/2 responses as HTTP/1.1 text, which `parseResponseHead` checks, and trailers of requests and responses.

import { BodyFramer } from '../http/body.ts'
import * as Field from '../http/field-names.ts'
import type { FieldList } from './field-list.ts'
import {
  copyLine,
  copyWord,
  endHead,
  endLine,
  isConnectionSpecific,
  isFieldName,
  isLengthOfBody,
  isNamed,
  kindOfField,
  refuse,
  write,
} from './message-fields.ts'

/** The facts that the text of a response depends on, in addition to its fields. */
export interface AnswerTerms {
  /** Whether no body follows. */
  readonly isLast: boolean
  readonly method: string
  /** The Sec-WebSocket-Accept of an extended CONNECT that the other side of the upgrade expects. Empty otherwise. */
  readonly webSocketAccept: string
}

/**
 * Writes a response, also an interim one, as an HTTP/1.1 head to `into` from `at` on, which has room for
 * `maxTextBytes`. Returns the end, or -1 if it is malformed: see `list.problem`. The text expresses the framing of
 * HTTP/2: chunks if there is no length, a length of 0 if there is no body.
 */
export function writeResponseHead(list: FieldList, terms: AnswerTerms, into: Uint8Array, at: number): number {
  const { isLast, method, webSocketAccept } = terms
  const status = readStatus(list)
  if (status < 0) return -1
  if (status === 101) return refuse(list, '101, which HTTP/2 does not have')
  if (status < 200 && isLast) return refuse(list, 'an interim answer that ends the stream')
  const isUpgrade = webSocketAccept !== '' && status >= 200 && status < 300
  const isWithoutBody = status < 200 || status === 204 || status === 304 || method === 'HEAD'
  let to = write('HTTP/1.1 ', into, at)
  to = isUpgrade ? write('101 Switching Protocols', into, to) : copyWord(list, 0, into, to)
  if (to < 0) return -1
  if (!isUpgrade) into[to++] = 0x20
  to = endLine(into, to)
  let hasLength = false
  for (let field = 1; field < list.count; field++) {
    if (!isFieldName(list, field)) return refuse(list, 'a field name that is none, or out of place')
    const kind = kindOfField(list, field)
    if (isConnectionSpecific(list, field, kind) || kind === Field.TE)
      return refuse(list, 'a field of the connection')
    if (kind === Field.CONTENT_LENGTH) {
      if (isUpgrade) continue
      hasLength = true
      if (isLast && !isWithoutBody && isLengthOfBody(list, field))
        return refuse(list, 'content-length without a body')
    }
    to = copyLine(list, field, into, to)
    if (to < 0) return -1
  }
  if (isUpgrade) {
    to = write('Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ', into, to)
    to = endLine(into, write(webSocketAccept, into, to))
  } else if (!hasLength && !isWithoutBody)
    to = write(isLast ? 'Content-Length: 0\r\n' : 'Transfer-Encoding: chunked\r\n', into, to)
  return endHead(into, to)
}

/** Returns the status, which is the only pseudo-header field of a response and comes first; -1 if it is malformed. */
function readStatus(list: FieldList): number {
  if (list.count === 0 || !isNamed(list, 0, ':status')) return refuse(list, 'no :status')
  const start = list.valueStart(0)
  if (list.valueEnd(0) - start !== 3) return refuse(list, 'a :status that is none')
  let status = 0
  for (let at = start; at < start + 3; at++) {
    const digit = list.bytes[at]! - 0x30
    if (digit < 0 || digit > 9) return refuse(list, 'a :status that is none')
    status = status * 10 + digit
  }
  return status >= 100 ? status : refuse(list, 'a :status that is none')
}

/** Checks trailers as those of HTTP/1.1. */
const framer = new BodyFramer()

/**
 * Writes trailers of a request or response as the end of a chunked body: the last chunk, the lines, the blank line.
 * Returns the end, or -1 if they are malformed: see `list.problem`. `isApps`: the reader of the text removes
 * forbidden trailers of apps; those of others are malformed.
 */
export function writeTrailers(list: FieldList, isApps: boolean, into: Uint8Array, at: number): number {
  let to = write('0\r\n', into, at)
  for (let field = 0; field < list.count; field++) {
    if (!isFieldName(list, field)) return refuse(list, 'a trailer name that is none')
    to = copyLine(list, field, into, to)
    if (to < 0) return -1
  }
  to = endHead(into, to)
  if (isApps) return to
  framer.begin('chunked', 0)
  if (framer.feed(into, at, to) !== to || !framer.complete)
    return refuse(list, 'trailers that may not be there, or too many')
  return to
}
