// Reads DER that comes from outside: every length is checked, nothing is read past its end.

export interface DerElement {
  readonly tag: number
  readonly content: Uint8Array
}

/** The elements that follow each other in `bytes`; `undefined`: they are not DER. */
export function elementsOf(bytes: Uint8Array): readonly DerElement[] | undefined {
  const elements: DerElement[] = []
  let at = 0
  while (at < bytes.length) {
    const tag = bytes[at]!
    const first = bytes[at + 1]
    // A tag in several bytes, or a length without end: in no certificate.
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
