// Contract: tokens that are kept, each shown once and stored as a hash.

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
  /** Says whose it is: 1 to 64 letters, digits, dots, dashes and underscores. */
  readonly name: string
  /** The SHA-256 of the token, in hexadecimal. A token has 256 random bits, so nothing slower is needed against guessing. */
  readonly hash: string
  /** Milliseconds since 1970, as all times here. */
  readonly createdAtMs: number
  /** The time when it expires. `undefined` for never. */
  readonly expiresAtMs?: number
  /** The time of its last use, to the minute. */
  readonly lastUsedAtMs?: number
  readonly scope: TokenScope
}

/** A method that has returned has written. Several processes may have the same store. */
export interface TokenStore {
  list(): readonly KeptToken[]
  /** Adds a token. Returns `false` if there is one of this name. */
  add(token: KeptToken): boolean
  /** Replaces the secret of a token. `false`: there is none of this name. */
  rehash(name: string, hash: string): boolean
  remove(name: string): boolean
  /** Stores when tokens were used last, by name. */
  used(times: ReadonlyMap<string, number>): void
  /** A number that is another one when a different process has changed something. */
  version(): number
  close(): void
}

/** The identity in a verified token of an issuer. */
export interface TokenIdentity {
  readonly issuer: string
  readonly claims: Readonly<Record<string, unknown>>
  /** The time until which its clients may stay, and come back. */
  readonly endsAtMs: number
}

/** The rights of such a token. */
export interface ReadToken {
  /** The same for all tokens that count together. */
  readonly id: string
  /** The name of the token in events and logs. */
  readonly name: string
  readonly scope: TokenScope
}

/** The reason why a token has no rights. `TOKEN_REFUSED` counts as a guess. */
export type TokenFault = 'TOKEN_REFUSED' | 'TOKEN_EXPIRED' | 'ISSUER_UNAVAILABLE'

/** A contract for readers of tokens that others make, such as JSON Web Tokens of an issuer. */
export interface TokenReader {
  /** The most that its tokens may open, for the server to check when it starts. */
  readonly scopes: readonly TokenScope[]
  /** Whether this looks like one of its tokens. Nothing is asked for that. */
  fits(token: string): boolean
  /** Reads a token of the client at `address`. Never rejects. `address`: of the client that shows it. */
  read(token: string, address: string): Promise<TokenIdentity | TokenFault>
  /** Returns the rights of an identity now. `undefined` if it has none. */
  scopeOf(identity: TokenIdentity): ReadToken | undefined
}
