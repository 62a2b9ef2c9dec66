// The certificate that answers a TLS-ALPN-01 check (RFC 8737): signed by itself, with the proof in an extension.

import { createHash, randomBytes } from 'node:crypto'
import type { Certificate } from '../../certificates.ts'
import {
  alternativeNames,
  ECDSA_WITH_SHA256,
  keyPem,
  newKey,
  publicKeyInfo,
  signed,
} from './certificate-request.ts'
import { integer, objectId, octetString, pem, sequence, set, TRUE, tagged, time, utf8String } from './der.ts'

const COMMON_NAME = objectId('2.5.4.3')
const ACME_IDENTIFIER = objectId('1.3.6.1.5.5.7.1.31')
/** Either side of now: the authority's clock may differ. */
const VALID_MS = 86_400_000

/** `keyAuthorization`: the token and the thumbprint of the account's key, with a dot between them. */
export function challengeCertificate(name: string, keyAuthorization: string, nowMs: number): Certificate {
  const key = newKey()
  const proof = octetString(createHash('sha256').update(keyAuthorization).digest())
  const identifier = sequence(ACME_IDENTIFIER, TRUE, octetString(proof))
  const subject = sequence(set(sequence(COMMON_NAME, utf8String('acme challenge'))))
  const version3 = tagged(0, integer(Uint8Array.of(2)))
  const body = sequence(
    version3,
    integer(randomBytes(16)),
    ECDSA_WITH_SHA256,
    subject,
    sequence(time(nowMs - VALID_MS), time(nowMs + VALID_MS)),
    subject,
    publicKeyInfo(key),
    tagged(3, sequence(alternativeNames([name]), identifier)),
  )
  return { cert: pem('CERTIFICATE', signed(body, key)), key: keyPem(key) }
}
