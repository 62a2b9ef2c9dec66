// An ACME authority: has the account, and takes an order from its first request to its certificate.

import { createPrivateKey, X509Certificate } from 'node:crypto'
import type { Certificate } from '../../certificates.ts'
import { TunnelError } from '../../errors.ts'
import type { CertificateStore, StoredOrder } from '../../store.ts'
import { certificateRequest, keyPem, newKey } from '../../x509/certificate-request.ts'
import type { Authority, SuggestedWindow, Wish } from '../authority.ts'
import { type Clock, pause } from '../clock.ts'
import { baseName } from '../names.ts'
import { AcmeClient, type Authorization, type OfferedChallenge, type Order } from './client.ts'
import type { AcmeServer } from './connection.ts'
import { AccountKey, type ExternalAccount } from './jws.ts'
import { AcmeProblem } from './problem.ts'
import { renewalId } from './renewal-id.ts'
import type { Challenge, Solver } from './solver.ts'

export interface AcmeAuthorityOptions extends AcmeServer {
  readonly store: CertificateStore
  readonly clock: Clock
  /** Returns how to prove the names of an order. Wildcards need DNS-01. */
  readonly solverFor: (names: readonly string[]) => Solver
  /** The mail addresses of the account. With them, the user agrees to the authority's terms. */
  readonly contact?: readonly string[]
  /** The account for authorities that accept only accounts they know. */
  readonly externalAccount?: ExternalAccount | undefined
  /** The time for one order, from its first request to its certificate. Default 300,000 ms; then `ACME_UNREACHABLE`. */
  readonly orderTimeoutMs?: number
  /** Called with errors that did not stop an order. */
  readonly report?: (error: TunnelError) => void
  /** Called with the progress of the order for these names. */
  readonly progressed?: (names: readonly string[], step: Step) => void
}

/** The object that an order waits for: the zone's servers, until they have the records; then the authority. */
export type Step = 'dns' | 'check'

const DEFAULT_ORDER_TIMEOUT_MS = 300_000
/** The first and the longest pause in milliseconds between checks of an order, if the authority names none. */
const FIRST_POLL_MS = 250
const LAST_POLL_MS = 5_000
/** The longest pause in milliseconds that the authority may ask for. The order's own timeout ends anything longer. */
const MAX_POLL_MS = 60_000

interface Attempt {
  readonly wish: Wish
  readonly client: AcmeClient
  readonly solver: Solver
  readonly signal: AbortSignal
}

/** An ACME authority; see `Authority`. Its caller runs one order for each id at a time. */
export class AcmeAuthority implements Authority {
  readonly #options: AcmeAuthorityOptions
  readonly #store: CertificateStore
  readonly #clock: Clock
  #client: Promise<AcmeClient> | undefined

  constructor(options: AcmeAuthorityOptions) {
    this.#options = options
    this.#store = options.store
    this.#clock = options.clock
  }

