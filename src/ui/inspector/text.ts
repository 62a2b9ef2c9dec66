// Bytes as text, by the charset of their Content-Type.

export function mimeOf(type: string): string {
  return type.split(';')[0]!.trim().toLowerCase()
}

/** Invalid bytes become �. The default charset is UTF-8. */
export function textOf(bytes: Uint8Array, type: string): string {
  const charset = /;\s*charset\s*=\s*"?([\w.:-]+)/i.exec(type)?.[1]
  try {
    return new TextDecoder(charset).decode(bytes)
  } catch {
    // No browser knows this charset.
    return new TextDecoder().decode(bytes)
  }
}

/** Whether more than a tenth of the characters are not text. */
export function isBinary(bytes: Uint8Array, type: string): boolean {
  const text = textOf(bytes.subarray(0, 4_096), type)
  const odd = text.match(/(?!\s)\p{Cc}|\ufffd/gu)?.length ?? 0
  return odd > text.length / 10
}
