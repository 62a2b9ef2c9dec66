// Certificates of a cluster, with a local copy: this server still has them if the shared store is away, and restores
// them there if they are lost.

import type {
  CertificateStore,
  OrderLimits,
  StoredAccount,
  StoredCertificate,
  StoredOrder,
  StoredRefusal,
} from '../store.ts'

/** Orders are only made while `shared` responds, because it decides which server makes them. */
export class CopiedCertificates implements CertificateStore {
  readonly #own: CertificateStore
  readonly #shared: CertificateStore

  /** Makes the store. `close` closes both. */
  constructor(own: CertificateStore, shared: CertificateStore) {
    this.#own = own
    this.#shared = shared
  }

  async account(): Promise<StoredAccount | undefined> {
    const own = await this.#own.account()
    const shared = await this.#shared.account().catch(() => own)
    if (shared === undefined && own !== undefined) await this.#shared.saveAccount(own)
    const isOther = shared !== undefined && (shared.url !== own?.url || shared.key !== own.key)
    if (isOther) await this.#own.saveAccount(shared)
    return shared ?? own
  }

  async saveAccount(account: StoredAccount): Promise<void> {
    await this.#own.saveAccount(account)
    await this.#shared.saveAccount(account)
  }

  async removeAccount(): Promise<void> {
    await this.#own.removeAccount()
    await this.#shared.removeAccount()
  }

  async certificate(id: string): Promise<StoredCertificate | undefined> {
    const own = await this.#own.certificate(id)
    let shared: StoredCertificate | undefined
    try {
      shared = await this.#shared.certificate(id)
    } catch (error) {
      if (own === undefined) throw error
      return own
    }
    const isNewer = own !== undefined && own.notAfterMs > Math.max(shared?.notAfterMs ?? 0, Date.now())
    // The certificate was ordered while the shared store was away, or that has lost it.
    if (isNewer) await this.#shared.saveCertificate(own).catch(() => {})
    else if (shared !== undefined && shared.cert !== own?.cert) await this.#own.saveCertificate(shared)
    return isNewer ? own : shared
  }

  async saveCertificate(certificate: StoredCertificate): Promise<void> {
    await this.#own.saveCertificate(certificate)
    // The next check writes it to the shared store.
    await this.#shared.saveCertificate(certificate).catch(() => {})
  }

  async reschedule(
    id: string,
    times: Pick<StoredCertificate, 'renewAtMs' | 'lookAtMs' | 'window'>,
  ): Promise<void> {
    await this.#own.reschedule(id, times)
    await this.#shared.reschedule(id, times)
  }

  async removeCertificate(id: string): Promise<void> {
    await this.#own.removeCertificate(id)
    await this.#shared.removeCertificate(id)
  }

  dueCertificates(nowMs: number, limit: number): Promise<readonly string[]> {
    return this.#shared.dueCertificates(nowMs, limit)
  }

  nextLookAtMs(): Promise<number | undefined> {
    return this.#shared.nextLookAtMs()
  }

  order(id: string): Promise<StoredOrder | undefined> {
    return this.#shared.order(id)
  }

  orders(limit: number): Promise<readonly StoredOrder[]> {
    return this.#shared.orders(limit)
  }

  saveOrder(order: StoredOrder): Promise<void> {
    return this.#shared.saveOrder(order)
  }

  removeOrder(id: string): Promise<void> {
    return this.#shared.removeOrder(id)
  }

  refusal(id: string): Promise<StoredRefusal | undefined> {
    return this.#shared.refusal(id)
  }

  saveRefusal(refusal: StoredRefusal): Promise<void> {
    return this.#shared.saveRefusal(refusal)
  }

  removeRefusal(id: string): Promise<void> {
    return this.#shared.removeRefusal(id)
  }

  async prune(beforeMs: number): Promise<void> {
    await this.#own.prune(beforeMs)
    await this.#shared.prune(beforeMs)
  }

  admitOrder(id: string, nowMs: number, limits: OrderLimits): Promise<number | undefined> {
    return this.#shared.admitOrder(id, nowMs, limits)
  }

  claim(id: string, holder: string, nowMs: number, untilMs: number): Promise<boolean> {
    return this.#shared.claim(id, holder, nowMs, untilMs)
  }

  release(id: string, holder: string): Promise<void> {
    return this.#shared.release(id, holder)
  }

  async close(): Promise<void> {
    await this.#own.close()
    await this.#shared.close()
  }
}
