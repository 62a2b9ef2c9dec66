// Checks of the far side in addition to TLS: the pinned public key, and the protocol that ALPN must choose.

import { createHash, type KeyObject } from 'node:crypto'
import { failure } from './gate.ts'

/** Returns the error if the key is not the pinned one. `undefined` if it is. */
export function pinFault(pin: string, key: KeyObject | undefined): Error | undefined {
  const shown = key === undefined ? 'none' : pinOf(key)
  if (shown === pin) return undefined
  return failure('ERR_TLS_CERT_PIN', `its key is ${shown}, and ${pin} is pinned`)
}

/** Returns a pin in curl's form: `sha256//` and base64 of the SHA-256 of the key (SubjectPublicKeyInfo, DER). */
function pinOf(key: KeyObject): string {
  const bytes = key.export({ type: 'spki', format: 'der' })
  return `sha256//${createHash('sha256').update(bytes).digest('base64')}`
}

/** Returns the error if ALPN chose another protocol. `undefined` if it chose the wanted one. */
export function protocolFault(wanted: string | undefined, chosen: string): Error | undefined {
  if (wanted === undefined || wanted === chosen) return undefined
  return failure('ERR_TLS_ALPN', `it chose ${chosen || 'no protocol'} by ALPN, and ${wanted} is wanted`)
}
