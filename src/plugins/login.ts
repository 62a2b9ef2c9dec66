// A sign-in method: accounts of an OpenID Connect issuer, with the code flow and PKCE. The operator installs the library.

import { createHash, randomBytes } from 'node:crypto'
import type { Configuration } from 'openid-client'
import { type ErrorCode, TunnelError } from '../errors.ts'
import { GUARD_PATH, type LoginRule } from '../guard.ts'
import { asciiLowerCase } from '../http/characters.ts'
import type { HeaderLine, Refusal } from '../plugin.ts'
import { seal, unseal } from '../seal.ts'
import { redirected, refusedAs } from './answers.ts'
import type { LoginProvider } from './guarding.ts'
import { loginCookieOf, loginCookiesOf, loginNameOf } from './sessions.ts'
import { localPath, type Offer, type Request, type Sessions, userText, type Way } from './way.ts'

/** The time in seconds after which a login must begin again. */
const LOGIN_SECONDS = 600
const PURPOSE = 'login'
const BEGIN = `${GUARD_PATH}login`
const OTHER = '&other'
const CALLBACK = `${GUARD_PATH}callback`
const TIMEOUT_SECONDS = 5
/**
 * The maximum length of the address to which a login returns. With eight open logins, their cookies fit into the 8 KB
 * that proxies accept.
 */
const MAX_KEPT_CHARS = 512
/** The number of logins of all guards, because rules of one guard share the names of cookies. */
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
    // The issuer would choose the same account again without asking.
    if (failed === 'LOGIN_REFUSED') return { text: 'Sign in with another account', href: `${href}${OTHER}` }
    const host = this.issuer.replace(/^https?:\/\/|\/.*/g, '')
    return { text: `Sign in with ${host}`, href }
  }

  /** Sends a browser to the issuer. */
  ask(visitor: Request, to: string): Promise<Refusal> {
    return this.begin(visitor, to, false)
  }

  /** Begins a login. `isOther`: with another account than the issuer's current one in this browser. */
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
      // Only the browser that started the login has this cookie, unlike one that was lured to the callback.
      const exp = Math.floor(Date.now() / 1_000) + LOGIN_SECONDS
      // Longer addresses return to their path without the query, or to the first page.
      const kept = [to, to.replace(/\?.*/, '')].find(one => one.length <= MAX_KEPT_CHARS) ?? '/'
      const begun = seal(this.#key, PURPOSE, { state, nonce, verifier, to: kept, exp })
      const name = loginNameOf(visitor, begunCount++)
      return redirected(url.href, [['set-cookie', loginCookieOf(visitor, name, begun, LOGIN_SECONDS)]])
    } catch (error) {
      // The provider is away, and its error text is not for visitors.
      return unavailable(visitor, reasonOf(error))
    }
  }

  /** Called when the browser returns from the issuer. */
  async finish(visitor: Request, { to, ...begun }: BegunLogin, sessions: Sessions): Promise<Refusal> {
    const forget: [string, string] = ['set-cookie', loginCookieOf(visitor, begun.cookie, '', 0)]
    let user: string | undefined
    try {
      const { library, configuration } = await this.#client.find()
      const url = new URL(visitor.head.path, callbackOf(visitor))
      const tokens = await library.authorizationCodeGrant(configuration, url, {
        pkceCodeVerifier: begun.verifier,
        expectedState: begun.state,
        expectedNonce: begun.nonce,
        idTokenExpected: true,
      })
      const claims = tokens.claims()
      if (claims === undefined) return refused(visitor, forget, 'token_invalid')
      // Both claims from one source: one source's `email_verified` says nothing about the other's address.
      let said: Readonly<Record<string, unknown>> = claims
      // With a code, the claims of the scope `email` come from UserInfo (OpenID Connect Core 5.4), unless requested otherwise.
      const isElsewhere = said.email === undefined || said.email_verified === undefined
      if (isElsewhere && configuration.serverMetadata().userinfo_endpoint !== undefined)
        said = await library.fetchUserInfo(configuration, tokens.access_token, claims.sub)
      const email = emailOf(said)
      const fault = this.#faultOf(email)
      if (fault !== undefined) return refused(visitor, forget, fault)
      // The owner of an account can claim any address that the issuer does not verify.
      user = email.isVerified ? email.address : subjectText(claims.sub)
    } catch (error) {
      const reason = reasonOf(error)
      // The person refused, the code was used before, or the issuer did not sign the token.
      return reason === UNREACHABLE ? unavailable(visitor, reason, forget) : refused(visitor, forget, reason)
    }
    if (userText(user) === undefined) return refused(visitor, forget, 'user_too_long')
    return sessions.begin(visitor, this, to, { user }, [forget])
  }

  /** Returns why the address of an account does not admit it. `undefined` if it does. */
  #faultOf({ address, isVerified }: Email): string | undefined {
    const { emails } = this.#rule
    if (emails === undefined) return undefined
    if (address === undefined) return 'email_missing'
    if (!isVerified) return 'email_unverified'
    const own = asciiLowerCase(address)
    const isListed = emails.some(one => {
      const rule = asciiLowerCase(one)
      return rule.startsWith('*@')
        ? own.endsWith(rule.slice(1)) && own.indexOf('@') === own.length - rule.length + 1
        : own === rule
    })
    return isListed ? undefined : 'email_not_listed'
  }
}

