// Orders certificates when they are needed, and renews them before they expire: decides when, how often, and for which names.

import { X509Certificate } from 'node:crypto'
import type { Certificate, Certificates, ListedCertificate } from '../certificates.ts'
import { isErrorCode, optionInvalid, TunnelError } from '../errors.ts'
import { Events } from '../events.ts'
import type { CertificateStore, OrderLimits, StoredCertificate, StoredRefusal } from '../store.ts'
import type { Authority } from './authority.ts'
import { backOffMs } from './back-off.ts'
import { type Claimant, takeClaim } from './claim.ts'
import { type Clock, pause } from './clock.ts'
import { Delayed, Gone, Standing } from './delayed.ts'
import { type Kept, KeptCertificates } from './kept.ts'
import { isCertifiable, normalName, wildcardOf } from './names.ts'
import { type RenewalTimes, renewalTimes } from './renewal-times.ts'
import { Rounds, Slots } from './rounds.ts'
import { Shares } from './shares.ts'

export interface IssuerOptions {
  readonly authority: Authority
  readonly store: CertificateStore
  readonly clock: Clock
  /**
   * The certificates to have at all times, each with its names, `*.tunnel.example` among them. They are ordered at
   * the start and renewed without limit. The first is also for hellos that name no host. Default none.
   */
  readonly always?: readonly (readonly string[])[]
  /**
   * Whether `name` may have a certificate of its own, ordered when a visitor asks for it first, and renewed while this returns
   * `true`. Called before any request for a name: a server returns `true` while a tunnel has it. Default: no name.
   */
  readonly isAllowed?: (name: string) => boolean | Promise<boolean>
  /** Returns why no order for a name may be made now, although it is allowed. `undefined` if it may. Called before each order. */
  readonly refusalOf?: (name: string) => Promise<TunnelError | undefined>
  /** Returns the owner of a name, for `maxOrdersPerOwner`. `undefined`, the default, if its orders are not counted per owner. */
  readonly ownerOf?: (name: string) => string | undefined
  /**
   * The number of new orders within three hours for the names of one owner. Default 100; then `CERTIFICATE_DELAYED`. 0: any
   * number.
   */
  readonly maxOrdersPerOwner?: number
  /**
   * The time that a handshake waits for an order. Default 30,000 ms, about as long as browsers wait. If exceeded:
   * `CERTIFICATE_DELAYED`, while the order continues.
   */
  readonly maxWaitMs?: number
  /**
   * The maximum number of handshakes that wait for orders. Default 1,000, a few KB each. Further ones get `CERTIFICATE_DELAYED`.
   */
  readonly maxWaiting?: number
  /** The maximum number of orders in progress. Default 8. Further ones wait. */
  readonly maxUnderWay?: number
  /**
   * The maximum number of on-demand certificates in memory. Default 5,000, about 11 KB each with the TLS context; others are
   * read from the store again.
   */
  readonly maxKept?: number
  /**
   * The maximum number of orders for one name within 24 hours. Default 10. Further ones get `CERTIFICATE_DELAYED`. 0: no limit.
   */
  readonly maxOrdersPerName?: number
  /**
   * The maximum number of orders for all names within 3 hours. Default 250. Further ones get `CERTIFICATE_DELAYED`. A fifth more
   * is reserved for `always` and renewals, so that tunnels do not use it up: together the 300 of Let's Encrypt. 0: no limit.
   */
  readonly maxOrders?: number
  /**
   * The name of this process, for claims in a shared store. Default: a random one. With a name that stays the same across
   * restarts and that no other process has, a start after a kill need not wait until the claims of the killed process end (30 s).
   */
  readonly holder?: string
  readonly random?: () => number
}

export interface IssuerEvents {
  /** Emitted when a certificate was ordered and saved; for `always`, also by another process after an order here had failed. */
  issued: { readonly names: readonly string[]; readonly notAfterMs: number; readonly isRenewal: boolean }
  /**
   * Emitted when an order failed. The next attempt is not before `untilMs`. With `hasCertificate`, the existing one
   * is still used. For `always`, also if an earlier process, or another one, failed and its pause is not over.
   */
  failed: {
    readonly names: readonly string[]
    readonly error: TunnelError
    readonly untilMs: number
    readonly hasCertificate: boolean
  }
  /** Emitted for a failure that no caller gets: the store could not be read for renewals. */
  error: TunnelError
}

