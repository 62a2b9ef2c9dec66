// The requests to an authority (RFC 8555, 7): an account, orders, authorizations, certificates, renewal windows.

import { TunnelError } from '../../errors.ts'
import type { Clock } from '../clock.ts'
import { AcmeConnection, type AcmeServer, type Answer, isHttps } from './connection.ts'
import type { AccountKey, ExternalAccount } from './jws.ts'
import type { ProblemDocument } from './problem.ts'

export type OrderStatus = 'pending' | 'ready' | 'processing' | 'valid' | 'invalid'

export interface Order {
  readonly url: string
  readonly status: OrderStatus
  readonly authorizations: readonly string[]
  readonly finalize: string
  /** The URL of the certificate, once the order is valid. */
  readonly certificate: string | undefined
  readonly error: ProblemDocument | undefined
  readonly retryAfterMs: number | undefined
}

export interface Authorization {
  /** The name without `*.`. */
  readonly name: string
  /** The status: `pending`, `valid`, or one that ends the challenge. */
  readonly status: string
  readonly challenges: readonly OfferedChallenge[]
  readonly retryAfterMs: number | undefined
}

export interface OfferedChallenge {
  readonly type: string
  readonly url: string
  readonly token: string
  readonly status: string
  readonly error: ProblemDocument | undefined
}

/** The time to renew that the authority suggests (RFC 9773, 4.2). */
export interface RenewalInfo {
  readonly startMs: number
  readonly endMs: number
  /** A page with the reason, if the time is unusual. */
  readonly explanation: string | undefined
  /** The time in milliseconds until the next question. */
  readonly retryAfterMs: number | undefined
}

const STATUSES: readonly unknown[] = ['pending', 'ready', 'processing', 'valid', 'invalid']
/** A pattern for tokens, which become paths and file-like names: base64url, as RFC 8555 section 8.3 requires. */
const TOKEN = /^[A-Za-z0-9_-]{1,512}$/
const MAX_AUTHORIZATIONS = 100

/** The requests of one account. Each method is one request, in addition to requests for nonces. */
export class AcmeClient {
  readonly #connection: AcmeConnection
  readonly #clock: Clock
  readonly #key: AccountKey
  #accountUrl: string | undefined
  #signal: AbortSignal | undefined

  /** Makes a client. `accountUrl` is that of an existing account. Without it, call `register` first. */
  constructor(server: AcmeServer | AcmeConnection, key: AccountKey, clock: Clock, accountUrl?: string) {
    this.#connection = server instanceof AcmeConnection ? server : new AcmeConnection(server, clock)
    this.#clock = clock
    this.#key = key
    this.#accountUrl = accountUrl
  }

