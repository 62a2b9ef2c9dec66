// A sign-in method: tokens that machines send as `Authorization: Bearer`, or in a header that the guard names.

import { timingSafeEqual } from 'node:crypto'
import { sha256 } from '../own-guard.ts'
import { refusedWithJson } from './answers.ts'
import { credentialsOf, type Recognised, type Request, type Way } from './way.ts'

export class Bearer implements Way {
  readonly kind = 'bearer'
  readonly mark: string
  /** The scheme of the challenge. `undefined` for another header, for which HTTP has no scheme. */
  readonly challenge?: string
  readonly #header: string | undefined
  readonly #entry: Recognised
  readonly #hashes: readonly Buffer[]

  /** Makes the sign-in method. `hashes`: SHA-256, base64url. `header`: in lower case. */
  constructor(hashes: readonly string[], realm: string, header?: string) {
    this.#header = header
    this.#entry = { used: [header ?? 'authorization'] }
    this.#hashes = hashes.map(hash => Buffer.from(hash, 'base64url'))
    this.mark = sha256([...hashes, ...(header === undefined ? [] : [header])].join(' '))
      .toString('base64url')
      .slice(0, 12)
    if (header === undefined) this.challenge = `Bearer realm="${realm}"`
  }

  recognise(visitor: Request): Recognised {
    const token =
      this.#header === undefined ? credentialsOf(visitor, 'bearer') : visitor.head.header(this.#header)
    if (token === undefined) return undefined
    const hash = sha256(token)
    let isKnown = false
    // Compares all of them, so that the time does not show which one matched.
    for (const one of this.#hashes)
      if (one.length === hash.length && timingSafeEqual(one, hash)) isKnown = true
    return isKnown ? this.#entry : DENIED
  }
}

const DENIED = { denied: refusedWithJson('CREDENTIALS_REFUSED') }
