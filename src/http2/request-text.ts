// Writes requests of HTTP/2 as HTTP/1.1 text, which `parseRequestHead` checks, so that the same rules hold.
//
//   :method GET  :path /a?b  :authority a.example  accept */*   →   GET /a?b HTTP/1.1  Host: a.example  accept: */*
//
// Refuses requests that RFC 9113 section 8 calls malformed, a stream error PROTOCOL_ERROR, and what the text could not show.

import { isSameText, isSpelled, SEMICOLON, SLASH, SP, TOKEN } from '../http/characters.ts'
import * as Field from '../http/field-names.ts'
import type { FieldList } from './field-list.ts'
import {
  copyLine,
  copyValue,
  copyWord,
  endHead,
  endLine,
  isConnectionSpecific,
  isFieldName,
  isLengthOfBody,
  isNamed,
  isPseudo,
  isValue,
  kindOfField,
  refuse,
  write,
} from './message-fields.ts'

const COOKIE = 'cookie'

/** The positions of the pseudo-header fields in the list, -1 for none. Shared, because one request is written at a time. */
const pseudo = { method: -1, scheme: -1, authority: -1, path: -1, protocol: -1, end: 0 }

/**
 * Writes the request as an HTTP/1.1 head to `into` from `at` on, which has room for `maxTextBytes` and the key.
 * Returns the end, or -1 if it is malformed: see `list.problem`. Cookie crumbs become one line; a body without a
 * length becomes chunks.
 *
 * `isLast`: no body follows. `webSocketKey`: an extended CONNECT (RFC 8441) becomes an upgrade with this
 * Sec-WebSocket-Key; empty: extended CONNECT was not enabled. A plain CONNECT stays one.
 */
export function writeRequestHead(
  list: FieldList,
  isLast: boolean,
  webSocketKey: string,
  into: Uint8Array,
  at: number,
): number {
  if (!readPseudo(list)) return -1
  let to = writeRequestLine(list, webSocketKey !== '', into, at)
  if (to < 0) return -1
  const { authority } = pseudo
  const isUpgrade = pseudo.protocol >= 0
  if (authority >= 0) {
    to = copyValue(list, authority, into, write('Host: ', into, to))
    if (to < 0) return -1
    to = endLine(into, to)
  }
  let hasLength = false
  let wantsTrailers = false
  let hasCookie = false
  let hasVersion = false
  for (let field = pseudo.end; field < list.count; field++) {
    if (!isFieldName(list, field)) return refuse(list, 'a field name that is none, or out of place')
    const kind = kindOfField(list, field)
    if (kind === Field.OTHER) {
      if (isNamed(list, field, COOKIE)) {
        if (!hasCookie) to = writeCookies(list, field, into, to)
        hasCookie = true
        if (to < 0) return -1
        continue
      }
      hasVersion ||= isUpgrade && isNamed(list, field, 'sec-websocket-version')
      if (isUpgrade && isNamed(list, field, 'sec-websocket-key')) {
        // The upgrade gets a key of ours, whose reply we check. The visitor's key is checked and overwritten.
        if (copyLine(list, field, into, to) < 0) return -1
        continue
      }
    } else {
      if (isConnectionSpecific(list, field, kind)) return refuse(list, 'a field of the connection')
      if (kind === Field.HOST && authority >= 0) {
        if (!isSameValue(list, field, authority)) return refuse(list, 'host and :authority differ')
        continue
      }
      if (kind === Field.TE) {
        if (!isSpelled(list.bytes, list.valueStart(field), list.valueEnd(field), 'trailers'))
          return refuse(list, 'te other than trailers')
        wantsTrailers = true
      }
      if (kind === Field.CONTENT_LENGTH) {
        if (isUpgrade || (isLast && isLengthOfBody(list, field)))
          return refuse(list, 'content-length without a body')
        hasLength = true
      }
    }
    to = copyLine(list, field, into, to)
    if (to < 0) return -1
  }
  if (wantsTrailers) to = write('Connection: TE\r\n', into, to)
  // RFC 8441 section 5 makes it optional, but only one version exists, and apps refuse a request without it.
  if (isUpgrade && !hasVersion) to = write('Sec-WebSocket-Version: 13\r\n', into, to)
  if (isUpgrade) to = writeUpgrade(list, webSocketKey, into, to)
  else if (!isLast && !hasLength) to = write('Transfer-Encoding: chunked\r\n', into, to)
  return to < 0 ? -1 : endHead(into, to)
}

