// The parts of a first line that come from a short list: methods, as constants, and versions; and how a status line begins.

import { ascii, CR, DOT, LF, latin1, SLASH } from './characters.ts'

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'CONNECT', 'TRACE'] as const
const patterns = METHODS.map(ascii)

/** The method in bytes[start, end): the common ones without making a string. Case matters. */
export function methodOf(bytes: Uint8Array, start: number, end: number): string {
  const length = end - start
  for (let index = 0; index < patterns.length; index++) {
    const pattern = patterns[index]!
    if (pattern.length !== length) continue
    let at = 0
    while (at < length && bytes[start + at] === pattern[at]) at++
    if (at === length) return METHODS[index]!
  }
  return latin1(bytes, start, end)
}

/** Whether `HTTP/1.0` or `HTTP/1.1` is at `at`. Spelled out: it is asked for every head. */
export function isOurVersion(bytes: Uint8Array, at: number): boolean {
  return (
    bytes[at] === 0x48 &&
    bytes[at + 1] === 0x54 &&
    bytes[at + 2] === 0x54 &&
    bytes[at + 3] === 0x50 &&
    bytes[at + 4] === SLASH &&
    bytes[at + 5] === 0x31 &&
    bytes[at + 6] === DOT &&
    (bytes[at + 7] === 0x31 || bytes[at + 7] === 0x30)
  )
}

const HTTP = ascii('HTTP/')

/** Whether bytes[start, end), at most ten of them, may go on to be a version (any, not just ours) and CRLF. */
export function isLikeVersion(bytes: Uint8Array, start: number, end: number): boolean {
  const length = end - start
  for (let at = 0; at < length; at++) {
    const byte = bytes[start + at]!
    if (at < 5 ? byte === HTTP[at] : at === 5 || at === 7 ? byte >= 0x30 && byte <= 0x39 : false) continue
    if (at === 6 ? byte === DOT : at === 8 ? byte === CR : at === 9 && byte === LF) continue
    return false
  }
  return true
}

/** Whether bytes[start, end), fewer than 13 of them, may go on to be a status line of some HTTP/1. */
export function isLikeStatusLine(bytes: Uint8Array, start: number, end: number): boolean {
  const likely = 'HTTP/1.1 200'
  for (let at = start; at < end; at++) {
    const place = at - start
    const byte = bytes[at]!
    if (place === 7) {
      if (byte < 0x30 || byte > 0x39) return false
    } else if (place >= 9) {
      if (byte < (place === 9 ? 0x31 : 0x30) || byte > 0x39) return false
    } else if (byte !== likely.charCodeAt(place)) return false
  }
  return true
}

/** Methods that may reach the origin twice without harm (RFC 9110 section 9.2.2). */
export const IDEMPOTENT: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE'])
