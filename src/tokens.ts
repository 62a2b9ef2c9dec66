// Contract: tokens that are kept, each shown once and stored as a hash.

import type { GrantedKind } from './wire/tunnel-kind.ts'

/** What a kept token opens: as a rule of the server's `tokens`, without the secret. */
export interface TokenScope {
  readonly names?: readonly string[]
  readonly kinds?: readonly GrantedKind[]
  readonly tcpPorts?: string
  readonly udpPorts?: string
  readonly hosts?: readonly string[]
  readonly connect?: readonly string[]
  readonly maxTunnels?: number
  readonly maxPorts?: number
  readonly maxClients?: number
  readonly maxHosts?: number
  readonly requireGuard?: boolean
  readonly reserve?: boolean
  readonly rate?: { readonly limit: number; readonly windowMs: number }
  readonly bandwidth?: number
}

export interface KeptToken {
  /** Says whose it is: 1 to 64 letters, digits, dots, dashes and underscores. */
  readonly name: string
  /** SHA-256 of the token, hexadecimal. A token has 256 random bits, so nothing slower is needed against guessing. */
  readonly hash: string
  /** Milliseconds since 1970, as all times here. */
  readonly createdAtMs: number
  /** `undefined`: never. */
  readonly expiresAtMs?: number
  /** To the minute. */
  readonly lastUsedAtMs?: number
  readonly scope: TokenScope
}

/** A method that has returned has written. Several processes may have the same store. */
export interface TokenStore {
  list(): readonly KeptToken[]
  /** `false`: there is one of this name. */
  add(token: KeptToken): boolean
  /** Another secret for the same token. `false`: there is none of this name. */
  rehash(name: string, hash: string): boolean
  remove(name: string): boolean
  /** When tokens were used last, by name. */
  used(times: ReadonlyMap<string, number>): void
  /** A number that is another one when a different process has changed something. */
  version(): number
  close(): void
}

/** Whose a token of an issuer is, once it was verified. */
export interface TokenIdentity {
  readonly issuer: string
  readonly claims: Readonly<Record<string, unknown>>
  /** Until when its clients may stay, and come back. */
  readonly endsAtMs: number
}

/** What such a token opens. */
export interface ReadToken {
  /** The same for all tokens that count together. */
  readonly id: string
  /** What it is called in events and logs. */
  readonly name: string
  readonly scope: TokenScope
}

/** Why a token opens nothing. `TOKEN_REFUSED` counts as a guess. */
export type TokenFault = 'TOKEN_REFUSED' | 'TOKEN_EXPIRED' | 'TOKEN_ISSUER_UNAVAILABLE'

/** Contract: reads tokens that others make, such as JSON Web Tokens of an issuer. */
export interface TokenReader {
  /** What its tokens may open at most, for the server to check when it starts. */
  readonly scopes: readonly TokenScope[]
  /** Whether this looks like one of its tokens. Nothing is asked for that. */
  fits(token: string): boolean
  /** Never rejects. `address`: of the client that shows it. */
  read(token: string, address: string): Promise<TokenIdentity | TokenFault>
  /** What it opens now; `undefined`: nothing. */
  scopeOf(identity: TokenIdentity): ReadToken | undefined
}