type Email =
  | { readonly address: string; readonly isVerified: boolean }
  | { readonly address: undefined; readonly isVerified: false }

function emailOf({ email, email_verified }: Readonly<Record<string, unknown>>): Email {
  return typeof email === 'string'
    ? { address: email, isVerified: email_verified === true || email_verified === 'true' }
    : { address: undefined, isVerified: false }
}

/** Returns a subject as text. Some issuers let people choose the subject: it must not look like another account's address. */
function subjectText(subject: string): string {
  return subject.includes('@') ? `sub:${subject}` : subject
}

const UNREACHABLE = 'provider_unreachable'

/** Returns a word for the operator for an error of the library, whose messages contain text of the provider or the visitor. */
function reasonOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return UNREACHABLE
  // The provider's code by RFC 6749: `access_denied` on its page, `invalid_client` for a wrong secret.
  if ('error' in error && typeof error.error === 'string')
    return /^[a-z_]{1,40}$/.test(error.error) ? error.error : 'provider_error'
  // The library's code: `OAUTH_JWT_CLAIM_COMPARISON_FAILED`.
  const [, code] = ('code' in error && /^OAUTH_([A-Z_]+)$/.exec(String(error.code))) || []
  return code === undefined || code === 'TIMEOUT' ? UNREACHABLE : code.toLowerCase()
}

/** A login in progress, as stored in the visitor's browser. */
export interface BegunLogin {
  readonly cookie: string
  readonly state: string
  readonly nonce: string
  readonly verifier: string
  readonly to: string
}

/** Returns the login that this callback ends, if this browser started it. */
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

/** Returns the login that a page's link begins, and its destination. `undefined` for any other path. */
export function offeredLoginOf(path: string): { readonly to: string; readonly isOther: boolean } | undefined {
  if (path.replace(/\?.*/, '') !== BEGIN) return undefined
  const query = new URLSearchParams(path.slice(BEGIN.length))
  return { to: localPath(query.get('to') ?? undefined), isOther: query.has('other') }
}

/**
 * Returns the `prompt` with which the issuer asks for the account. Google only accepts `select_account`, many others
 * only `login`, and few say which.
 */
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

/** The server as a client of one issuer, whose settings are fetched when first needed. All guards with the issuer share it. */
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

  /** Loads the library. Rejects with `GUARD_UNAVAILABLE` if it is not installed. */
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

function refused(visitor: Request, header: readonly [string, string], reason: string): Refusal {
  return refusedAs('LOGIN_REFUSED', visitor, [header], reason)
}

function unavailable(visitor: Request, reason: string, ...headers: readonly HeaderLine[]): Refusal {
  return refusedAs('ISSUER_UNAVAILABLE', visitor, [['retry-after', '5'], ...headers], reason)
}