/** Finds the pseudo-header fields: each at most once, known, and before all others. */
function readPseudo(list: FieldList): boolean {
  pseudo.method = pseudo.scheme = pseudo.authority = pseudo.path = pseudo.protocol = -1
  let field = 0
  for (; field < list.count && isPseudo(list, field); field++) {
    const name = pseudoName(list, field)
    if (name === undefined || pseudo[name] >= 0) {
      refuse(list, 'a pseudo-header field that is unknown or repeated')
      return false
    }
    pseudo[name] = field
  }
  pseudo.end = field
  return true
}

function pseudoName(list: FieldList, field: number): Exclude<keyof typeof pseudo, 'end'> | undefined {
  // The first letter identifies the name.
  switch (list.bytes[list.nameStart(field) + 1]) {
    case 0x6d:
      return isNamed(list, field, ':method') ? 'method' : undefined
    case 0x73:
      return isNamed(list, field, ':scheme') ? 'scheme' : undefined
    case 0x61:
      return isNamed(list, field, ':authority') ? 'authority' : undefined
    default:
      if (isNamed(list, field, ':path')) return 'path'
      return isNamed(list, field, ':protocol') ? 'protocol' : undefined
  }
}

/**
 * Writes the request line. Returns the position after it; -1 if a part is missing, there is one too many, or a part
 * is invalid in a line.
 */
function writeRequestLine(list: FieldList, mayUpgrade: boolean, into: Uint8Array, at: number): number {
  const { bytes } = list
  const { method, scheme, authority, path, protocol } = pseudo
  if (method < 0) return refuse(list, 'no :method')
  const isConnect = isValue(list, method, 'CONNECT')
  if (protocol >= 0 && !(mayUpgrade && isConnect)) return refuse(list, ':protocol out of place')
  if (authority >= 0 && list.valueStart(authority) === list.valueEnd(authority))
    return refuse(list, 'an empty :authority')
  if (isConnect && protocol < 0) {
    if (scheme >= 0 || path >= 0 || authority < 0) return refuse(list, 'CONNECT with the wrong parts')
    const to = copyWord(list, authority, into, write('CONNECT ', into, at))
    return to < 0 ? -1 : write(' HTTP/1.1\r\n', into, to)
  }
  if (scheme < 0 || path < 0) return refuse(list, 'no :scheme or no :path')
  if (!isValue(list, scheme, 'https') && !isValue(list, scheme, 'http'))
    return refuse(list, 'a :scheme that is neither http nor https')
  let to = at
  if (isConnect) to = write('GET', into, to)
  else
    for (let from = list.valueStart(method); from < list.valueEnd(method); from++) {
      const byte = bytes[from]!
      if (TOKEN[byte] !== 1) return refuse(list, 'a :method that is none')
      into[to++] = byte
    }
  if (to === at) return refuse(list, 'an empty :method')
  into[to++] = SP
  // The absolute form would name a second authority.
  if (bytes[list.valueStart(path)] !== SLASH || list.valueStart(path) === list.valueEnd(path))
    if (!isValue(list, path, '*') || !isValue(list, method, 'OPTIONS'))
      return refuse(list, 'a :path that is none')
  to = copyWord(list, path, into, to)
  return to < 0 ? -1 : write(' HTTP/1.1\r\n', into, to)
}

/** Writes all cookie crumbs, from `first` on, as one line (RFC 9113 section 8.2.3). */
function writeCookies(list: FieldList, first: number, into: Uint8Array, at: number): number {
  let to = copyValue(list, first, into, write('cookie: ', into, at))
  for (let field = first + 1; field < list.count && to >= 0; field++) {
    if (!isNamed(list, field, COOKIE)) continue
    into[to++] = SEMICOLON
    into[to++] = SP
    to = copyValue(list, field, into, to)
  }
  return to < 0 ? -1 : endLine(into, to)
}

/** Writes the lines of an upgrade, which stands for an extended CONNECT in HTTP/1.1. */
function writeUpgrade(list: FieldList, webSocketKey: string, into: Uint8Array, at: number): number {
  let to = copyWord(list, pseudo.protocol, into, write('Connection: Upgrade\r\nUpgrade: ', into, at))
  if (to < 0) return -1
  to = write('\r\nSec-WebSocket-Key: ', into, to)
  return endLine(into, write(webSocketKey, into, to))
}

function isSameValue(list: FieldList, one: number, other: number): boolean {
  const length = list.valueEnd(one) - list.valueStart(one)
  if (length !== list.valueEnd(other) - list.valueStart(other)) return false
  return isSameText(list.bytes, list.valueStart(one), list.bytes, list.valueStart(other), length)
}