  async obtain(wish: Wish, signal: AbortSignal): Promise<Certificate> {
    const { orderTimeoutMs = DEFAULT_ORDER_TIMEOUT_MS } = this.#options
    const late = new AbortController()
    const cancel = this.#clock.after(orderTimeoutMs, () =>
      late.abort(
        new TunnelError(
          'ACME_UNREACHABLE',
          `The order for ${wish.names.join(', ')} took more than ${orderTimeoutMs} ms.`,
        ),
      ),
    )
    const either = AbortSignal.any([signal, late.signal])
    const solver = this.#options.solverFor(wish.names)
    try {
      return await this.#withAccount(client =>
        this.#obtain({ wish, client: client.until(either), solver, signal: either }),
      )
    } finally {
      cancel()
    }
  }

  async suggestedWindow(cert: string): Promise<SuggestedWindow | undefined> {
    const id = renewalId(cert)
    if (id === undefined) return undefined
    return this.#withAccount(client => client.renewalInfo(id))
  }

  /** Revokes a certificate. `reason`: a number of RFC 5280, 5.3.1. `cert`: PEM. */
  async revoke(cert: string, reason = 0): Promise<void> {
    await this.#withAccount(client => client.revoke(new X509Certificate(cert).raw, reason))
  }

  /** Deactivates the account permanently and forgets it. The next order makes a new one. */
  async deactivateAccount(): Promise<void> {
    await this.#withAccount(client => client.deactivate())
    await this.#store.removeAccount()
    this.#client = undefined
  }

  /** Registers first if needed, and again if the authority has forgotten the account. */
  async #withAccount<Result>(use: (client: AcmeClient) => Promise<Result>): Promise<Result> {
    try {
      return await use(await this.#account())
    } catch (error) {
      if (!(error instanceof AcmeProblem) || error.type !== 'accountDoesNotExist') throw error
      this.#client = undefined
      const account = await this.#store.account()
      // The key is the same: if the authority knows it under another URL, it returns that account rather than making another.
      if (account !== undefined) await this.#store.saveAccount({ ...account, url: '' })
      return use(await this.#account())
    }
  }

  #account(): Promise<AcmeClient> {
    this.#client ??= this.#openAccount().catch(error => {
      this.#client = undefined
      throw error
    })
    return this.#client
  }

  async #openAccount(): Promise<AcmeClient> {
    const stored = await this.#store.account()
    const key = stored?.key ?? keyPem(newKey())
    // Saved before the request, because an account without its key is lost.
    if (stored === undefined) await this.#store.saveAccount({ url: '', key })
    const url = stored?.url || undefined
    const client = new AcmeClient(this.#options, new AccountKey(key), this.#clock, url)
    if (url !== undefined) return client
    const { contact, externalAccount } = this.#options
    const registered = await client.register(contact, externalAccount)
    // Another server with the same store may have registered at the same time: all use the account whose key is stored.
    const there = await this.#store.account()
    if (there !== undefined && there.key !== key) return this.#openAccount()
    await this.#store.saveAccount({ url: registered, key })
    return client
  }

  async #obtain(attempt: Attempt): Promise<Certificate> {
    const continued = await this.#continued(attempt)
    if (continued !== undefined) {
      try {
        return await this.#finish(continued, attempt)
      } catch (error) {
        // The authority may have checked while the earlier process was gone. That does not affect a new order.
        if (!(error instanceof AcmeProblem && isFinal(error))) throw error
      }
    }
    return this.#finish(await this.#begun(attempt), attempt)
  }

  async #finish({ stored, order: begun }: Begun, attempt: Attempt): Promise<Certificate> {
    const { wish, client, signal } = attempt
    try {
      let order = begun
      if (order.status === 'pending') order = await this.#authorize(order, attempt)
      if (order.status === 'ready') {
        signal.throwIfAborted()
        order = await client.finalize(order, certificateRequest(wish.names, createPrivateKey(stored.key)))
      }
      if (order.status !== 'valid') order = await this.#settled(order, ['valid'], attempt)
      return checked(await client.certificate(order), stored)
    } catch (error) {
      // A refusal ends the order. After any other error it stays, and the next attempt continues it.
      if (error instanceof AcmeProblem && isFinal(error)) await this.#store.removeOrder(wish.id)
      throw error
    }
  }

  /** Returns the order of an earlier attempt, if it can still become a certificate. */
  async #continued({ wish, client, solver }: Attempt): Promise<Begun | undefined> {
    const stored = await this.#store.order(wish.id)
    if (stored === undefined) return undefined
    const order = sameNames(stored.names, wish.names) ? await readOrder(client, stored.url) : undefined
    if (order === undefined || order.status === 'invalid') {
      await this.#store.removeOrder(wish.id)
      return undefined
    }
    // The earlier process added these records and did not remove them.
    if (order.status !== 'pending') await this.#withdraw(solver, await checksOf(client, order, solver))
    return { stored, order }
  }

  async #begun({ wish, client }: Attempt): Promise<Begun> {
    await wish.admit()
    const order = await newOrder(client, wish)
    const { id, names } = wish
    const stored = { id, names, url: order.url, key: keyPem(newKey()), startedAtMs: this.#clock.now() }
    // Saved before anything is proved: the next process can only finish an order whose key is stored.
    await this.#store.saveOrder(stored)
    return { stored, order }
  }

  async #authorize(order: Order, attempt: Attempt): Promise<Order> {
    const { wish, client, solver, signal } = attempt
    const checks = (await checksOf(client, order, solver)).filter(({ isDone }) => !isDone)
    const { progressed } = this.#options
    let failure: unknown
    try {
      if (solver.type === 'dns-01') progressed?.(wish.names, 'dns')
      await solver.present(checks, signal)
      progressed?.(wish.names, 'check')
      // A challenge that was confirmed before a restart is already being checked.
      for (const { offered } of checks)
        if (offered.status === 'pending') await client.answerChallenge(offered)
      for (const { url } of checks) await this.#proved(url, attempt)
    } catch (error) {
      failure = error
      throw error
    } finally {
      await this.#withdraw(solver, checks, failure)
    }
    return this.#settled(order, ['ready', 'processing', 'valid'], attempt)
  }

  async #proved(url: string, { client, solver, signal }: Attempt): Promise<void> {
    const isOver = ({ status }: Authorization) => status !== 'pending'
    const authorization = await this.#polled(() => client.authorization(url), isOver, signal)
    if (authorization.status !== 'valid') throw failed(authorization, solver)
  }

  async #settled(order: Order, wanted: readonly string[], { wish, client, signal }: Attempt): Promise<Order> {
    const isOver = ({ status }: Order) => status === 'invalid' || wanted.includes(status)
    const settled = await this.#polled(() => client.order(order.url), isOver, signal)
    if (settled.status !== 'invalid') return settled
    throw new AcmeProblem(
      'ACME_REFUSED',
      `The order for ${wish.names.join(', ')} failed`,
      settled.error ?? {},
    )
  }

  async #polled<Value extends { readonly retryAfterMs: number | undefined }>(
    read: () => Promise<Value>,
    isOver: (value: Value) => boolean,
    signal: AbortSignal,
  ): Promise<Value> {
    for (let delayMs = FIRST_POLL_MS; ; delayMs = Math.min(delayMs * 1.5, LAST_POLL_MS)) {
      const value = await read()
      if (isOver(value)) return value
      await pause(this.#clock, Math.min(value.retryAfterMs ?? delayMs, MAX_POLL_MS), signal)
    }
  }

  /**
   * Removes the records. A record that stays does not affect the certificate: it is reported, and the order continues. A
   * `failure` that ended the order, such as a refused key, is reported once.
   */
  async #withdraw(solver: Solver, checks: readonly Check[], failure?: unknown): Promise<void> {
    try {
      await solver.withdraw(checks)
    } catch (cause) {
      if (String(cause) === String(failure)) return
      this.#options.report?.(
        cause instanceof TunnelError
          ? cause
          : new TunnelError('ACME_CHALLENGE_FAILED', String(cause), { cause }),
      )
    }
  }
}

