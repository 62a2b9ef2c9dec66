// Validates Host values: a name or address with an optional port, and nothing that can be read in two ways.

import { COLON, DASH, DOT, isAlphanumeric, UNDERSCORE } from './characters.ts'

/**
 * The maximum length of a Host: 253 for a DNS name, plus a dot, a colon and five digits. An IPv6 address in brackets is shorter.
 */
export const MAX_HOST_BYTES = 260

const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d

/**
 * Returns the index where the name in bytes[start, end) ends, before a port; -1 if it is not a plain host. Refuses
 * userinfo, lists, percent-encoding, raw UTF-8, empty labels, an empty port and IPv6 zones.
 */
export function endOfHostName(bytes: Uint8Array, start: number, end: number): number {
  if (start === end || end - start > MAX_HOST_BYTES) return -1
  let at = start
  if (bytes[at] === OPEN_BRACKET) {
    at++
    while (at < end && isAddressByte(bytes[at]!)) at++
    if (bytes[at] !== CLOSE_BRACKET || at >= end || at === start + 1) return -1
    at++
  } else {
    let labelStart = at
    for (; at < end; at++) {
      const byte = bytes[at]!
      if (byte === DOT) {
        if (at === labelStart) return -1
        labelStart = at + 1
      } else if (!isNameByte(byte)) break
    }
    if (at === start) return -1
  }
  return at === end || isPort(bytes, at, end) ? at : -1
}

/** Whether bytes[start, end) is a colon and a port number. */
function isPort(bytes: Uint8Array, start: number, end: number): boolean {
  if (bytes[start] !== COLON || end - start < 2 || end - start > 6) return false
  let port = 0
  for (let at = start + 1; at < end; at++) {
    const digit = bytes[at]! - 0x30
    if (digit < 0 || digit > 9) return false
    port = port * 10 + digit
  }
  return port <= 65_535
}

/** Whether a name may contain the byte. RFC 952 has no underscores, but DNS names do, and browsers send them. */
function isNameByte(byte: number): boolean {
  return isAlphanumeric(byte) || byte === DASH || byte === UNDERSCORE
}

function isAddressByte(byte: number): boolean {
  const lower = byte | 0x20
  if (lower >= 0x61 && lower <= 0x66) return true
  return (byte >= 0x30 && byte <= 0x3a) || byte === DOT
}
