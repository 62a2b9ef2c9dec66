// Recognises the header names that matter for framing and forwarding by their bytes, without strings.

import { ascii, DASH, isAlphanumeric } from './characters.ts'

/** The kind of all other names, which are passed on unchanged. */
export const OTHER = 0
export const HOST = 1
export const CONTENT_LENGTH = 2
export const TRANSFER_ENCODING = 3
export const CONNECTION = 4
export const UPGRADE = 5
export const EXPECT = 6
export const TE = 7
/** The kind of WWW-Authenticate: passed on; its scheme may concern the connection (connection-logins.ts). */
export const WWW_AUTHENTICATE = 8
/** The kind of names that concern this connection only, or a proxy, and are never passed on. */
export const HOP = 9
export const FORWARDED = 10
export const X_FORWARDED_FOR = 11
export const X_FORWARDED_HOST = 12
export const X_FORWARDED_PROTO = 13
/** The kind of the other X-Forwarded names, which we do not set. From an untrusted hop they are dropped. */
export const X_FORWARDED_OTHER = 14
/** The kind of names in which proxies give apps the visitor's address. From an untrusted hop they are dropped. */
export const CLIENT_ADDRESS = 15
/**
 * The kind of `Content_Length` and similar names, which are refused: an origin that reads `_` as `-` would frame the
 * body by them.
 */
export const LOOKALIKE = 16
/** The kind of Authorization: passed on; its scheme may concern the connection (connection-logins.ts). */
export const AUTHORIZATION = 17

const KNOWN: readonly (readonly [name: string, kind: number])[] = [
  ['host', HOST],
  ['content-length', CONTENT_LENGTH],
  ['transfer-encoding', TRANSFER_ENCODING],
  ['connection', CONNECTION],
  ['upgrade', UPGRADE],
  ['expect', EXPECT],
  ['authorization', AUTHORIZATION],
  ['www-authenticate', WWW_AUTHENTICATE],
  ['te', TE],
  ['keep-alive', HOP],
  ['proxy-connection', HOP],
  ['proxy-authorization', HOP],
  // Only servers of a cluster send these, to each other.
  ['localtunnels-moved', HOP],
  ['localtunnels-visitor', HOP],
  ['forwarded', FORWARDED],
  ['x-real-ip', CLIENT_ADDRESS],
  ['true-client-ip', CLIENT_ADDRESS],
  ['cf-connecting-ip', CLIENT_ADDRESS],
  ['fastly-client-ip', CLIENT_ADDRESS],
  ['x-client-ip', CLIENT_ADDRESS],
  ['x-cluster-client-ip', CLIENT_ADDRESS],
  ['x-forwarded-for', X_FORWARDED_FOR],
  ['x-forwarded-host', X_FORWARDED_HOST],
  ['x-forwarded-proto', X_FORWARDED_PROTO],
]

/** The names of lines that concern one connection: they frame a request, or address the next hop. */
export const CONNECTION_NAMES: readonly string[] = [
  'connection',
  'content-length',
  'transfer-encoding',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'upgrade',
  'expect',
]

const LONGEST = 31
const patterns = KNOWN.map(([name]) => ascii(name))

/** The index into KNOWN by length and first letter; -1 for none. No two names share both. */
const byLengthAndLetter = new Int8Array((LONGEST + 1) * 32).fill(-1)
for (const [index, [name]] of KNOWN.entries())
  byLengthAndLetter[(name.length << 5) | (name.charCodeAt(0) & 31)] = index

const xForwarded = ascii('x-forwarded-')

/** Returns the kind of the name in bytes[start, start + length), all of them token characters. */
export function kindOf(bytes: Uint8Array, start: number, length: number): number {
  const letter = bytes[start]! & 31
  const index = length > LONGEST ? -1 : byLengthAndLetter[(length << 5) | letter]!
  if (index >= 0) {
    const match = compare(bytes, start, patterns[index]!)
    const kind = KNOWN[index]![1]
    if (match === SAME) return kind
    if (match === SIMILAR && kind !== WWW_AUTHENTICATE)
      return kind === CONTENT_LENGTH || kind === TRANSFER_ENCODING ? LOOKALIKE : HOP
  }
  // 'x' & 31. Few names start with it, and nearly all of those differ in the third byte.
  if (letter !== 24 || length <= xForwarded.length) return OTHER
  const match = compare(bytes, start, xForwarded)
  return match === SAME ? X_FORWARDED_OTHER : match === SIMILAR ? HOP : OTHER
}

const ours = ascii('x-localtunnels-')
const credentials = [ascii('authorization'), ascii('cookie')]

/**
 * Whether apps may trust a header of this name: `X-Localtunnels-*` in any spelling, or credentials. Guards check
 * these in a head, so an app that reads trailers like headers must not find them there. `bytes` begins with the name.
 */
export function isBelieved(bytes: Uint8Array, length: number): boolean {
  if (length > ours.length && compare(bytes, 0, ours) !== DIFFERENT) return true
  return credentials.some(name => length === name.length && compare(bytes, 0, name) === SAME)
}

/**
 * Whether a name of `length` bytes is one of these, with `_` counting as `-`. `bytes` begins with the name, up to the
 * length of the longest candidate.
 */
export function isAmong(names: readonly Uint8Array[], bytes: Uint8Array, length: number): boolean {
  return names.some(name => length === name.length && compare(bytes, 0, name) !== DIFFERENT)
}

const DIFFERENT = 0
const SAME = 1
/**
 * The result for names that are equal except for `_`, `.` or similar in place of `-`, which CGI-like origins cannot distinguish.
 */
const SIMILAR = 2

function compare(bytes: Uint8Array, start: number, pattern: Uint8Array): number {
  let match = SAME
  for (let index = 0; index < pattern.length; index++) {
    const byte = bytes[start + index]!
    // Among the token characters, `| 0x20` changes only letters into a character that a pattern can contain.
    if ((byte | 0x20) === pattern[index]) continue
    if (pattern[index] !== DASH || isAlphanumeric(byte)) return DIFFERENT
    match = SIMILAR
  }
  return match
}
