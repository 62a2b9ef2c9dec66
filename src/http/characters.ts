// Character classes of HTTP/1.1 (RFC 9110 section 5.6), the words at the start of first lines, and conversion between
// bytes and text.

export const TAB = 0x09
export const LF = 0x0a
export const CR = 0x0d
export const SP = 0x20
export const QUOTE = 0x22
export const HASH = 0x23
export const COMMA = 0x2c
export const DASH = 0x2d
export const DOT = 0x2e
export const SLASH = 0x2f
export const COLON = 0x3a
export const SEMICOLON = 0x3b
export const EQUALS = 0x3d
export const QUESTION = 0x3f
export const BACKSLASH = 0x5c
export const UNDERSCORE = 0x5f
export const DEL = 0x7f

/** The table of token characters, each marked 1: for methods, field names and connection options. */
export const TOKEN: Uint8Array = new Uint8Array(256)
for (const character of "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
  TOKEN[character.charCodeAt(0)] = 1

export function isAlphanumeric(byte: number): boolean {
  const lower = byte | 0x20
  return (lower >= 0x61 && lower <= 0x7a) || (byte >= 0x30 && byte <= 0x39)
}

/** Whether a field value may not contain the byte: control characters except HTAB. Bytes from 0x80 are allowed (obs-text). */
export function isForbiddenInValue(byte: number): boolean {
  return byte < SP ? byte !== TAB : byte === DEL
}

const encoder = new TextEncoder()

export function ascii(text: string): Uint8Array {
  return encoder.encode(text)
}

/**
 * Returns the text with ASCII letters in lower case. `toLowerCase` also turns the KELVIN SIGN into `k`, which would
 * give two names the same spelling.
 */
export function asciiLowerCase(text: string): string {
  return text.replace(/[A-Z]+/g, letters => letters.toLowerCase())
}

const { latin1Slice } = Buffer.prototype

/** Decodes each byte as the character with its number. `TextDecoder('latin1')` is windows-1252, and `fromCharCode` is slow. */
export function latin1(bytes: Uint8Array, start: number, end: number): string {
  return latin1Slice.call(bytes, start, end)
}

/** Whether bytes[start, end) equal the lower-case `text`, ignoring case. */
export function isSpelled(bytes: Uint8Array, start: number, end: number, text: string): boolean {
  if (end - start !== text.length) return false
  for (let index = 0; index < text.length; index++) {
    const byte = bytes[start + index]!
    if ((byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte) !== text.charCodeAt(index)) return false
  }
  return true
}

/** Whether two runs of the same length contain the same ASCII text, ignoring case. */
export function isSameText(
  a: Uint8Array,
  aStart: number,
  b: Uint8Array,
  bStart: number,
  length: number,
): boolean {
  for (let index = 0; index < length; index++) {
    const left = a[aStart + index]!
    const right = b[bStart + index]!
    if (left === right) continue
    const lower = left | 0x20
    if (lower !== (right | 0x20) || lower < 0x61 || lower > 0x7a) return false
  }
  return true
}

/** Joins all pieces. A single piece is returned itself. */
export function joined(pieces: readonly Uint8Array[]): Uint8Array {
  if (pieces.length === 1) return pieces[0]!
  const whole = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0))
  let at = 0
  for (const piece of pieces) {
    whole.set(piece, at)
    at += piece.length
  }
  return whole
}

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'CONNECT', 'TRACE'] as const
const patterns = METHODS.map(ascii)

/** Returns the method in bytes[start, end), case-sensitive. Common ones need no new string. */
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

/** Whether `HTTP/1.0` or `HTTP/1.1` is at `at`. Written without a loop, because every head needs it. */
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

/** Whether bytes[start, end), at most ten of them, can begin a version (also one that we do not accept) and CRLF. */
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

/** Whether bytes[start, end), fewer than 13 of them, can begin a status line of any HTTP/1 version. */
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

/** The methods that may reach the origin twice without harm (RFC 9110 section 9.2.2). */
export const IDEMPOTENT: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE'])