  /** Returns a client for the same account and connection, whose requests end with `signal`. */
  until(signal: AbortSignal): AcmeClient {
    const client = new AcmeClient(this.#connection, this.#key, this.#clock, this.#accountUrl)
    client.#signal = signal
    return client
  }

  /** Returns the proof for a challenge: the token and a value that only the account's key gives. */
  keyAuthorization(token: string): string {
    return `${token}.${this.#key.thumbprint}`
  }

  /**
   * Makes the account of this key, or finds the existing one, and agrees to the authority's terms. `mustExist`: only
   * finds it. `contact`: mail addresses.
   */
  async register(
    contact: readonly string[] = [],
    externalAccount?: ExternalAccount,
    mustExist = false,
  ): Promise<string> {
    const { newAccount, isExternalAccountRequired } = await this.#connection.directory()
    if (isExternalAccountRequired && externalAccount === undefined && !mustExist)
      throw new TunnelError(
        'ACME_REFUSED',
        'The certificate authority takes only accounts that it knows already (external account binding).',
      )
    const payload = mustExist
      ? { onlyReturnExisting: true }
      : {
          termsOfServiceAgreed: true,
          ...(contact.length > 0 && { contact: contact.map(address => `mailto:${address}`) }),
          ...(externalAccount && { externalAccountBinding: this.#key.bind(newAccount, externalAccount) }),
        }
    const what = 'The account was refused'
    const answer = await this.#connection.post(newAccount, payload, this.#key, undefined, what, this.#signal)
    this.#accountUrl = https(answer.location, 'the URL of the account')
    return this.#accountUrl
  }

  /** Deactivates the account permanently. */
  async deactivate(): Promise<void> {
    await this.#post(this.#account(), { status: 'deactivated' }, 'The account was not deactivated')
  }

  /**
   * Makes an order. `replaces`: the RFC 9773 id of the certificate that this one follows. Only for authorities with
   * `renewalInfo`.
   */
  async newOrder(names: readonly string[], replaces?: string): Promise<Order> {
    const { newOrder, renewalInfo } = await this.#connection.directory()
    const payload = {
      identifiers: names.map(value => ({ type: 'dns', value })),
      ...(replaces !== undefined && renewalInfo !== undefined && { replaces }),
    }
    const what = `The order for ${names.join(', ')} was refused`
    const answer = await this.#post(newOrder, payload, what)
    return orderOf(answer, https(answer.location, 'the URL of the order'))
  }

  async order(url: string): Promise<Order> {
    return orderOf(await this.#post(url, '', 'The order cannot be read'), url)
  }

  async authorization(url: string): Promise<Authorization> {
    return authorizationOf(await this.#post(url, '', 'The authorization cannot be read'))
  }

  /** Tells the authority that it may check now. */
  async answerChallenge({ url }: OfferedChallenge): Promise<void> {
    await this.#post(url, {}, 'The challenge was refused')
  }

  /** Finalizes an order. `request`: DER. */
  async finalize(order: Order, request: Uint8Array): Promise<Order> {
    const payload = { csr: Buffer.from(request).toString('base64url') }
    return orderOf(await this.#post(order.finalize, payload, 'The certificate was refused'), order.url)
  }

  /** Returns the chain of a valid order as PEM. */
  async certificate(order: Order): Promise<string> {
    const url = https(order.certificate, 'the URL of the certificate')
    const { text } = await this.#post(url, '', 'The certificate cannot be read')
    if (!/^\s*-----BEGIN CERTIFICATE-----/.test(text)) throw invalid('a certificate in PEM format')
    return text
  }

  /**
   * Revokes a certificate, given as DER. `reason`: a number of RFC 5280, 5.3.1; 0 gives none, 1 means that the key was stolen.
   */
  async revoke(certificate: Uint8Array, reason = 0): Promise<void> {
    const { revokeCert } = await this.#connection.directory()
    const payload = { certificate: Buffer.from(certificate).toString('base64url'), reason }
    await this.#post(revokeCert, payload, 'The certificate was not revoked')
  }

  /** Returns the renewal info. `undefined` if the authority does not know RFC 9773. `id`: see `renewalId`. */
  async renewalInfo(id: string): Promise<RenewalInfo | undefined> {
    const { renewalInfo } = await this.#connection.directory()
    if (renewalInfo === undefined) return undefined
    const url = `${renewalInfo}/${id}`
    const { json, retryAfterMs } = await this.#connection.get(
      url,
      'The renewal window cannot be read',
      this.#signal,
    )
    const { start, end } = record(json?.suggestedWindow)
    const startMs = Date.parse(String(start))
    const endMs = Date.parse(String(end))
    // A window that ends before it begins counts as none (section 4.2).
    if (!(startMs < endMs)) throw invalid('a renewal window')
    const explanation = isHttps(json?.explanationURL) ? json.explanationURL : undefined
    return { startMs, endMs, explanation, retryAfterMs }
  }

  #post(url: string, payload: unknown, what: string): Promise<Answer> {
    return this.#connection.post(url, payload, this.#key, this.#account(), what, this.#signal)
  }

  #account(): string {
    if (this.#accountUrl === undefined)
      throw new TunnelError('STATE_INVALID', 'There is no account at the certificate authority yet.')
    return this.#accountUrl
  }
}

function orderOf({ json, retryAfterMs }: Answer, url: string): Order {
  const { status, authorizations, finalize, certificate, error } = json ?? {}
  if (!STATUSES.includes(status)) throw invalid('the status of an order')
  if (!Array.isArray(authorizations) || authorizations.length > MAX_AUTHORIZATIONS) {
    throw invalid(`up to ${MAX_AUTHORIZATIONS} authorizations of an order`)
  }
  return {
    url,
    // The check above found the type in the list.
    status: status as OrderStatus,
    authorizations: authorizations.map(each => https(each, 'the URL of an authorization')),
    finalize: https(finalize, 'the URL that finalizes an order'),
    certificate: certificate === undefined ? undefined : https(certificate, 'the URL of the certificate'),
    error: error === undefined ? undefined : record(error),
    retryAfterMs,
  }
}

function authorizationOf({ json, retryAfterMs }: Answer): Authorization {
  const { identifier, status, challenges } = json ?? {}
  const name = record(identifier).value
  if (typeof name !== 'string' || typeof status !== 'string' || !Array.isArray(challenges))
    throw invalid('an authorization')
  return {
    name: name.toLowerCase(),
    status,
    challenges: challenges.slice(0, MAX_AUTHORIZATIONS).flatMap(each => challengeOf(record(each))),
    retryAfterMs,
  }
}

/** Returns the challenge; empty for kinds without a token, which are not used here. */
function challengeOf(value: Readonly<Record<string, unknown>>): readonly OfferedChallenge[] {
  const { type, url, token, status, error } = value
  if (typeof type !== 'string' || typeof token !== 'string' || !TOKEN.test(token) || !isHttps(url)) return []
  return [
    { type, url, token, status: String(status), error: error === undefined ? undefined : record(error) },
  ]
}

function record(value: unknown): Readonly<Record<string, unknown>> {
  // The code that reads a field checks it.
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {}
}

function https(value: unknown, what: string): string {
  if (!isHttps(value)) throw invalid(what)
  return value
}

const invalid = (what: string): TunnelError =>
  new TunnelError('ACME_UNREACHABLE', `The certificate authority did not send ${what}.`)