const DAY_MS = 86_400_000
/** The longest time in milliseconds between checks of the store, in case timers or clocks misbehave. */
const LONGEST_SLEEP_MS = 12 * 3_600_000
/** The number of certificates that are checked at once. */
const BATCH = 32
const REREAD_MS = 60_000
/** The time in milliseconds after which an unfinished order is forgotten: authorities end orders after a week. */
const OLDEST_MS = 7 * DAY_MS
const MAX_RESUMED = 1_000

/** The pause in milliseconds after a refusal, whose reason may end soon. */
const REFUSED_MS = 60_000
const REFUSED_RENEWAL_MS = 6 * 3_600_000

/** The share of `maxOrders` that is reserved for the server's own certificates and for renewals. */
const RESERVED_SHARE = 1 / 5

/** The `Certificates` of an authority. Call `start` after the server listens, because checks come at once. */
export class Issuer extends Events<IssuerEvents> implements Certificates {
  readonly #options: IssuerOptions
  readonly #store: CertificateStore
  readonly #clock: Clock
  readonly #random: () => number
  readonly #claimant: Claimant
  readonly #rounds: Rounds
  readonly #limits: OrderLimits
  /** The limits of `always` and renewals. */
  readonly #reservedLimits: OrderLimits
  readonly #slots: Slots
  readonly #shares: Shares
  readonly #kept: KeptCertificates
  /** The certificates of `always`, by id and by each of their names. */
  readonly #always = new Map<string, readonly string[]>()
  readonly #idOfName = new Map<string, string>()
  /** The missing certificates of `always` by id, with the time until which they wait, as in `failed`. */
  readonly #missing = new Map<string, number>()
  readonly #underWay = new Map<string, Promise<Certificate>>()
  readonly #stopped = new AbortController()
  #waiting = 0
  #prunedAtMs = 0

