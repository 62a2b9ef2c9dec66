// A way in: accounts of an OpenID Connect issuer, by the code flow with PKCE. The library is installed by the operator.

import { createHash, randomBytes } from 'node:crypto'
import type { Configuration } from 'openid-client'
import { type ErrorCode, TunnelError } from '../errors.ts'
import { GUARD_PATH, type LoginRule } from '../guard.ts'
import type { Refusal } from '../plugin.ts'
import { seal, unseal } from '../seal.ts'
import { redirected, refusedAs } from './answers.ts'
import type { LoginProvider } from './guarding.ts'
import { loginCookieOf, loginCookiesOf, loginNameOf } from './sessions.ts'
import { localPath, type Offer, type Request, type Sessions, type Way } from './way.ts'

/** A login that takes longer begins anew. */
const LOGIN_SECONDS = 600
const PURPOSE = 'login'
const BEGIN = `${GUARD_PATH}login`
const OTHER = '&other'
const CALLBACK = `${GUARD_PATH}callback`
const TIMEOUT_SECONDS = 5
/** Of the address that a login leads back to: with eight logins under way, their cookies fit into the 8 KB that proxies take. */
const MAX_KEPT_CHARS = 512
/** Of all guards: rules of one guard share the names of cookies. */
let begunCount = 0

export class Login implements Way {
  readonly kind = 'login'
  readonly mark: string
  readonly #rule: LoginRule
  readonly #client: LoginClient
  readonly #key: string

  constructor(rule: LoginRule, client: LoginClient, key: string) {
    this.#rule = rule
    this.#client = client
    this.#key = key
    this.mark = createHash('sha256').update(JSON.stringify(rule)).digest('base64url').slice(0, 12)
  }

  get issuer(): string {
    return this.#rule.issuer
  }

  offer(to: string, failed?: ErrorCode): Offer {
    const href = `${BEGIN}?to=${encodeURIComponent(to)}`
    // The issuer would take the same account again, without a question.
    if (failed === 'LOGIN_REFUSED') return { text: 'Sign in with another account', href: `${href}${OTHER}` }
    const host = this.issuer.replace(/^https?:\/\/|\/.*/g, '')
    return { text: `Sign in with ${host}`, href }
  }

  /** Sends a browser to the issuer. */
  ask(visitor: Request, to: string): Promise<Refusal> {
    return this.begin(visitor, to, false)
  }

