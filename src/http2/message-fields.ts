// The rules for fields of HTTP/2 messages (RFC 9113 section 8.2), and copying valid ones into HTTP/1.1 lines.

import { COLON, CR, DEL, LF, SP, TAB, TOKEN } from '../http/characters.ts'
import * as Field from '../http/field-names.ts'
import type { FieldList } from './field-list.ts'

/** The bytes of a field name, marked 1: token characters without capital letters. */
const NAME: Uint8Array = TOKEN.slice()
NAME.fill(0, 0x41, 0x5b)

/** The maximum size of a head in addition to its fields: `: ` and CRLF for each line, and the lines that we add. */
const MAX_ADDED_BYTES = 384

/** Returns the maximum size of a list as HTTP/1.1 text. */
export function maxTextBytes(list: FieldList): number {
  return list.end + 4 * list.count + MAX_ADDED_BYTES
}

/** Records why the fields are not a valid message. */
export function refuse(list: FieldList, problem: string): -1 {
  list.problem = problem
  return -1
}

export function isFieldName(list: FieldList, field: number): boolean {
  const { bytes } = list
  const start = list.nameStart(field)
  const end = list.nameEnd(field)
  let at = start
  while (at < end && NAME[bytes[at]!] === 1) at++
  return at === end && end > start
}

/** Returns the kind of a field by its name, as in `http/field-names.ts`. */
export function kindOfField(list: FieldList, field: number): number {
  const start = list.nameStart(field)
  return Field.kindOf(list.bytes, start, list.nameEnd(field) - start)
}

/** Whether the name is exactly this one, without capital letters. */
export function isNamed(list: FieldList, field: number, name: string): boolean {
  return isText(list.bytes, list.nameStart(field), list.nameEnd(field), name)
}

/** Whether the value is exactly this one. */
export function isValue(list: FieldList, field: number, text: string): boolean {
  return isText(list.bytes, list.valueStart(field), list.valueEnd(field), text)
}

function isText(bytes: Uint8Array, start: number, end: number, text: string): boolean {
  if (end - start !== text.length) return false
  for (let index = 0; index < text.length; index++)
    if (bytes[start + index] !== text.charCodeAt(index)) return false
  return true
}

export function isPseudo(list: FieldList, field: number): boolean {
  return list.bytes[list.nameStart(field)] === COLON && list.nameEnd(field) > list.nameStart(field)
}

/** Whether a field of this kind concerns a connection of HTTP/1.1 (RFC 9113 section 8.2.2), which makes a message malformed. */
export function isConnectionSpecific(list: FieldList, field: number, kind: number): boolean {
  switch (kind) {
    case Field.CONNECTION:
    case Field.UPGRADE:
    case Field.TRANSFER_ENCODING:
      return true
    case Field.HOP:
      return isNamed(list, field, 'keep-alive') || isNamed(list, field, 'proxy-connection')
    default:
      return false
  }
}

/** Whether a Content-Length announces a body or is invalid: 0 is the only length of a message without a body. */
export function isLengthOfBody(list: FieldList, field: number): boolean {
  for (let at = list.valueStart(field); at < list.valueEnd(field); at++)
    if (list.bytes[at] !== 0x30) return true
  return false
}

/**
 * Copies a value and returns the end; -1 if it contains NUL, CR or LF, or has white space at an end. The parser of
 * the text checks all other bytes.
 */
export function copyValue(list: FieldList, field: number, into: Uint8Array, at: number): number {
  const { bytes } = list
  const start = list.valueStart(field)
  const end = list.valueEnd(field)
  if (end > start && (isBlank(bytes[start]!) || isBlank(bytes[end - 1]!)))
    return refuse(list, 'white space around a value')
  let to = at
  for (let from = start; from < end; from++) {
    const byte = bytes[from]!
    if (byte <= CR && (byte === 0 || byte === CR || byte === LF))
      return refuse(list, 'NUL, CR or LF in a value')
    into[to++] = byte
  }
  return to
}

/** Copies a field as a line. Returns -1 if it breaks a rule. */
export function copyLine(list: FieldList, field: number, into: Uint8Array, at: number): number {
  const { bytes } = list
  const end = list.nameEnd(field)
  let to = at
  for (let from = list.nameStart(field); from < end; from++) into[to++] = bytes[from]!
  into[to++] = COLON
  into[to++] = SP
  to = copyValue(list, field, into, to)
  return to < 0 ? -1 : endLine(into, to)
}

/** Copies a value for a first line. Refuses bytes that would end the word there. */
export function copyWord(list: FieldList, field: number, into: Uint8Array, at: number): number {
  const { bytes } = list
  let to = at
  for (let from = list.valueStart(field); from < list.valueEnd(field); from++) {
    const byte = bytes[from]!
    if (byte <= SP || byte === DEL)
      return refuse(list, 'a blank or control character in a pseudo-header field')
    into[to++] = byte
  }
  return to
}

export function write(text: string, into: Uint8Array, at: number): number {
  for (let index = 0; index < text.length; index++) into[at + index] = text.charCodeAt(index)
  return at + text.length
}

export function endLine(into: Uint8Array, at: number): number {
  into[at] = CR
  into[at + 1] = LF
  return at + 2
}

/**
 * Ends a head. Throws if it did not fit: writes past the end of a typed array are ignored, and a truncated head must
 * never be sent.
 */
export function endHead(into: Uint8Array, at: number): number {
  const end = endLine(into, at)
  if (end > into.length) throw new RangeError('a head needs the room of maxTextBytes')
  return end
}

function isBlank(byte: number): boolean {
  return byte === SP || byte === TAB
}
