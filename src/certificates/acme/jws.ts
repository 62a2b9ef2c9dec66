// Signed requests (RFC 8555, 6.2): JSON Web Signatures with ES256, and HS256 for an external account.

import { createHash, createHmac, createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto'

/** The `kid` and HMAC key of an account that the user already has at the authority (RFC 8555 section 7.3.4). */
export interface ExternalAccount {
  readonly keyId: string
  /** The key in base64url, as authorities provide it. */
  readonly hmacKey: string
}

interface PublicJwk {
  readonly crv: string
  readonly kty: string
  readonly x: string
  readonly y: string
}

const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

export class AccountKey {
  readonly #key: KeyObject
  readonly jwk: PublicJwk
  /** The thumbprint of RFC 7638. */
  readonly thumbprint: string

  /** Reads a P-256 key from PEM. */
  constructor(pem: string) {
    this.#key = createPrivateKey(pem)
    const { crv, kty, x, y } = createPublicKey(this.#key).export({ format: 'jwk' })
    // The four members of an elliptic key, in the order of RFC 7638: by name.
    this.jwk = { crv, kty, x, y } as PublicJwk
    this.thumbprint = createHash('sha256').update(JSON.stringify(this.jwk)).digest('base64url')
  }

  /** Signs a request. `payload` is `''` for POST-as-GET. `keyId`: the account's URL; without it, the key itself is included. */
  sign(url: string, nonce: string, payload: unknown, keyId: string | undefined): string {
    const identity = keyId === undefined ? { jwk: this.jwk } : { kid: keyId }
    const head = encoded({ alg: 'ES256', nonce, url, ...identity })
    const body = payload === '' ? '' : encoded(payload)
    const signature = sign('sha256', Buffer.from(`${head}.${body}`), {
      key: this.#key,
      dsaEncoding: 'ieee-p1363',
    })
    return JSON.stringify({ protected: head, payload: body, signature: signature.toString('base64url') })
  }

  /** Returns the `externalAccountBinding` of a new account. */
  bind(url: string, { keyId, hmacKey }: ExternalAccount): object {
    const head = encoded({ alg: 'HS256', kid: keyId, url })
    const body = encoded(this.jwk)
    const signature = createHmac('sha256', Buffer.from(hmacKey, 'base64url')).update(`${head}.${body}`)
    return { protected: head, payload: body, signature: signature.digest('base64url') }
  }
}