  /** `isOther`: with another account than the one that the issuer knows in this browser. */
  async begin(visitor: Request, to: string, isOther: boolean): Promise<Refusal> {
    try {
      const { library, configuration } = await this.#client.find()
      const verifier = library.randomPKCECodeVerifier()
      const state = randomBytes(16).toString('base64url')
      const nonce = randomBytes(16).toString('base64url')
      const url = library.buildAuthorizationUrl(configuration, {
        redirect_uri: callbackOf(visitor),
        scope: this.#client.scope,
        code_challenge: await library.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        state,
        nonce,
        ...(isOther && { prompt: promptOf(configuration) }),
      })
      // In the browser that began: another one that is led to the callback has no such cookie.
      const exp = Math.floor(Date.now() / 1_000) + LOGIN_SECONDS
      // What does not fit leads to its page, or to the first one.
      const kept = [to, to.replace(/\?.*/, '')].find(one => one.length <= MAX_KEPT_CHARS) ?? '/'
      const begun = seal(this.#key, PURPOSE, { state, nonce, verifier, to: kept, exp })
      const name = loginNameOf(visitor, begunCount++)
      return redirected(url.href, [['set-cookie', loginCookieOf(visitor, name, begun, LOGIN_SECONDS)]])
    } catch {
      // The provider is away; what it said may hold what is none of the visitor's business.
      return unavailable(visitor)
    }
  }

  /** The browser comes back from the issuer. */
  async finish(visitor: Request, { to, ...begun }: BegunLogin, sessions: Sessions): Promise<Refusal> {
    const forget: [string, string] = ['set-cookie', loginCookieOf(visitor, begun.cookie, '', 0)]
    const { library, configuration } = await this.#client.find().catch(() => NONE)
    if (library === undefined || configuration === undefined) return unavailable(visitor)
    try {
      const url = new URL(visitor.head.path, callbackOf(visitor))
      const tokens = await library.authorizationCodeGrant(configuration, url, {
        pkceCodeVerifier: begun.verifier,
        expectedState: begun.state,
        expectedNonce: begun.nonce,
        idTokenExpected: true,
      })
      const claims = tokens.claims()
      const email = typeof claims?.email === 'string' ? claims.email : undefined
      if (claims === undefined || !this.#isLetIn(email, claims.email_verified))
        return refused(visitor, forget)
      return sessions.begin(visitor, this, to, { user: email ?? claims.sub }, [forget])
    } catch {
      // Denied by the person, replayed, or not signed by the issuer: all of it is no login.
      return refused(visitor, forget)
    }
  }

  /** An address that the issuer has not verified is only a claim of the account's owner. */
  #isLetIn(email: string | undefined, isVerified: unknown): boolean {
    const { emails } = this.#rule
    if (emails === undefined) return true
    if (email === undefined || isVerified !== true) return false
    const address = email.toLowerCase()
    return emails.some(one => {
      const rule = one.toLowerCase()
      return rule.startsWith('*@')
        ? address.endsWith(rule.slice(1)) && address.indexOf('@') === address.length - rule.length + 1
        : address === rule
    })
  }
}

/** A login under way, as the visitor's browser keeps it. */
export interface BegunLogin {
  /** Name of its cookie. */
  readonly cookie: string
  readonly state: string
  readonly nonce: string
  readonly verifier: string
  readonly to: string
}

/** The login that this callback ends, if this browser began it. */
export function begunLoginOf(visitor: Request, key: string): BegunLogin | undefined {
  const asked = new URL(visitor.head.path, 'http://localhost').searchParams.get('state')
  for (const [cookie, value] of loginCookiesOf(visitor)) {
    const { state, nonce, verifier, to, exp } = unseal(key, PURPOSE, value) ?? {}
    const isBegun = typeof nonce === 'string' && typeof verifier === 'string' && typeof to === 'string'
    if (!isBegun || typeof state !== 'string' || typeof exp !== 'number') continue
    if (state === asked && exp * 1_000 > Date.now())
      return { cookie, state, nonce, verifier, to: localPath(to) }
  }
  return undefined
}

export function isCallback(path: string): boolean {
  return path.replace(/\?.*/, '') === CALLBACK
}

/** The login that the link of a page begins, and where it leads. `undefined`: the path is another one. */
export function offeredLoginOf(path: string): { readonly to: string; readonly isOther: boolean } | undefined {
  if (path.replace(/\?.*/, '') !== BEGIN) return undefined
  const query = new URLSearchParams(path.slice(BEGIN.length))
  return { to: localPath(query.get('to') ?? undefined), isOther: query.has('other') }
}

/** What has the issuer ask for the account. Google knows `select_account` alone, many others `login` alone; few say which. */
function promptOf(configuration: Configuration): string {
  const { issuer, prompt_values_supported: values } = configuration.serverMetadata()
  const selects = Array.isArray(values)
    ? values.includes('select_account')
    : issuer === 'https://accounts.google.com'
  return selects ? 'select_account' : 'login'
}

function callbackOf({ isSecure, head }: Request): string {
  return `${isSecure ? 'https' : 'http'}://${head.hostWithPort}${CALLBACK}`
}

type Library = typeof import('openid-client')

const NONE = { library: undefined, configuration: undefined }

/** The server as a client of one issuer, found out when first needed. Shared by all guards that ask for it. */
export class LoginClient {
  readonly #provider: LoginProvider
  #found: Promise<{ readonly library: Library; readonly configuration: Configuration }> | undefined

  constructor(provider: LoginProvider) {
    this.#provider = provider
  }

  get scope(): string {
    return this.#provider.scope ?? 'openid email'
  }

  find(): Promise<{ readonly library: Library; readonly configuration: Configuration }> {
    this.#found ??= this.#discover().catch(error => {
      this.#found = undefined
      throw error
    })
    return this.#found
  }

  /** Rejects with `GUARD_UNAVAILABLE` when the library is not installed. */
  static async load(): Promise<Library> {
    try {
      return await import('openid-client')
    } catch (cause) {
      const text = 'Logins need the package openid-client, which is not installed beside the server.'
      throw new TunnelError('GUARD_UNAVAILABLE', text, { cause })
    }
  }

  async #discover() {
    const library = await LoginClient.load()
    const { issuer, clientId, clientSecret } = this.#provider
    const url = new URL(issuer)
    const isHere = url.protocol === 'http:' && /^(?:localhost|127\.0\.0\.1|\[::1\])$/.test(url.hostname)
    const configuration = await library.discovery(url, clientId, clientSecret, undefined, {
      timeout: TIMEOUT_SECONDS,
      ...(isHere && { execute: [library.allowInsecureRequests] }),
    })
    return { library, configuration }
  }
}

function refused(visitor: Request, header: readonly [string, string]): Refusal {
  return refusedAs('LOGIN_REFUSED', visitor, [header])
}

function unavailable(visitor: Request): Refusal {
  const retry = ['retry-after', '5'] as const
  return refusedAs('LOGIN_UNAVAILABLE', visitor, [retry])
}
