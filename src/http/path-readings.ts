// The paths that apps may read where one is written. What a path decides must hold for all.

/** There is one way to read it: no escapes, backslashes, empty or dot segments, parameters. */
export function isPlain(path: string): boolean {
  return /^\/[^%\\;\s?#]*$/.test(path) && !/\/\/|\/\.{1,2}(?:\/|$)/.test(path)
}

/** The same of a path as it came, each character a byte: valid UTF-8 has no byte of an overlong dot or slash. */
export function hasOneReading(path: string): boolean {
  return isPlain(path) && !/[\xc0\xc1]/.test(path)
}

/** Bytes of letters that are not ASCII are the same path escaped or not, and browsers escape them. */
export function unescapeLetters(path: string): string {
  return path.replace(/%([89a-f][0-9a-f])/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  )
}

/**
 * As apps may read it: all escapes decoded, once or twice, or those of dots alone, as `new URL` does; parameters taken out before or
 * behind that; dot segments resolved, slashes made one, two slashes at the start as another host, which `new URL(request.url, base)`
 * makes of it, and `?`, `#` or NUL, once decoded, as the end, before or behind it. Letters
 * that are not ASCII are bytes in all readings. `undefined`: there is too much to look at.
 */
export function readingsOf(target: string): readonly string[] | undefined {
  const path = unescapeLetters(target)
  if (path.length > MAX_CHARS || (path.match(ODD)?.length ?? 0) > MAX_ODD) return undefined
  const readings = new Set<string>()
  const done = new Set<string>()
  for (const start of [path, withoutParameters(path)]) {
    let current = start
    for (let round = 0; round < 3; round++) {
      const slashed = current.replaceAll('\\', '/')
      const forms = new Set([current, slashed, current.replace(DOT, '.'), slashed.replace(DOT, '.')])
      // `new URL` takes out tabs, line ends and blanks behind, and looks for the end, before it resolves dots.
      for (const one of [...forms]) {
        const bare = one.replace(/[\t\n\r]/g, '').trimEnd()
        forms.add(bare)
        forms.add(bare.replace(END, '').trimEnd())
      }
      for (const one of forms) {
        if (done.has(one)) continue
        done.add(one)
        addReadings(readings, one)
        if (readings.size > MAX_READINGS) return undefined
      }
      const next = decoded(current)
      if (next === current) break
      current = next
    }
  }
  for (const one of [...readings]) readings.add(one.replace(END, ''))
  return [...readings]
}

/** So a path costs the event loop some 0.05 ms: one visitor can ask for thousands. What apps and browsers write has a few of each. */
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

/** Apps in C end a text at NUL, some apps decode before they look for the query. */
const END = /[?#\0].*$/s

function withoutParameters(path: string): string {
  return path.replace(/;[^/]*/g, '')
}

/** IIS reads `%u002e` as a dot, old decoders UTF-8 that is too long. */
function decoded(path: string): string {
  return path
    .replace(/%(?:u00)?([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    .replace(/\xc0[\x80-\xbf]/g, two => String.fromCharCode(two.charCodeAt(1) & 63))
    .replace(/\xc1[\x80-\xbf]/g, two => String.fromCharCode(two.charCodeAt(1) - 64))
}

/** Without dot segments (RFC 3986 section 5.2.4), with empty ones or without. */
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
