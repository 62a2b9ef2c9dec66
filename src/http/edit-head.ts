// Removes lines from a request head and adds lines, for guards and other plugins. Every other byte stays.

import {
  ascii,
  DASH,
  EQUALS,
  isAlphanumeric,
  isForbiddenInValue,
  SEMICOLON,
  SP,
  TAB,
  TOKEN,
} from './characters.ts'
import * as Field from './field-names.ts'
import type { RequestHead } from './head.ts'

/** The changes to a head. Line names ignore case, and every character but letters and digits counts as `-`. */
export interface HeadEdits {
  readonly withoutHeaders: readonly string[]
  readonly withoutCookies: readonly string[]
  readonly adds: readonly (readonly [name: string, value: string])[]
}

/**
 * Returns the head to forward, which must be parsed again. `undefined` if nothing changes. Throws a RangeError for
 * names that framing and routing need, and for text that would not be a single line.
 */
export function editHead(head: RequestHead, edits: HeadEdits): Uint8Array | undefined {
  const { bytes, fields } = head
  const { withoutCookies, adds } = edits
  const out = [...edits.withoutHeaders, ...adds.map(([name]) => name)].map(editableName)
  const pieces: Uint8Array[] = []
  let from = head.start
  for (let line = 0; line < fields.count; line++) {
    const isOut = out.some(name => isNamedLike(bytes, fields.lineStart(line), fields.nameEnd(line), name))
    const cookies =
      isOut || withoutCookies.length === 0 || !fields.isNamed(line, 'cookie')
        ? undefined
        : withoutSome(bytes, fields.valueStart(line), fields.valueEnd(line), withoutCookies)
    if (!isOut && cookies === undefined) continue
    pieces.push(bytes.subarray(from, fields.lineStart(line)))
    from = fields.lineEnd(line)
    if (cookies === undefined || cookies.length === 0) continue
    pieces.push(bytes.subarray(fields.lineStart(line), fields.nameEnd(line)), COLON_SPACE)
    for (const [index, cookie] of cookies.entries()) pieces.push(...(index > 0 ? [BETWEEN] : []), cookie)
    pieces.push(CRLF)
  }
  if (pieces.length === 0 && adds.length === 0) return undefined
  pieces.push(bytes.subarray(from, head.end - 2))
  for (const [name, value] of adds) pieces.push(headerLine(name, value))
  pieces.push(CRLF)
  return joined(pieces)
}

function joined(pieces: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(pieces.reduce((length, piece) => length + piece.length, 0))
  let at = 0
  for (const piece of pieces) {
    all.set(piece, at)
    at += piece.length
  }
  return all
}

/** The names that framed the body and found the tunnel. No plugin may change them. */
const FIXED: ReadonlySet<number> = new Set([
  Field.HOST,
  Field.CONTENT_LENGTH,
  Field.TRANSFER_ENCODING,
  Field.CONNECTION,
  Field.UPGRADE,
  Field.EXPECT,
  Field.TE,
  Field.HOP,
  Field.LOOKALIKE,
])

/** A cache: the names that plugins remove or add are always the same few. */
const editable = new Map<string, string>()
const MAX_EDITABLE = 1_000

function editableName(name: string): string {
  let plain = editable.get(name)
  if (plain !== undefined) return plain
  plain = plainName(name)
  if (editable.size < MAX_EDITABLE) editable.set(name, plain)
  return plain
}

function plainName(name: string): string {
  const plain = dashedName(name)
  const bytes = ascii(plain)
  if (bytes.length > 0 && !FIXED.has(Field.kindOf(bytes, 0, bytes.length))) return plain
  throw new RangeError(`A plugin cannot change the header ${name}.`)
}

/**
 * Returns a header line with its CRLF. Throws a RangeError for text that would not be a single line: a plugin may
 * build it from a visitor's input.
 */
export function headerLine(name: string, value: string): Uint8Array {
  const bytes = encoder.encode(value)
  if (bytes.some(isForbiddenInValue)) throw new RangeError(`The value of ${name} has control characters.`)
  const nameBytes = ascii(name)
  if (nameBytes.length === 0 || nameBytes.some(byte => TOKEN[byte] !== 1))
    throw new RangeError('A header name has other characters than those of a token.')
  const line = new Uint8Array(nameBytes.length + bytes.length + 4)
  line.set(nameBytes)
  line.set(COLON_SPACE, nameBytes.length)
  line.set(bytes, nameBytes.length + 2)
  line.set(CRLF, line.length - 2)
  return line
}

const encoder = new TextEncoder()
const COLON_SPACE = ascii(': ')
const CRLF = ascii('\r\n')
const BETWEEN = ascii('; ')

/** Returns a name in lower case, with `-` for every character that an app may read as `-`. */
export function dashedName(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '-')
}

/**
 * Whether an app could take the name for `name`. Apps behind CGI and WSGI cannot distinguish `X_User` from `X-User`,
 * and behind lighttpd `X.User` either.
 */
function isNamedLike(bytes: Uint8Array, start: number, end: number, name: string): boolean {
  if (end - start !== name.length) return false
  for (let index = 0; index < name.length; index++) {
    const byte = bytes[start + index]!
    const wanted = name.charCodeAt(index)
    if (wanted === DASH ? isAlphanumeric(byte) : (byte | 0x20) !== wanted) return false
  }
  return true
}

/** Returns the cookies of a line without those in `names`. `undefined` as `names`: without any. */
function withoutSome(
  bytes: Uint8Array,
  start: number,
  end: number,
  names: readonly string[],
): Uint8Array[] | undefined {
  const kept: Uint8Array[] = []
  let isOneOut = false
  for (let at = start; at <= end; at++) {
    let from = at
    while (from < end && (bytes[from] === SP || bytes[from] === TAB)) from++
    at = from
    while (at < end && bytes[at] !== SEMICOLON) at++
    let to = at
    while (to > from && (bytes[to - 1] === SP || bytes[to - 1] === TAB)) to--
    if (names.some(name => isCookie(bytes, from, to, name))) isOneOut = true
    else if (to > from) kept.push(bytes.subarray(from, to))
  }
  return isOneOut ? kept : undefined
}

/** Whether bytes are a cookie of this name, which is case-sensitive. Some apps ignore blanks around `=`. */
function isCookie(bytes: Uint8Array, start: number, end: number, name: string): boolean {
  let at = start
  for (let index = 0; index < name.length; index++, at++)
    if (at >= end || bytes[at] !== name.charCodeAt(index)) return false
  while (at < end && (bytes[at] === SP || bytes[at] === TAB)) at++
  return at === end || bytes[at] === EQUALS
}
