// Stored tokens: creates, rotates and revokes them. The secret is returned once and stored nowhere.

import { createHash, randomBytes } from 'node:crypto'
import { optionInvalid } from './errors.ts'
import { Policy } from './server/settings/policy.ts'
import type { KeptToken, TokenScope, TokenStore } from './tokens.ts'

/** The beginning of each token, by which secret scanners and people recognise it. */
const PREFIX = 'lt_'

export interface NewToken {
  readonly name: string
  /** The time in milliseconds for which it works. `undefined`: until it is revoked. */
  readonly forMs: number | undefined
  readonly scope: TokenScope
}

/**
 * Adds a token and returns its secret. Throws `OPTION_INVALID` for a name that exists or is invalid, and for an invalid scope.
 */
export function addToken(store: TokenStore, { name, forMs, scope }: NewToken): string {
  if (!/^[\w.-]{1,64}$/.test(name))
    throw optionInvalid(`"${shownName(name)}" is not a name: letters, digits, dots, dashes and underscores.`)
  const secret = newSecret()
  const createdAtMs = Date.now()
  const kept: KeptToken = {
    name,
    hash: hashOf(secret),
    createdAtMs,
    ...(forMs !== undefined && { expiresAtMs: createdAtMs + forMs }),
    scope,
  }
  // Checked as the server will read them all: a name may be reserved only once.
  const rules = [...store.list(), kept].map(one => ({ ...one.scope, tokenHash: one.hash }))
  void new Policy(rules)
  if (!store.add(kept)) throw optionInvalid(`There is a token called ${name}: rotate it, or revoke it first.`)
  return secret
}

/** Returns the new secret of a token; the old one stops working. `undefined` if there is no such token. */
export function rotateToken(store: TokenStore, name: string): string | undefined {
  const secret = newSecret()
  return store.rehash(name, hashOf(secret)) ? secret : undefined
}

/** Returns the part of a token that may be shown. */
export function withoutHash({ hash: _hash, ...token }: KeptToken): Omit<KeptToken, 'hash'> {
  return token
}

function newSecret(): string {
  return PREFIX + randomBytes(32).toString('base64url')
}

function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex')
}

/** Returns a name with only the characters that a terminal shows unchanged. */
function shownName(name: string): string {
  return name.slice(0, 100).replace(/[^\x20-\x7e]/g, '?')
}
