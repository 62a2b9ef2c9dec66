// The paths that apps may read where one is written. A decision about a path must hold for all of them.

/** Whether the path has only one reading: no escapes, backslashes, empty or dot segments, or parameters. */
export function isPlain(path: string): boolean {
  return /^\/[^%\\;\0-\x20?#]*$/.test(path) && !/\/\/|\/\.{1,2}(?:\/|$)/.test(path)
}

/** Does the same as `isPlain`, for a path as sent, in which each character is a byte. */
export function hasOneReading(path: string): boolean {
  return isPlain(path) && path.search(OVERLONG) < 0
}

/** A pattern for overlong encodings, which valid UTF-8 does not have and old decoders accept. */
const OVERLONG =
  /[\xc0\xc1][\x80-\xbf]|\xe0[\x80-\x9f][\x80-\xbf]|\xf0[\x80-\x8f][\x80-\xbf]{2}|\xf8[\x80-\x87][\x80-\xbf]{3}|\xfc[\x80-\x83][\x80-\xbf]{4}/g

/** Decodes the bytes of letters that are not ASCII. Escaped or not, they mean the same path, and browsers escape them. */
export function unescapeLetters(path: string): string {
  return path.replace(/%([89a-f][0-9a-f])/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  )
}

/**
 * Returns the ways in which apps may read a path. They decode all escapes, once or twice, or only those of dots, as
 * `new URL` does. They remove parameters before or after that, resolve dot segments, and merge slashes. They may read
 * two slashes at the start as a host, as `new URL(request.url, base)` does, and an escaped `?`, `#` or NUL as the
 * end. Letters that are not ASCII are bytes in all readings. `undefined` if there are too many readings.
 */
export function readingsOf(target: string): readonly string[] | undefined {
  const path = unescapeLetters(target)
  if (path.length > MAX_CHARS || (path.match(ODD)?.length ?? 0) > MAX_ODD) return undefined
  const readings = new Set<string>()
  const done = new Set<string>()
  for (const start of [path, withoutParameters(path)])
    for (const current of spellingsOf(start)) {
      const forms = new Set([current, current.replaceAll('\\', '/')])
      for (const one of [...forms]) forms.add(one.replace(DOT, '.'))
      // `new URL` removes tabs, line ends and trailing blanks, and looks for the end, before it resolves dots.
      for (const one of [...forms]) {
        const bare = trimmed(one.replace(/[\t\n\r]/g, ''))
        forms.add(bare)
        forms.add(trimmed(bare.replace(END, '')))
        // Some apps ignore NUL.
        if (bare.includes('\0')) forms.add(bare.replaceAll('\0', ''))
      }
      for (const one of forms) {
        if (done.has(one)) continue
        done.add(one)
        addReadings(readings, one)
        if (readings.size > MAX_READINGS) return undefined
      }
    }
  for (const one of [...readings]) readings.add(one.replace(END, ''))
  return [...readings]
}

/**
 * Whether a path stays below a prefix that is put before it, however an app reads it. `isFirst`: the prefix is empty,
 * and two slashes would name a host. Unlike `readingsOf`, checks paths of any length.
 */
export function staysBelow(path: string, isFirst: boolean): boolean {
  if (isPlain(path)) return true
  for (const form of spellingsOf(unescapeLetters(path)))
    if (climbs(form, isFirst) || climbs(form.replaceAll('\\', '/'), isFirst)) return false
  return true
}

/** Returns the path with its escapes decoded zero, one or two times, each with and without overlong encodings. */
function spellingsOf(path: string): ReadonlySet<string> {
  const all = new Set<string>()
  let current: ReadonlySet<string> = new Set([path])
  for (let round = 0; round < 3; round++) {
    current = new Set([...current].flatMap(one => [one, one.replace(OVERLONG, shortest)]))
    for (const one of current) all.add(one)
    current = new Set([...current].map(decoded))
  }
  return all
}

function climbs(path: string, isFirst: boolean): boolean {
  const segments = path.replace(/[\t\n\r\0]/g, '').split('/')
  if (isFirst && segments.length > 2 && segments[1] === '') return true
  let depth = 0
  for (const segment of segments) {
    const name = trimmed(segment.replace(DOT, '.').replace(/[?#;].*$/s, ''))
    if (name === '..') depth--
    else if (name !== '' && name !== '.') depth++
    if (depth < 0) return true
  }
  return false
}

/**
 * The maximum length of a path with escapes, which costs the event loop about 0.05 ms. One visitor can send
 * thousands. Paths of apps and browsers have few escapes.
 */
const MAX_CHARS = 512
const MAX_ODD = 64
const MAX_READINGS = 16
const ODD = /[%\\;]|\/\.{0,2}(?=\/)/g

function addReadings(readings: Set<string>, path: string): void {
  readings.add(path)
  readings.add(path.replace(/\/{2,}/g, '/'))
  readings.add(resolved(path, false))
  readings.add(resolved(path, true))
  if (path.includes(';')) readings.add(resolved(withoutParameters(path), true))
  if (!path.startsWith('//')) return
  const ofHost = path.replace(/^\/+[^/]*/, '')
  readings.add(resolved(ofHost, false))
  readings.add(resolved(ofHost, true))
}

const DOT = /%2e/gi

/** Matches the end of a path. Apps in C end a text at NUL, and some apps decode before they look for the query. */
const END = /[?#\0].*$/s

function withoutParameters(path: string): string {
  return path.replace(/;[^/]*/g, '')
}

/** Removes ASCII blanks at both ends. The last byte of a letter is not one. */
function trimmed(path: string): string {
  return path.replace(/[\0-\x20]+$/, '')
}

/** Decodes a path. IIS reads `%u002e` as a dot. */
function decoded(path: string): string {
  return path.replace(/%(?:u00)?([0-9a-f]{2})/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  )
}

/** Returns the same character in as few bytes as it needs. */
function shortest(overlong: string): string {
  const [first = 0, ...rest] = Buffer.from(overlong, 'latin1')
  // The first byte has as many leading ones as the character has bytes, and then a zero.
  const bits = rest.reduce((sum, byte) => (sum << 6) | (byte & 0x3f), first & (0x7f >> overlong.length))
  return Buffer.from(String.fromCodePoint(bits)).toString('latin1')
}

/** Returns a path without dot segments (RFC 3986 section 5.2.4), with or without empty ones. */
function resolved(path: string, dropsEmpty: boolean): string {
  let out = ''
  let from = 0
  for (const { 0: odd, index } of path.matchAll(ODD_SEGMENT)) {
    out += path.slice(from, index)
    from = index + odd.length
    const isLast = from === path.length
    if (odd === '/..') out = out.slice(0, Math.max(0, out.lastIndexOf('/')))
    if (isLast || (odd === '/' && !dropsEmpty)) out += '/'
  }
  return out + path.slice(from) || '/'
}

const ODD_SEGMENT = /\/\.{0,2}(?=\/|$)/g
