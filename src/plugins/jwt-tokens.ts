// Tokens of clients that an issuer makes, as JSON Web Tokens, so that a CI system needs no stored secret.

import { createHash } from 'node:crypto'
import type { JWTPayload } from 'jose'
import { optionInvalid } from '../errors.ts'
import { asciiLowerCase } from '../http/characters.ts'
import type { ReadToken, TokenFault, TokenIdentity, TokenReader, TokenScope } from '../tokens.ts'
import { sourceOf } from './addresses.ts'
import { ambiguityOf, hasClaims, valuesOf, withClaims, withoutClaims } from './claims.ts'
import type { Issuer } from './guarding.ts'
import { IssuerKeys, isUnreachable, TOLERANCE_SECONDS, verifyJwt } from './jwt.ts'

/** The maximum number of verified tokens, of about 1 KB each. If exceeded, the one seen first is forgotten. */
const MAX_KNOWN = 10_000
/** The maximum length of a token. GitHub's have 2,000 characters. */
const MAX_TOKEN_CHARS = 8_192
const MAX_NAME_CHARS = 128

/** Tokens of one issuer, and what they open. A missing key is not restricted, as in `TokenRule`. */
export interface JwtTokenRule extends Omit<TokenScope, 'reserve'>, Issuer {
  /** The audience, as in the tokens' `aud`: a text that tokens for other services do not have, such as the URL of this server. */
  readonly audience: string
  /**
   * Claims that a token must have: the whole value, with `*` for any characters. Of a claim that is a list, one of them. Default any:
   * then everybody to whom the issuer gives tokens gets in.
   */
  readonly claims?: Readonly<Record<string, string>>
  /** The name of such a token in events and access logs. Default: its `sub`. */
  readonly name?: string
  /**
   * The time for which a client may stay, and come back from the same address, with one token, from its first use: tokens of CI
   * systems are valid for minutes, and jobs run longer. Milliseconds. Default 3,600,000 (1 h). `0`: as long as the token itself
   * is good. After it: `TOKEN_EXPIRED`.
   */
  readonly sessionMs?: number
}

/**
 * Tokens of issuers, for `tokenReader` of a server. The first rule that a token fits counts. In `names` and `hosts`, `{claim}` stands for
 * that claim of the token: letters, digits and single dashes, between two dashes or at an end: `names: ['{repository_owner}--*']`. In a name
 * with one claim and no `*`, a slash of the claim becomes two dashes. A token whose claim has anything else is refused. Only the issuers of
 * the rules are asked for keys, and each at most every `keyCooldownMs`. Throws `OPTION_INVALID`.
 *
 * ```ts
 * import { jwtTokens, TunnelServer } from 'localtunnels'
 *
 * const tokenReader = jwtTokens([
 *   {
 *     issuer: 'https://token.actions.githubusercontent.com',
 *     audience: 'https://tunnel.example',
 *     claims: { repository: 'me/shop', ref: 'refs/heads/*' },
 *     names: ['shop-ci-*'],
 *     kinds: ['http'],
 *   },
 * ])
 * const server = new TunnelServer({ port: 0, tokenReader })
 * ```
 */
export function jwtTokens(rules: readonly JwtTokenRule[]): TokenReader {
  for (const rule of rules) check(rule)
  return new JwtTokens(rules)
}

class JwtTokens implements TokenReader {
  readonly scopes: readonly TokenScope[]
  readonly #rules: readonly JwtTokenRule[]
  readonly #keys: ReadonlyMap<string, IssuerKeys>
  /** The identities by token and the network that showed it. */
  readonly #known = new Map<string, TokenIdentity>()

  constructor(rules: readonly JwtTokenRule[]) {
    this.#rules = rules
    this.#keys = new Map(rules.map(rule => [rule.issuer, new IssuerKeys(rule)]))
    this.scopes = rules.map(rule => filled(scopeIn(rule), withoutClaims) ?? {})
  }

  fits(token: string): boolean {
    return token.length <= MAX_TOKEN_CHARS && /^[\w-]+\.[\w-]+\.[\w-]+$/.test(token)
  }

