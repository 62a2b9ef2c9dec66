// Pinning: the far side's public key has to be one that was written down before.

import { createHash, type KeyObject } from 'node:crypto'
import { failure } from './gate.ts'

/** What is wrong with the key; `undefined`: it is the one. */
export function pinFault(pin: string, key: KeyObject | undefined): Error | undefined {
  const shown = key === undefined ? 'none' : pinOf(key)
  if (shown === pin) return undefined
  return failure('ERR_TLS_CERT_PIN', `its key is ${shown}, and ${pin} is pinned`)
}

/** As curl writes it: `sha256//` and base64 of the SHA-256 of the key (SubjectPublicKeyInfo, DER). */
function pinOf(key: KeyObject): string {
  const bytes = key.export({ type: 'spki', format: 'der' })
  return `sha256//${createHash('sha256').update(bytes).digest('base64')}`
}
