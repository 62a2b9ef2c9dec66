// Reads foreign DER: every length is checked, and nothing is read beyond its end.

export interface DerElement {
  readonly tag: number
  readonly content: Uint8Array
}

/** Returns the consecutive elements in `bytes`. `undefined` if they are not DER. */
export function elementsOf(bytes: Uint8Array): readonly DerElement[] | undefined {
  const elements: DerElement[] = []
  let at = 0
  while (at < bytes.length) {
    const tag = bytes[at]!
    const first = bytes[at + 1]
    // Tags of several bytes, and lengths without an end, are not used in certificates.
    if (first === undefined || (tag & 0x1f) === 0x1f || first === 0x80) return undefined
    let length = first
    let start = at + 2
    if (first > 0x80) {
      const count = first & 0x7f
      if (count > 4 || start + count > bytes.length) return undefined
      length = 0
      for (let index = 0; index < count; index++) length = length * 256 + bytes[start + index]!
      start += count
    }
    if (start + length > bytes.length) return undefined
    elements.push({ tag, content: bytes.subarray(start, start + length) })
    at = start + length
  }
  return elements
}
