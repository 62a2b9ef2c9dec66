// Certificates kept in memory: for tests and for servers that may order again after every start.

import { TunnelError } from '../errors.ts'
import type {
  CertificateStore,
  OrderLimits,
  StoredAccount,
  StoredCertificate,
  StoredOrder,
  StoredRefusal,
} from '../store.ts'

/** A `CertificateStore` that forgets everything when the process ends. */
export class MemoryCertificates implements CertificateStore {
  #account: StoredAccount | undefined
  readonly #certificates = new Map<string, StoredCertificate>()
  readonly #orders = new Map<string, StoredOrder>()
  readonly #refusals = new Map<string, StoredRefusal>()
  readonly #claims = new Map<string, { readonly holder: string; readonly untilMs: number }>()
  #admitted: { readonly id: string; readonly atMs: number }[] = []
  #isClosed = false

  async account(): Promise<StoredAccount | undefined> {
    this.#checkOpen()
    return this.#account
  }

  async saveAccount(account: StoredAccount): Promise<void> {
    this.#checkOpen()
    this.#account = account
  }

  async removeAccount(): Promise<void> {
    this.#checkOpen()
    this.#account = undefined
  }

  async certificate(id: string): Promise<StoredCertificate | undefined> {
    this.#checkOpen()
    return this.#certificates.get(id)
  }

  async saveCertificate(certificate: StoredCertificate): Promise<void> {
    this.#checkOpen()
    this.#certificates.set(certificate.id, certificate)
    this.#orders.delete(certificate.id)
    this.#refusals.delete(certificate.id)
  }

  async reschedule(
    id: string,
    times: Pick<StoredCertificate, 'renewAtMs' | 'lookAtMs' | 'window'>,
  ): Promise<void> {
    this.#checkOpen()
    const certificate = this.#certificates.get(id)
    if (certificate === undefined) return
    const { window: _, ...rest } = certificate
    this.#certificates.set(id, { ...rest, ...times })
  }

  async removeCertificate(id: string): Promise<void> {
    this.#checkOpen()
    this.#certificates.delete(id)
  }

  async dueCertificates(nowMs: number, limit: number): Promise<readonly string[]> {
    this.#checkOpen()
    return [...this.#certificates.values()]
      .filter(({ lookAtMs }) => lookAtMs <= nowMs)
      .sort((first, second) => first.lookAtMs - second.lookAtMs)
      .slice(0, limit)
      .map(({ id }) => id)
  }

  async nextLookAtMs(): Promise<number | undefined> {
    this.#checkOpen()
    let next: number | undefined
    for (const { lookAtMs } of this.#certificates.values()) {
      if (next === undefined || lookAtMs < next) next = lookAtMs
    }
    return next
  }

  async order(id: string): Promise<StoredOrder | undefined> {
    this.#checkOpen()
    return this.#orders.get(id)
  }

  async orders(limit: number): Promise<readonly StoredOrder[]> {
    this.#checkOpen()
    return [...this.#orders.values()]
      .sort((first, second) => first.startedAtMs - second.startedAtMs)
      .slice(0, limit)
  }

  async saveOrder(order: StoredOrder): Promise<void> {
    this.#checkOpen()
    this.#orders.set(order.id, order)
  }

  async removeOrder(id: string): Promise<void> {
    this.#checkOpen()
    this.#orders.delete(id)
  }

  async refusal(id: string): Promise<StoredRefusal | undefined> {
    this.#checkOpen()
    return this.#refusals.get(id)
  }

  async saveRefusal(refusal: StoredRefusal): Promise<void> {
    this.#checkOpen()
    this.#refusals.set(refusal.id, refusal)
  }

  async removeRefusal(id: string): Promise<void> {
    this.#checkOpen()
    this.#refusals.delete(id)
  }

  async prune(beforeMs: number): Promise<void> {
    this.#checkOpen()
    for (const { id, startedAtMs } of this.#orders.values())
      if (startedAtMs < beforeMs) this.#orders.delete(id)
    for (const { id, untilMs } of this.#refusals.values()) if (untilMs < beforeMs) this.#refusals.delete(id)
    for (const [id, { untilMs }] of this.#claims) if (untilMs < beforeMs) this.#claims.delete(id)
  }

  async admitOrder(id: string, nowMs: number, limits: OrderLimits): Promise<number | undefined> {
    this.#checkOpen()
    const longestMs = Math.max(limits.perNameMs, limits.totalMs)
    this.#admitted = this.#admitted.filter(({ atMs }) => atMs > nowMs - longestMs)
    const ofName = this.#admitted.filter(order => order.id === id)
    const times = [
      freeAt(ofName, nowMs, limits.perName, limits.perNameMs),
      freeAt(this.#admitted, nowMs, limits.total, limits.totalMs),
    ].filter(time => time !== undefined)
    if (times.length > 0) return Math.max(...times)
    this.#admitted.push({ id, atMs: nowMs })
    return undefined
  }

  async claim(id: string, holder: string, nowMs: number, untilMs: number): Promise<boolean> {
    this.#checkOpen()
    const claim = this.#claims.get(id)
    if (claim !== undefined && claim.holder !== holder && claim.untilMs > nowMs) return false
    this.#claims.set(id, { holder, untilMs })
    return true
  }

  async release(id: string, holder: string): Promise<void> {
    this.#checkOpen()
    if (this.#claims.get(id)?.holder === holder) this.#claims.delete(id)
  }

  async close(): Promise<void> {
    this.#isClosed = true
  }

  #checkOpen(): void {
    if (this.#isClosed) throw new TunnelError('STORE_FAILED', 'The store is closed.')
  }
}

/** When one more is allowed; `undefined`: now. */
function freeAt(
  admitted: readonly { readonly atMs: number }[],
  nowMs: number,
  limit: number,
  windowMs: number,
): number | undefined {
  if (limit === 0) return undefined
  const recent = admitted.filter(({ atMs }) => atMs > nowMs - windowMs)
  // The oldest that still leaves `limit` of them has to leave the window.
  return recent.length < limit ? undefined : recent[recent.length - limit]!.atMs + windowMs
}
