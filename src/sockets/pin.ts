// Further demands on the far side of TLS: the public key that was written down before, and the protocol that ALPN has to
// choose.

import { createHash, type KeyObject } from 'node:crypto'
import { failure } from './gate.ts'

/** Returns the fault of the key. `undefined` if it is the pinned one. */
export function pinFault(pin: string, key: KeyObject | undefined): Error | undefined {
  const shown = key === undefined ? 'none' : pinOf(key)
  if (shown === pin) return undefined
  return failure('ERR_TLS_CERT_PIN', `its key is ${shown}, and ${pin} is pinned`)
}

/** Returns a pin as curl writes it: `sha256//` and base64 of the SHA-256 of the key (SubjectPublicKeyInfo, DER). */
function pinOf(key: KeyObject): string {
  const bytes = key.export({ type: 'spki', format: 'der' })
  return `sha256//${createHash('sha256').update(bytes).digest('base64')}`
}

/** Returns the fault of the protocol that ALPN chose. `undefined` if it is the wanted one. */
export function protocolFault(wanted: string | undefined, chosen: string): Error | undefined {
  if (wanted === undefined || wanted === chosen) return undefined
  return failure('ERR_TLS_ALPN', `it chose ${chosen || 'no protocol'} by ALPN, and ${wanted} is wanted`)
}
