// NTLM, Negotiate (RFC 4559) and Kerberos log in a connection rather than a request: later requests on the connection
// count as the same user's.

import { ascii, BACKSLASH, COMMA, isSpelled, QUOTE, SP, TAB, TOKEN } from './characters.ts'

/** The result bit for NTLM, Negotiate or Kerberos. */
export const LOGS_CONNECTION_IN = 1
/** The result bit for any other scheme. */
export const OTHER_SCHEME = 2
const LOGINS = ['ntlm', 'negotiate', 'kerberos']

/** Returns the schemes of credentials, or of a list of challenges (RFC 9110 section 11.6.1), in bytes[start, end). */
export function schemesIn(bytes: Uint8Array, start: number, end: number): number {
  let schemes = 0
  let at = start
  let hasQuotes = true
  while (at < end) {
    while (at < end && (bytes[at] === SP || bytes[at] === TAB || bytes[at] === COMMA)) at++
    const from = at
    while (at < end && TOKEN[bytes[at]!] === 1) at++
    // A parameter, unlike a scheme, has "=" after its name.
    const isScheme = at > from && (at === end || bytes[at] === SP || bytes[at] === TAB || bytes[at] === COMMA)
    if (isScheme)
      schemes |= LOGINS.some(login => isSpelled(bytes, from, at, login)) ? LOGS_CONNECTION_IN : OTHER_SCHEME
    const next = endOfElement(bytes, at, end, hasQuotes)
    if (next >= 0) at = next
    // A quote without an end counts as no quote: another reader could see a login after it.
    else hasQuotes = false
  }
  return schemes
}

/** Returns the index of the comma after the list element that contains `from`, or `end`; -1 for a quote without an end. */
function endOfElement(bytes: Uint8Array, from: number, end: number, hasQuotes: boolean): number {
  let isQuoted = false
  let at = from
  for (; at < end; at++) {
    const byte = bytes[at]
    if (byte === QUOTE && hasQuotes) isQuoted = !isQuoted
    else if (isQuoted && byte === BACKSLASH) at++
    else if (!isQuoted && byte === COMMA) break
  }
  return isQuoted ? -1 : at
}

/** Whether a header has credentials, or asks for credentials, that count for the connection. */
export function logsConnectionIn([name, value]: readonly [name: string, value: string]): boolean {
  if (!/^(?:www-authenticate|authorization)$/i.test(name)) return false
  const bytes = ascii(value)
  return (schemesIn(bytes, 0, bytes.length) & LOGS_CONNECTION_IN) !== 0
}
