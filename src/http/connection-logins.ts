// NTLM and Negotiate (RFC 4559) log a connection in, and not a request: who asks next on that connection is taken for the same user.

import { ascii, BACKSLASH, COMMA, isSpelled, QUOTE, SP, TAB, TOKEN } from './characters.ts'

/** The result if NTLM or Negotiate is among the schemes. */
export const LOGS_CONNECTION_IN = 1
/** The result if any other scheme is. */
export const OTHER_SCHEME = 2

/** The schemes of credentials, or of a list of challenges (RFC 9110 section 11.6.1), in bytes[start, end). */
export function schemesIn(bytes: Uint8Array, start: number, end: number): number {
  let schemes = 0
  let at = start
  while (at < end) {
    while (at < end && (bytes[at] === SP || bytes[at] === TAB || bytes[at] === COMMA)) at++
    const from = at
    while (at < end && TOKEN[bytes[at]!] === 1) at++
    // Behind the name of a parameter there is "=".
    const isScheme = at > from && (at === end || bytes[at] === SP || bytes[at] === TAB || bytes[at] === COMMA)
    if (isScheme)
      schemes |=
        isSpelled(bytes, from, at, 'ntlm') || isSpelled(bytes, from, at, 'negotiate')
          ? LOGS_CONNECTION_IN
          : OTHER_SCHEME
    at = endOfElement(bytes, at, end)
  }
  return schemes
}

/** Returns the index of the comma after the element of a list that `from` is in, or `end`. */
function endOfElement(bytes: Uint8Array, from: number, end: number): number {
  let isQuoted = false
  let at = from
  for (; at < end; at++) {
    const byte = bytes[at]
    if (byte === QUOTE) isQuoted = !isQuoted
    else if (isQuoted && byte === BACKSLASH) at++
    else if (!isQuoted && byte === COMMA) break
  }
  return at
}

/** Whether a header has credentials, or asks for some, that count for the connection. */
export function logsConnectionIn([name, value]: readonly [name: string, value: string]): boolean {
  if (!/^(?:www-authenticate|authorization)$/i.test(name)) return false
  const bytes = ascii(value)
  return (schemesIn(bytes, 0, bytes.length) & LOGS_CONNECTION_IN) !== 0
}
