// A sign-in method: tokens that machines send as `Authorization: Bearer`.

import { timingSafeEqual } from 'node:crypto'
import { sha256 } from '../own-guard.ts'
import { refusedWithJson } from './answers.ts'
import { credentialsOf, type Recognised, type Request, type Way } from './way.ts'

export class Bearer implements Way {
  readonly kind = 'bearer'
  readonly mark: string
  readonly challenge: string
  readonly #hashes: readonly Buffer[]

  /** Makes the sign-in method. `hashes`: SHA-256, base64url. */
  constructor(hashes: readonly string[], realm: string) {
    this.#hashes = hashes.map(hash => Buffer.from(hash, 'base64url'))
    this.mark = sha256(hashes.join(' ')).toString('base64url').slice(0, 12)
    this.challenge = `Bearer realm="${realm}"`
  }

  recognise(visitor: Request): Recognised {
    const token = credentialsOf(visitor, 'bearer')
    if (token === undefined) return undefined
    const hash = sha256(token)
    let isKnown = false
    // All are compared, so that time says nothing about which one matched.
    for (const one of this.#hashes)
      if (one.length === hash.length && timingSafeEqual(one, hash)) isKnown = true
    return isKnown ? ENTRY : DENIED
  }
}

const ENTRY = { used: ['authorization'] } as const
const DENIED = { denied: refusedWithJson('CREDENTIALS_REFUSED') }
