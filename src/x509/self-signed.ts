// A self-signed certificate, for handshakes in which no visitor has to trust it.

import { randomBytes } from 'node:crypto'
import type { Certificate } from '../certificates.ts'
import {
  alternativeNames,
  ECDSA_WITH_SHA256,
  keyPem,
  newKey,
  publicKeyInfo,
  signed,
} from './certificate-request.ts'
import { integer, objectId, pem, sequence, set, tagged, time, utf8String } from './der.ts'

const COMMON_NAME = objectId('2.5.4.3')
/** The validity in milliseconds before and after now, because the reader's clock may differ. */
const VALID_MS = 86_400_000

/** Makes a certificate. `extensions`: DER, in addition to the one with the name. */
export function selfSigned(name: string, nowMs: number, ...extensions: readonly Uint8Array[]): Certificate {
  const key = newKey()
  const subject = sequence(set(sequence(COMMON_NAME, utf8String('self-signed'))))
  const version3 = tagged(0, integer(Uint8Array.of(2)))
  const body = sequence(
    version3,
    integer(randomBytes(16)),
    ECDSA_WITH_SHA256,
    subject,
    sequence(time(nowMs - VALID_MS), time(nowMs + VALID_MS)),
    subject,
    publicKeyInfo(key),
    tagged(3, sequence(alternativeNames([name]), ...extensions)),
  )
  return { cert: pem('CERTIFICATE', signed(body, key)), key: keyPem(key) }
}
