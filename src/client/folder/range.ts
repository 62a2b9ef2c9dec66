// The part of a file that a Range header asks for (RFC 9110 section 14).

/** Bytes from `start` up to, not including, `end`. */
export interface Range {
  readonly start: number
  readonly end: number
}

/**
 * Reads a Range header. `undefined`: the whole file is the answer, because none or several ranges were asked for, in
 * another unit, or in a form that is none. Several ranges in one answer (`multipart/byteranges`) have no user but
 * those who want to make the server work.
 */
export function rangeOf(header: string | null, size: number): Range | 'unsatisfiable' | undefined {
  const [, first = '', last = ''] = /^bytes=[\t ]*(\d*)-(\d*)[\t ]*$/i.exec(header ?? '') ?? []
  // No Content-Range can speak of a part of nothing.
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