  async read(token: string, address: string): Promise<TokenIdentity | TokenFault> {
    // Someone who reads an old token in a log comes from another address.
    const key = createHash('sha256')
      .update(`${sourceOf(address)} ${token}`)
      .digest('base64')
    const known = this.#known.get(key)
    if (known !== undefined && known.endsAtMs > Date.now()) return known
    const issuer = issuerOf(token)
    const keys = issuer === undefined ? undefined : this.#keys.get(issuer)
    if (issuer === undefined || keys === undefined) return 'TOKEN_REFUSED'
    let fault: TokenFault = 'TOKEN_REFUSED'
    for (const audience of new Set(this.#rules.flatMap(one => (one.issuer === issuer ? one.audience : [])))) {
      const claims = await claimsOf(token, issuer, audience, keys)
      if (typeof claims === 'string') {
        if (claims !== 'TOKEN_REFUSED') fault = claims
        continue
      }
      const rule = this.#ruleFor(issuer, claims)
      if (rule === undefined) continue
      const { sessionMs = 3_600_000 } = rule
      const ownEndMs = ((claims.exp ?? 0) + TOLERANCE_SECONDS) * 1_000
      const endsAtMs = Math.max(ownEndMs, sessionMs === 0 ? 0 : Date.now() + sessionMs)
      const identity = { issuer, claims, endsAtMs }
      this.#remember(key, identity)
      return identity
    }
    return fault
  }

  scopeOf({ issuer, claims }: TokenIdentity): ReadToken | undefined {
    const rule = this.#ruleFor(issuer, claims)
    const scope = rule && filled(scopeIn(rule), pattern => withClaims(pattern, claims))
    if (rule === undefined || scope === undefined) return undefined
    const { audience, claims: wanted = {}, name } = rule
    return {
      id: JSON.stringify([issuer, audience, wanted, scope.names, scope.hosts]),
      name: name ?? plainText(typeof claims.sub === 'string' ? claims.sub : issuer),
      scope,
    }
  }

  #remember(key: string, identity: TokenIdentity): void {
    this.#known.delete(key)
    this.#known.set(key, identity)
    const [oldest = ''] = this.#known.keys()
    if (this.#known.size > MAX_KNOWN) this.#known.delete(oldest)
  }

  #ruleFor(issuer: string, claims: JWTPayload): JwtTokenRule | undefined {
    return this.#rules.find(
      rule =>
        rule.issuer === issuer &&
        valuesOf(claims.aud).includes(rule.audience) &&
        hasClaims(claims, rule.claims),
    )
  }
}

async function claimsOf(
  token: string,
  issuer: string,
  audience: string,
  keys: IssuerKeys,
): Promise<JWTPayload | TokenFault> {
  try {
    return await verifyJwt(token, keys, { issuer, audience })
  } catch (error) {
    // Its signature is valid, so this detail reaches no stranger.
    if (error instanceof Error && 'code' in error && error.code === 'ERR_JWT_EXPIRED') return 'TOKEN_EXPIRED'
    return (await isUnreachable(error)) ? 'ISSUER_UNAVAILABLE' : 'TOKEN_REFUSED'
  }
}

/** Returns the issuer that an unverified token names, to find its keys. */
function issuerOf(token: string): string | undefined {
  try {
    const payload: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
    if (
      typeof payload === 'object' &&
      payload !== null &&
      'iss' in payload &&
      typeof payload.iss === 'string'
    )
      return payload.iss
  } catch {
    // Not JSON, so not a token.
  }
  return undefined
}

function scopeIn({
  issuer: _issuer,
  audience: _audience,
  claims: _claims,
  name: _name,
  sessionMs: _sessionMs,
  jwksUrl: _jwksUrl,
  keyCooldownMs: _keyCooldownMs,
  ...scope
}: JwtTokenRule): TokenScope {
  return scope
}

/** Replaces the names of claims in a scope by the claims. `undefined` if the token lacks one. */
function filled(scope: TokenScope, fill: (pattern: string) => string | undefined): TokenScope | undefined {
  const { names, hosts, connect, ...rest } = scope
  const made = { names: names?.map(fill), hosts: hosts?.map(fill), connect: connect?.map(fill) }
  const isWhole = (all: readonly (string | undefined)[] = []): all is readonly string[] =>
    !all.includes(undefined)
  if (!isWhole(made.names) || !isWhole(made.hosts) || !isWhole(made.connect)) return undefined
  return {
    ...rest,
    ...(made.names && { names: made.names.map(asciiLowerCase) }),
    ...(made.hosts && { hosts: made.hosts }),
    ...(made.connect && { connect: made.connect.map(asciiLowerCase) }),
  }
}

function plainText(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, '?').slice(0, MAX_NAME_CHARS)
}

function check({
  issuer,
  audience,
  claims = {},
  sessionMs = 0,
  jwksUrl,
  keyCooldownMs = 0,
  names = [],
  hosts = [],
  connect = [],
}: JwtTokenRule): void {
  for (const pattern of [...names, ...hosts, ...connect]) {
    const ambiguity = ambiguityOf(pattern)
    if (ambiguity !== undefined)
      throw optionInvalid(`tokenReader: "${pattern}" could be a name of several tokens: ${ambiguity}.`)
  }
  for (const url of [issuer, ...(jwksUrl === undefined ? [] : [jwksUrl])])
    if (!(URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)))
      throw optionInvalid(`tokenReader: "${url}" is not an http:// or https:// URL.`)
  if (audience === '')
    throw optionInvalid('tokenReader: an audience says for whom tokens are, and is not empty.')
  for (const [name, value] of Object.entries(claims))
    if (value === '') throw optionInvalid(`tokenReader: the claim ${name} must have a value, or "*".`)
  for (const [name, ms] of Object.entries({ sessionMs, keyCooldownMs }))
    if (!(Number.isSafeInteger(ms) && ms >= 0 && ms <= MAX_MS))
      throw optionInvalid(`tokenReader: ${name} must be from 0 to ${MAX_MS}, not ${ms}.`)
}

/** The longest time of a timer in JavaScript. */
const MAX_MS = 2_147_483_647
