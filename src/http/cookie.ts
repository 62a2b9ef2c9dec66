// Finds a cookie in a request head without parsing the others.

import { EQUALS, SEMICOLON, SP, TAB } from './characters.ts'
import type { RequestHead } from './head.ts'

/**
 * Calls `accept` with the value of each cookie of this name, in order, and returns the first result that is not `undefined`. A
 * visitor may send several cookies of one name, for different paths and domains (RFC 6265 section 5.4). `name` is case-sensitive.
 */
export function findCookie<Found>(
  head: RequestHead,
  name: string,
  accept: (bytes: Uint8Array, start: number, end: number) => Found | undefined,
): Found | undefined {
  const { bytes, fields } = head
  for (let line = 0; line < fields.count; line++) {
    if (!fields.isNamed(line, 'cookie')) continue
    const end = fields.valueEnd(line)
    for (let at = fields.valueStart(line); at < end; at++) {
      let start = at
      while (start < end && (bytes[start] === SP || bytes[start] === TAB)) start++
      at = start
      while (at < end && bytes[at] !== SEMICOLON) at++
      const valueStart = start + name.length + 1
      if (valueStart > at || bytes[valueStart - 1] !== EQUALS || !startsWith(bytes, start, name)) continue
      let valueEnd = at
      while (valueEnd > valueStart && (bytes[valueEnd - 1] === SP || bytes[valueEnd - 1] === TAB)) valueEnd--
      const found = accept(bytes, valueStart, valueEnd)
      if (found !== undefined) return found
    }
  }
  return undefined
}

function startsWith(bytes: Uint8Array, start: number, text: string): boolean {
  for (let index = 0; index < text.length; index++)
    if (bytes[start + index] !== text.charCodeAt(index)) return false
  return true
}
