// The certificate request (PKCS #10, RFC 2986) that an order is finalized with: names and a P-256 key, no subject.

import { createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { bitString, element, integer, objectId, octetString, sequence, set, tagged } from './der.ts'

export const ECDSA_WITH_SHA256: Buffer = sequence(objectId('1.2.840.10045.4.3.2'))
const EXTENSION_REQUEST = objectId('1.2.840.113549.1.9.14')
const SUBJECT_ALTERNATIVE_NAME = objectId('2.5.29.17')
/** The tag `dNSName` of a GeneralName. */
const DNS_NAME = 0x82

export function newKey(): KeyObject {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
}

export function keyPem(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString()
}

export function alternativeNames(names: readonly string[]): Buffer {
  const list = sequence(...names.map(name => element(DNS_NAME, Buffer.from(name))))
  return sequence(SUBJECT_ALTERNATIVE_NAME, octetString(list))
}

/** Signs `body`: returns `SEQUENCE { body, algorithm, signature }`, the form of requests and certificates. */
export function signed(body: Buffer, key: KeyObject): Buffer {
  return sequence(body, ECDSA_WITH_SHA256, bitString(sign('sha256', body, key)))
}

export function publicKeyInfo(key: KeyObject): Buffer {
  return createPublicKey(key).export({ type: 'spki', format: 'der' })
}

export function certificateRequest(names: readonly string[], key: KeyObject): Buffer {
  const extensions = tagged(0, sequence(EXTENSION_REQUEST, set(sequence(alternativeNames(names)))))
  const version = integer(Uint8Array.of(0))
  const noSubject = sequence()
  return signed(sequence(version, noSubject, publicKeyInfo(key), extensions), key)
}
