// Checks whether a request needs the file, given what its sender has already (RFC 9110 section 13).

export interface Validators {
  /** A strong entity tag, quotes included. */
  readonly etag: string
  /** The modification time, in milliseconds. */
  readonly modifiedMs: number
}

/** The age in milliseconds below which a file may change again within the same second of its date. */
const DATE_IS_STRONG_AFTER_MS = 1_000

/** Returns the status that ends the request, 412 or 304; `undefined` to continue. In the order of RFC 9110 section 13.2.2. */
export function conditionalStatus(headers: Headers, file: Validators): 304 | 412 | undefined {
  const match = headers.get('if-match')
  const unmodifiedSince = dateOf(headers.get('if-unmodified-since'))
  if (match !== null) {
    if (!lists(match, file.etag)) return 412
  } else if (unmodifiedSince !== undefined && seconds(file.modifiedMs) > unmodifiedSince) return 412

  const noneMatch = headers.get('if-none-match')
  const modifiedSince = dateOf(headers.get('if-modified-since'))
  if (noneMatch !== null) return lists(noneMatch.replaceAll('W/"', '"'), file.etag) ? 304 : undefined
  return modifiedSince !== undefined && seconds(file.modifiedMs) <= modifiedSince ? 304 : undefined
}

/** Whether a range of the file may be sent: the request has no If-Range, or one that names exactly this version. */
export function mayBeRange(headers: Headers, file: Validators, nowMs: number): boolean {
  const condition = headers.get('if-range')
  if (condition === null || condition === file.etag) return true
  const isStrong = nowMs - file.modifiedMs >= DATE_IS_STRONG_AFTER_MS
  return isStrong && condition === lastModified(file, nowMs)
}

/**
 * Returns the modification time as an HTTP date, never in the future, whatever the file system says (RFC 9110 section 8.8.2.1).
 */
export function lastModified({ modifiedMs }: Validators, nowMs: number): string {
  return new Date(Math.min(modifiedMs, nowMs)).toUTCString()
}

/** Whether our tag is in a list of tags. Weak ones (`W/"…"`) do not match. */
function lists(list: string, etag: string): boolean {
  return list.split(',').some(one => one.trim() === etag || one.trim() === '*')
}

/**
 * Returns the seconds of an HTTP date; `undefined` if it is invalid. The two forms that were obsolete in 1999 count
 * as invalid, which only costs their sender a whole response.
 */
function dateOf(text: string | null): number | undefined {
  if (text === null || !/^[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$/.test(text))
    return undefined
  const ms = Date.parse(text)
  return Number.isNaN(ms) ? undefined : seconds(ms)
}

function seconds(ms: number): number {
  return Math.floor(ms / 1_000)
}

/** The bytes from `start` up to, but not including, `end`. */
export interface Range {
  readonly start: number
  readonly end: number
}

/**
 * Parses a Range header. `undefined` for the whole file: if there is no range, several of them, another unit, or an
 * invalid form. Several ranges in one response (`multipart/byteranges`) are only used to make servers work.
 */
export function rangeOf(header: string | null, size: number): Range | 'unsatisfiable' | undefined {
  const [, first = '', last = ''] = /^bytes=[\t ]*(\d*)-(\d*)[\t ]*$/i.exec(header ?? '') ?? []
  // An empty file has no range that Content-Range could describe.
  if (size === 0 || (first === '' && last === '')) return undefined
  if (first === '') {
    const count = Math.min(Number(last), size)
    return count === 0 ? 'unsatisfiable' : { start: size - count, end: size }
  }
  const start = Number(first)
  if (last !== '' && Number(last) < start) return undefined
  if (start >= size) return 'unsatisfiable'
  return { start, end: last === '' ? size : Math.min(Number(last) + 1, size) }
}
