// The id of a certificate in RFC 9773: the key that signed it and its serial number, as in its DER.

import { X509Certificate } from 'node:crypto'

const SEQUENCE = 0x30
const INTEGER = 0x02
const OCTET_STRING = 0x04
const EXTENSIONS = 0xa3
/** The tag `keyIdentifier [0]` of an AuthorityKeyIdentifier. */
const KEY_IDENTIFIER = 0x80
/** The object identifier 2.5.29.35. */
const AUTHORITY_KEY_IDENTIFIER = Buffer.from([0x55, 0x1d, 0x23])

/** Returns the id of the first certificate in a PEM chain. `undefined` if it does not name the key that signed it. */
export function renewalId(pem: string): string | undefined {
  const body = elementsOf(child(elementsOf(new X509Certificate(pem).raw), 0)?.content ?? new Uint8Array())
  const fields = elementsOf(body?.[0]?.content ?? new Uint8Array())
  const serial = fields?.find(({ tag }) => tag === INTEGER)
  const list = fields?.find(({ tag }) => tag === EXTENSIONS)
  const extensions = elementsOf(
    elementsOf(list?.content ?? new Uint8Array())?.[0]?.content ?? new Uint8Array(),
  )
  for (const extension of extensions ?? []) {
    const parts = elementsOf(extension.content)
    if (!parts || !AUTHORITY_KEY_IDENTIFIER.equals(parts[0]?.content ?? new Uint8Array())) continue
    const value = parts.find(({ tag }) => tag === OCTET_STRING)
    const identifier = child(elementsOf(value?.content ?? new Uint8Array()), 0)
    const key = elementsOf(identifier?.content ?? new Uint8Array())?.find(({ tag }) => tag === KEY_IDENTIFIER)
    if (key === undefined || serial === undefined) return undefined
    return `${base64url(key.content)}.${base64url(serial.content)}`
  }
  return undefined
}

function child(elements: readonly DerElement[] | undefined, index: number): DerElement | undefined {
  const element = elements?.[index]
  return element?.tag === SEQUENCE ? element : undefined
}

const base64url = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64url')

interface DerElement {
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
