// A sign-in method: JSON Web Tokens of an issuer that the operator listed, such as those of a CI system.

import { createHash } from 'node:crypto'
import type { JWTPayload, JWTVerifyGetKey } from 'jose'
import { TunnelError } from '../errors.ts'
import type { JwtRule } from '../guard.ts'
import type { Refusal } from '../plugin.ts'
import { refusedWithJson } from './answers.ts'
import { hasClaims } from './claims.ts'
import type { Issuer } from './guarding.ts'
import { credentialsOf, type Entry, type Recognised, type Request, type Way } from './way.ts'

/** The accepted algorithms. HS256 and `none` are excluded, because no secret is shared with the issuer. */
const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA']
/** The tolerated difference of clocks, in seconds. */
export const TOLERANCE_SECONDS = 30
/** The maximum number of verified tokens that are remembered, so that each is verified once. */
const MAX_KNOWN = 1_000
const FETCH_TIMEOUT_MS = 5_000
const COOLDOWN_MS = 30_000
const MAX_AGE_MS = 600_000

export class Jwt implements Way {
  readonly kind = 'jwt'
  readonly mark: string
  readonly challenge: string
  readonly #rule: JwtRule
  readonly #keys: IssuerKeys
  readonly #known = new Map<string, Entry & { readonly verifiedAtMs: number }>()

  constructor(rule: JwtRule, keys: IssuerKeys, realm: string) {
    this.#rule = rule
    this.#keys = keys
    this.mark = createHash('sha256').update(JSON.stringify(rule)).digest('base64url').slice(0, 12)
    this.challenge = `Bearer realm="${realm}"`
  }

  recognise(visitor: Request): Recognised | Promise<Recognised> {
    const token = credentialsOf(visitor, 'bearer')
    if (token === undefined || token.split('.').length !== 3) return undefined
    const key = createHash('sha256').update(token).digest('base64')
    const known = this.#known.get(key)
    const now = Date.now()
    // A key that its issuer has withdrawn must not count for the whole lifetime of its tokens.
    if (known !== undefined && (known.endsAt ?? 0) > now && now - known.verifiedAtMs < MAX_AGE_MS)
      return known
    return this.#verify(token, key, known)
  }

  async #verify(token: string, key: string, known?: Entry): Promise<Entry | { readonly denied: Refusal }> {
    const { issuer, audience, claims } = this.#rule
    try {
      const payload = await verifyJwt(token, this.#keys, { issuer, audience })
      if (!hasClaims(payload, claims)) return DENIED
      const user: unknown = payload.sub
      if (user !== undefined && typeof user !== 'string') return DENIED
      const entry = {
        used: ['authorization'],
        endsAt: ((payload.exp ?? 0) + TOLERANCE_SECONDS) * 1_000,
        verifiedAtMs: Date.now(),
        ...(user !== undefined && { user }),
      }
      this.#known.delete(key)
      this.#known.set(key, entry)
      const [oldest = ''] = this.#known.keys()
      if (this.#known.size > MAX_KNOWN) this.#known.delete(oldest)
      return entry
    } catch (error) {
      if (!(await isUnreachable(error))) return DENIED
      // An issuer that is away has not withdrawn keys.
      return (known?.endsAt ?? 0) > Date.now() && known !== undefined ? known : UNAVAILABLE
    }
  }
}

/** Returns the claims of a valid token of this issuer for this audience. Rejects with jose's error. */
export async function verifyJwt(
  token: string,
  keys: IssuerKeys,
  { issuer, audience }: { readonly issuer: string; readonly audience: string },
): Promise<JWTPayload> {
  const { jwtVerify } = await import('jose')
  const { payload } = await jwtVerify(token, await keys.find(), {
    issuer,
    audience,
    algorithms: ALGORITHMS,
    clockTolerance: TOLERANCE_SECONDS,
    requiredClaims: ['exp'],
  })
  return payload
}

/** Whether a token could not be checked because the issuer's keys were not available. */
export async function isUnreachable(error: unknown): Promise<boolean> {
  const { errors } = await import('jose')
  const isTokens = error instanceof errors.JOSEError && !(error instanceof errors.JWKSTimeout)
  // An error of the fetch: a JOSEError without a subclass means that the response was invalid.
  return !isTokens || error.constructor === errors.JOSEError
}

const DENIED = { denied: refusedWithJson('CREDENTIALS_REFUSED') }
const UNAVAILABLE = { denied: refusedWithJson('ISSUER_UNAVAILABLE', [['retry-after', '5']]) }

/** The keys of an issuer, fetched when first needed and again when they change. All guards with the issuer share them. */
export class IssuerKeys {
  readonly #issuer: Issuer
  #keys: Promise<JWTVerifyGetKey> | undefined

  constructor(issuer: Issuer) {
    this.#issuer = issuer
  }

  find(): Promise<JWTVerifyGetKey> {
    this.#keys ??= this.#load().catch(error => {
      this.#keys = undefined
      throw error
    })
    return this.#keys
  }

  async #load(): Promise<JWTVerifyGetKey> {
    const { createRemoteJWKSet } = await import('jose')
    return createRemoteJWKSet(new URL(this.#issuer.jwksUrl ?? (await jwksUrlOf(this.#issuer.issuer))), {
      timeoutDuration: FETCH_TIMEOUT_MS,
      cooldownDuration: this.#issuer.keyCooldownMs ?? COOLDOWN_MS,
      cacheMaxAge: MAX_AGE_MS,
    })
  }
}

async function jwksUrlOf(issuer: string): Promise<string> {
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
  const answer = await fetch(url, { signal: AbortSignal.timeout(FETCH_TIMEOUT_MS), redirect: 'error' })
  const configuration: unknown = await answer.json()
  if (typeof configuration === 'object' && configuration !== null && 'jwks_uri' in configuration)
    return String(configuration.jwks_uri)
  throw new TunnelError('ISSUER_UNAVAILABLE', `${url} does not say where the keys are.`)
}
