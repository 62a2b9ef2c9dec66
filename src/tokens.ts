// Contract: stored tokens, each shown once and stored as a hash.

import type { GrantedKind } from './wire/tunnel-kind.ts'

/** The rights of a stored token, as a rule of the server's `tokens` has them, without the secret. */
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
  /** The name of the token: 1 to 64 letters, digits, dots, dashes and underscores. */
  readonly name: string
  /** The SHA-256 of the token, in hexadecimal. A token has 256 random bits, so nothing slower is needed against guessing. */
  readonly hash: string
  /** The time of its creation. All times are milliseconds since 1970. */
  readonly createdAtMs: number
  /** The time when it expires. `undefined` for never. */
  readonly expiresAtMs?: number
  /** The time of its last use, to the minute. */
  readonly lastUsedAtMs?: number
  readonly scope: TokenScope
}

/** Stores tokens. When a method returns, its data is written. Several processes may have the same store. */
export interface TokenStore {
  list(): readonly KeptToken[]
  /** Adds a token. Returns `false` if there is one of this name. */
  add(token: KeptToken): boolean
  /** Replaces the secret of a token. Returns `false` if there is no token of this name. */
  rehash(name: string, hash: string): boolean
  remove(name: string): boolean
  /** Stores when tokens were used last, by name. */
  used(times: ReadonlyMap<string, number>): void
  /** Returns a number that changes when another process has changed something. */
  version(): number
  close(): void
}

/** The identity in a verified token of an issuer. */
export interface TokenIdentity {
  readonly issuer: string
  readonly claims: Readonly<Record<string, unknown>>
  /** The time until which its clients may stay and reconnect, in milliseconds since 1970. */
  readonly endsAtMs: number
}

/** The rights of such a token. */
export interface ReadToken {
  /** The id: the same for all tokens that count together. */
  readonly id: string
  /** The name of the token in events and logs. */
  readonly name: string
  readonly scope: TokenScope
}

/** Why a token has no rights. `TOKEN_REFUSED` counts as a guess. */
export type TokenFault = 'TOKEN_REFUSED' | 'TOKEN_EXPIRED' | 'ISSUER_UNAVAILABLE'

/** Contract: a reader of tokens that others issue, such as JSON Web Tokens. */
export interface TokenReader {
  /** The maximum rights of its tokens, which the server checks at the start. */
  readonly scopes: readonly TokenScope[]
  /** Whether this looks like one of its tokens, without asking the issuer. */
  fits(token: string): boolean
  /** Reads a token of the client at `address`. Never rejects. */
  read(token: string, address: string): Promise<TokenIdentity | TokenFault>
  /** Returns the current rights of an identity. `undefined` if it has none. */
  scopeOf(identity: TokenIdentity): ReadToken | undefined
}
