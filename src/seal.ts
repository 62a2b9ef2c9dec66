// Small signed texts: the content of a link or session, with proof that the holder of the key wrote it.

import { createHmac, timingSafeEqual } from 'node:crypto'

/** The maximum length of a sealed text. Longer texts are ignored, because links and cookies come from strangers. */
const MAX_SEALED_CHARS = 2_048

/**
 * Returns `content` with its signature, in characters that URLs and cookies accept. `purpose` keeps one kind of text
 * from being used as another.
 */
export function seal(key: string, purpose: string, content: object): string {
  const text = Buffer.from(JSON.stringify(content)).toString('base64url')
  return `${text}.${signatureOf(key, purpose, text)}`
}

/** Returns the content of a text that `seal` made with this key and purpose. `undefined` for any other. */
export function unseal(key: string, purpose: string, sealed: string): Record<string, unknown> | undefined {
  if (sealed.length > MAX_SEALED_CHARS) return undefined
  const dot = sealed.indexOf('.')
  if (dot < 0) return undefined
  const text = sealed.slice(0, dot)
  const given = Buffer.from(sealed.slice(dot + 1))
  const wanted = Buffer.from(signatureOf(key, purpose, text))
  if (given.length !== wanted.length || !timingSafeEqual(given, wanted)) return undefined
  try {
    return { ...JSON.parse(Buffer.from(text, 'base64url').toString()) }
  } catch {
    // The signature is right, but the content is not JSON: another version wrote it.
    return undefined
  }
}

function signatureOf(key: string, purpose: string, text: string): string {
  return createHmac('sha256', key).update(`${purpose}\n${text}`).digest('base64url')
}