interface Begun {
  readonly stored: StoredOrder
  readonly order: Order
}

interface Check extends Challenge {
  readonly url: string
  readonly isDone: boolean
  readonly offered: OfferedChallenge
}

/** Returns the checks of the kind that `solver` can do. */
async function checksOf(client: AcmeClient, order: Order, solver: Solver): Promise<readonly Check[]> {
  return Promise.all(
    order.authorizations.map(async url => {
      const { name, status, challenges } = await client.authorization(url)
      const offered = challenges.find(({ type }) => type === solver.type)
      if (offered === undefined)
        throw new AcmeProblem('ACME_REFUSED', `${name} cannot be proved by ${solver.type}`, {
          detail: `the authority offers ${challenges.map(({ type }) => type).join(', ')}`,
        })
      const { token } = offered
      const isDone = status !== 'pending'
      return { url, name, token, keyAuthorization: client.keyAuthorization(token), isDone, offered }
    }),
  )
}

/** Reads an order. `undefined` if the authority does not know it any more, or it belongs to an earlier account. */
async function readOrder(client: AcmeClient, url: string): Promise<Order | undefined> {
  try {
    return await client.order(url)
  } catch (error) {
    if (error instanceof AcmeProblem && error.code === 'ACME_REFUSED') return undefined
    throw error
  }
}

/**
 * Makes an order. Replacing another is optional (RFC 9773 section 5): if the authority disputes it, the order is made without.
 */
async function newOrder(client: AcmeClient, { names, replaces }: Wish): Promise<Order> {
  const id = replaces === undefined ? undefined : renewalId(replaces)
  if (id === undefined) return client.newOrder(names)
  try {
    return await client.newOrder(names, id)
  } catch (error) {
    const isDisputed = error instanceof AcmeProblem && DISPUTES.includes(error.type)
    if (!isDisputed) throw error
    return client.newOrder(names)
  }
}

/** The problems for a certificate that was replaced before, was ordered by another account, or is unknown to this authority. */
const DISPUTES: readonly string[] = [
  'alreadyReplaced',
  'unauthorized',
  'malformed',
  'conflict',
  'serverInternal',
]

function isFinal({ code }: AcmeProblem): boolean {
  return code === 'ACME_REFUSED' || code === 'ACME_CHALLENGE_FAILED'
}

function failed({ name, status, challenges }: Authorization, { type }: Solver): AcmeProblem {
  const error = challenges.find(challenge => challenge.type === type)?.error
  const what = `The authority could not check ${name} by ${type}`
  return new AcmeProblem('ACME_CHALLENGE_FAILED', what, error ?? { detail: `its authorization is ${status}` })
}

/** Checks the certificate, because an authority's mistake would otherwise only show when visitors fail. */
function checked(cert: string, { key, names }: StoredOrder): Certificate {
  const certificate = new X509Certificate(cert)
  const isOurs = certificate.checkPrivateKey(createPrivateKey(key))
  const missing = names.filter(name => certificate.checkHost(sampleOf(name)) === undefined)
  if (!isOurs || missing.length > 0) {
    const what = isOurs ? `without ${missing.join(', ')}` : 'of another key'
    throw new TunnelError('ACME_UNREACHABLE', `The certificate authority sent a certificate ${what}.`)
  }
  return { cert, key }
}

const sampleOf = (name: string): string => (name.startsWith('*.') ? `any.${baseName(name)}` : name)

function sameNames(first: readonly string[], second: readonly string[]): boolean {
  return first.length === second.length && first.every(name => second.includes(name))
}