  constructor(options: IssuerOptions) {
    super()
    const { store, clock, random = Math.random, always = [], maxUnderWay = 8, maxKept = 5_000 } = options
    this.#options = options
    this.#store = store
    this.#clock = clock
    this.#random = random
    const report = (error: unknown) => this.#report(error)
    this.#claimant = { store, clock, holder: options.holder ?? crypto.randomUUID(), report }
    this.#rounds = new Rounds(clock, () => this.#work(), report)
    this.#limits = {
      perName: options.maxOrdersPerName ?? 10,
      perNameMs: DAY_MS,
      total: options.maxOrders ?? 250,
      totalMs: 3 * 3_600_000,
    }
    const { total } = this.#limits
    this.#reservedLimits = { ...this.#limits, total: total + Math.ceil(total * RESERVED_SHARE) }
    for (const list of always) this.#addAlways(list.map(normalName))
    this.#slots = new Slots(maxUnderWay)
    this.#shares = new Shares(options.maxOrdersPerOwner ?? 100, this.#limits.totalMs)
    this.#kept = new KeptCertificates(maxKept, new Set(this.#always.keys()))
  }

  list(): readonly ListedCertificate[] {
    return this.#kept.entries().map(([id, { notAfterMs }]) => ({ names: id.split(','), notAfterMs }))
  }

  find(name: string): Certificate | Promise<Certificate | undefined> | undefined {
    const normal = normalName(name)
    const id = this.#idFor(normal)
    if (id === undefined) return undefined
    const kept = this.#kept.get(id)
    const nowMs = this.#clock.now()
    if (kept !== undefined && kept.notAfterMs > nowMs) {
      if (nowMs >= kept.rereadAtMs) this.#reread(id, kept)
      return kept.certificate
    }
    const isAllowed = this.#always.has(id) || this.#mayHave(normal)
    if (isAllowed === false || this.#stopped.signal.aborted) return undefined
    return this.#waited(id, isAllowed, kept)
  }

  /**
   * Continues what an earlier process started, orders missing certificates of `always`, and renews from now on.
   * Resolves when everything was checked once, before the orders are done.
   */
  async start(): Promise<void> {
    await this.#resume()
    await this.#rounds.run()
  }

  /** Ends the orders in progress, which the next process continues, and waits for them. */
  async stop(): Promise<void> {
    this.#stopped.abort(new TunnelError('STATE_INVALID', 'The issuer of certificates was stopped.'))
    await this.#rounds.stop()
    await Promise.allSettled(this.#underWay.values())
  }

  #addAlways(names: readonly string[]): void {
    const wrong = names.find(name => !isCertifiable(name.replace(/^\*\./, '')))
    if (wrong !== undefined || names.length === 0)
      throw optionInvalid(`${wrong ?? 'An empty list'} cannot have a certificate.`)
    const id = names.join(',')
    this.#always.set(id, names)
    for (const name of names) this.#idOfName.set(name, id)
  }

  #idFor(name: string): string | undefined {
    if (name === '') return this.#always.keys().next().value
    return this.#idOfName.get(name) ?? this.#idOfName.get(wildcardOf(name)) ?? name
  }

  #mayHave(name: string): boolean | Promise<boolean> {
    const { isAllowed } = this.#options
    if (isAllowed === undefined || !isCertifiable(name)) return false
    try {
      return isAllowed(name)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  async #waited(
    id: string,
    isAllowed: boolean | Promise<boolean>,
    expired: Kept | undefined,
  ): Promise<Certificate | undefined> {
    const { maxWaiting = 1_000, maxWaitMs = 30_000 } = this.#options
    if (this.#waiting >= maxWaiting)
      throw new TunnelError('CERTIFICATE_DELAYED', `${maxWaiting} handshakes wait for certificates already.`)
    this.#waiting++
    const done = new AbortController()
    try {
      const late = pause(this.#clock, maxWaitMs, done.signal).then(() => {
        throw new TunnelError('CERTIFICATE_DELAYED', `The certificate is not there after ${maxWaitMs} ms.`)
      })
      return await Promise.race([this.#wanted(id, isAllowed), late])
    } catch (error) {
      // Visitors then see the true reason: expired.
      if (expired !== undefined) return expired.certificate
      throw error
    } finally {
      this.#waiting--
      done.abort()
    }
  }

  async #wanted(id: string, isAllowed: boolean | Promise<boolean>): Promise<Certificate | undefined> {
    try {
      if (!(await isAllowed)) return undefined
    } catch (cause) {
      throw cause instanceof TunnelError ? cause : new TunnelError('INTERNAL', undefined, { cause })
    }
    return this.#ordered(id, this.#always.get(id) ?? [id])
  }

  /** Makes an order, one for each id at a time, which all callers share. */
  #ordered(id: string, names: readonly string[], earlier?: StoredCertificate): Promise<Certificate> {
    const running = this.#underWay.get(id)
    if (running !== undefined) return running
    const order = this.#order(id, names, earlier).finally(() => this.#underWay.delete(id))
    // Its failure was reported, and possibly no handshake waits for it.
    order.catch(() => {})
    this.#underWay.set(id, order)
    return order
  }

  async #order(id: string, names: readonly string[], earlier?: StoredCertificate): Promise<Certificate> {
    const there = await this.#usable(id, earlier)
    if (there !== undefined) return there
    let refusal = await this.#pastRefusal(id)
    const release = await takeClaim(this.#claimant, id, this.#stopped.signal)
    try {
      // If another process had the claim, its order is done, or has failed as ours would.
      const found = await this.#usable(id, earlier)
      if (found !== undefined) return found
      refusal = await this.#pastRefusal(id)
      return await this.#slots.run(() => this.#obtain(id, names, earlier))
    } catch (cause) {
      if (this.#stopped.signal.aborted || cause instanceof Gone) throw cause
      if (cause instanceof Standing) this.#stands(id, names, cause.refusal, earlier)
      else await this.#fail(id, names, cause, refusal, earlier)
      throw cause
    } finally {
      await release()
    }
  }

  /** Returns the refusal of the last order, if its pause is over. Throws `Standing` if not. */
  async #pastRefusal(id: string): Promise<StoredRefusal | undefined> {
    const refusal = await this.#store.refusal(id)
    if (refusal !== undefined && refusal.untilMs > this.#clock.now()) throw new Standing(refusal)
    return refusal
  }

  /** Returns the stored certificate, unless it has expired or is the one to replace. */
  async #usable(id: string, earlier: StoredCertificate | undefined): Promise<Certificate | undefined> {
    const stored = await this.#store.certificate(id)
    if (stored === undefined || stored.notAfterMs <= this.#clock.now()) return undefined
    return stored.cert === earlier?.cert ? undefined : this.#keep(stored)
  }

  async #obtain(
    id: string,
    names: readonly string[],
    earlier: StoredCertificate | undefined,
  ): Promise<Certificate> {
    const { authority } = this.#options
    // The order may have waited for a place.
    this.#stopped.signal.throwIfAborted()
    const refused = this.#always.has(id) ? undefined : await this.#options.refusalOf?.(id)
    if (refused !== undefined) {
      const waitMs = earlier === undefined ? REFUSED_MS : REFUSED_RENEWAL_MS
      throw new Delayed(refused.message, this.#clock.now() + waitMs, refused.code)
    }
    const admit = () => this.#admit(id, earlier !== undefined)
    const wish = { id, names, replaces: earlier?.cert, admit }
    const { cert, key } = await authority.obtain(wish, this.#stopped.signal)
    const suggested = await authority.suggestedWindow(cert).catch(() => undefined)
    const lifetime = lifetimeOf(cert)
    const times = renewalTimes(lifetime, suggested, this.#clock.now(), this.#random)
    const stored = { id, names, cert, key, notAfterMs: lifetime.notAfterMs, ...times }
    await this.#store.saveCertificate(stored)
    this.#missing.delete(id)
    this.emit('issued', { names, notAfterMs: lifetime.notAfterMs, isRenewal: earlier !== undefined })
    this.#rounds.wake(times.lookAtMs)
    return this.#keep(stored)
  }

  /** Counts an order. A renewal only counts in the total, because its name is not new. */
  async #admit(id: string, isRenewal: boolean): Promise<void> {
    const isOnDemand = !isRenewal && !this.#always.has(id)
    // The order has waited, so its tunnel may be gone. Without an owner, no share would count the order.
    const isGone = isOnDemand && !(await this.#mayHave(id))
    const nowMs = this.#clock.now()
    if (isGone) throw new Gone(id)
    const owner = isOnDemand ? this.#options.ownerOf?.(id) : undefined
    const freeAtMs = owner === undefined ? undefined : this.#shares.freeAtMs(owner, nowMs)
    if (freeAtMs !== undefined)
      throw new Delayed(`The owner of ${id} has ordered enough certificates for now.`, freeAtMs)
    // Counted first, because other orders are admitted while the store writes.
    if (owner !== undefined) this.#shares.count(owner, nowMs)
    const limits = isOnDemand ? this.#limits : this.#reservedLimits
    const untilMs = await this.#store.admitOrder(id, nowMs, limits)
    if (untilMs !== undefined)
      throw new Delayed('The server has ordered enough certificates for now.', untilMs)
  }

  async #fail(
    id: string,
    names: readonly string[],
    cause: unknown,
    refusal: StoredRefusal | undefined,
    earlier: StoredCertificate | undefined,
  ): Promise<void> {
    const error = cause instanceof TunnelError ? cause : new TunnelError('INTERNAL', undefined, { cause })
    const nowMs = this.#clock.now()
    const failures = (refusal?.failures ?? 0) + (error instanceof Delayed ? 0 : 1)
    const untilMs =
      error instanceof Delayed
        ? error.untilMs
        : nowMs + backOffMs(failures, retryAfterOf(error), this.#random)
    try {
      await this.#store.saveRefusal({ id, failures, untilMs, code: error.code, message: error.message })
    } catch (storeError) {
      this.#report(storeError)
    }
    const hasCertificate = this.#serves(earlier)
    if (!hasCertificate && this.#always.has(id)) this.#missing.set(id, untilMs)
    this.emit('failed', { names, error, untilMs, hasCertificate })
    this.#rounds.wake(untilMs)
  }

  /** Throws if another process failed while this one waited for it. */
  #stands(
    id: string,
    names: readonly string[],
    refusal: StoredRefusal,
    earlier: StoredCertificate | undefined,
  ): void {
    if (!this.#always.has(id)) return
    if (!this.#serves(earlier)) this.#tell(id, names, refusal)
    this.#rounds.wake(refusal.untilMs)
  }

  #serves(earlier: StoredCertificate | undefined): boolean {
    return earlier !== undefined && earlier.notAfterMs > this.#clock.now()
  }

  /** Reports a failure of `always` before this process started, or in another one. */
  #tell(id: string, names: readonly string[], { code, message, untilMs }: StoredRefusal): void {
    if (this.#missing.get(id) === untilMs) return
    this.#missing.set(id, untilMs)
    // Another version may have written to the store.
    const error = new TunnelError(isErrorCode(code) ? code : 'INTERNAL', message)
    this.emit('failed', { names, error, untilMs, hasCertificate: false })
  }

  /** Continues the orders of an earlier process, whose names were allowed at that time. */
  async #resume(): Promise<void> {
    await this.#prune()
    for (const { id, names } of await this.#store.orders(MAX_RESUMED)) {
      if (!this.#always.has(id)) void this.#continue(id, names)
    }
  }

  async #prune(): Promise<void> {
    const nowMs = this.#clock.now()
    this.#prunedAtMs = nowMs
    await this.#store.prune(nowMs - OLDEST_MS)
  }

  async #continue(id: string, names: readonly string[]): Promise<void> {
    try {
      // A renewal: the certificate to be replaced does not stop it.
      await this.#ordered(id, names, await this.#store.certificate(id))
    } catch {
      // Reported as `failed`.
    }
  }

  /** Orders missing and due certificates. Returns the time of the next call. */
  async #work(): Promise<number> {
    const nowMs = this.#clock.now()
    if (nowMs - this.#prunedAtMs > DAY_MS) await this.#prune()
    let nextMs = nowMs + LONGEST_SLEEP_MS
    for (const [id, names] of this.#always) {
      if (this.#underWay.has(id) || (await this.#usable(id, undefined)) !== undefined) continue
      const refusal = await this.#store.refusal(id)
      if (refusal === undefined || refusal.untilMs <= nowMs) {
        void this.#continue(id, names)
        continue
      }
      this.#tell(id, names, refusal)
      nextMs = Math.min(nextMs, refusal.untilMs)
    }
    const due = await this.#store.dueCertificates(nowMs, BATCH)
    await Promise.all(due.map(id => this.#look(id)))
    return Math.min(nextMs, (await this.#store.nextLookAtMs()) ?? nextMs)
  }

  async #look(id: string): Promise<void> {
    try {
      const stored = await this.#store.certificate(id)
      if (stored !== undefined) await this.#renewIfDue(stored)
    } catch (error) {
      // One unreadable certificate must not keep the others from being renewed.
      this.#report(error)
      const laterMs = this.#clock.now() + DAY_MS
      await this.#store.reschedule(id, { renewAtMs: laterMs, lookAtMs: laterMs })
    }
  }

  async #renewIfDue(stored: StoredCertificate): Promise<void> {
    const { id, names, cert, notAfterMs } = stored
    const nowMs = this.#clock.now()
    const isAlways = this.#always.has(id)
    if (!isAlways && notAfterMs <= nowMs) {
      this.#kept.delete(id)
      return this.#store.removeCertificate(id)
    }
    let times: RenewalTimes = stored
    if (nowMs < stored.renewAtMs) {
      const suggested = await this.#options.authority.suggestedWindow(cert).catch(() => undefined)
      times = renewalTimes(lifetimeOf(cert), suggested, nowMs, this.#random, stored)
    }
    if (nowMs < times.renewAtMs) return this.#store.reschedule(id, times)
    const refusal = await this.#store.refusal(id)
    const refusedUntilMs = refusal?.untilMs ?? 0
    const isWanted = isAlways || (names.length === 1 && (await this.#mayHave(id)))
    // A certificate that has replaced it since has times of its own.
    const againMs = isWanted ? Math.max(refusedUntilMs, nowMs + REREAD_MS) : nowMs + DAY_MS
    const lookAtMs = isAlways ? againMs : Math.min(againMs, notAfterMs)
    await this.#store.reschedule(id, { ...times, lookAtMs })
    if (isWanted && refusedUntilMs <= nowMs) void this.#ordered(id, names, stored)
  }

  /** Reads a certificate again, which another process may have renewed. The handshake does not wait for it. */
  #reread(id: string, kept: Kept): void {
    kept.rereadAtMs = this.#clock.now() + REREAD_MS
    this.#store.certificate(id).then(
      stored => {
        if (stored !== undefined && stored.cert !== kept.certificate.cert) this.#keep(stored)
      },
      (error: unknown) => this.#report(error),
    )
  }

  /** Caches a certificate. An unchanged one stays the same object, because TLS contexts are cached by it. */
  #keep({ id, names, cert, key, notAfterMs, renewAtMs }: StoredCertificate): Certificate {
    if (this.#missing.delete(id)) this.emit('issued', { names, notAfterMs, isRenewal: false })
    const known = this.#kept.get(id)?.certificate
    const certificate = known?.cert === cert ? known : { cert, key }
    this.#kept.set(id, { certificate, notAfterMs, rereadAtMs: renewAtMs })
    return certificate
  }

  #report(cause: unknown): void {
    this.emit(
      'error',
      cause instanceof TunnelError ? cause : new TunnelError('INTERNAL', undefined, { cause }),
    )
  }
}

function lifetimeOf(pem: string): { readonly notBeforeMs: number; readonly notAfterMs: number } {
  const { validFrom, validTo } = new X509Certificate(pem)
  return { notBeforeMs: Date.parse(validFrom), notAfterMs: Date.parse(validTo) }
}

/** Returns the time after which an error of an authority allows another attempt. */
function retryAfterOf(error: TunnelError): number | undefined {
  return 'retryAfterMs' in error && typeof error.retryAfterMs === 'number' ? error.retryAfterMs : undefined
}
