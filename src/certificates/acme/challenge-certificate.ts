// The certificate for a TLS-ALPN-01 check (RFC 8737): self-signed, with the proof in an extension.

import { createHash } from 'node:crypto'
import type { Certificate } from '../../certificates.ts'
import { objectId, octetString, sequence, TRUE } from '../../x509/der.ts'
import { selfSigned } from '../../x509/self-signed.ts'

const ACME_IDENTIFIER = objectId('1.3.6.1.5.5.7.1.31')

/**
 * Makes the certificate. `keyAuthorization`: the token and the thumbprint of the account's key, with a dot between
 * them.
 */
export function challengeCertificate(name: string, keyAuthorization: string, nowMs: number): Certificate {
  const proof = octetString(createHash('sha256').update(keyAuthorization).digest())
  return selfSigned(name, nowMs, sequence(ACME_IDENTIFIER, TRUE, octetString(proof)))
}
