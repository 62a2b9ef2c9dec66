// Contract: the store of certificates and their accounts, across restarts of a server.

/** The account at the certificate authority. */
export interface StoredAccount {
  /** The URL of the account at the authority. */
  readonly url: string
  /** The private key as PEM. */
  readonly key: string
}

/** A certificate that was issued. */
export interface StoredCertificate {
  /** The id under which the certificate is stored. */
  readonly id: string
  readonly names: readonly string[]
  /** The certificate chain as PEM: the certificate itself, then those between it and the root. */
  readonly cert: string
  /** The private key as PEM. */
  readonly key: string
  /** The end of its validity. All times are milliseconds since 1970. */
  readonly notAfterMs: number
  /** The time to order the next certificate. */
  readonly renewAtMs: number
  /** The next time to act: to order, or to ask the authority when to order. */
  readonly lookAtMs: number
  /** The window in which the authority wants it renewed (RFC 9773), if it has named one. */
  readonly window?: { readonly startMs: number; readonly endMs: number }
}

/** An order that the authority accepted, and whose certificate was not saved yet. */
export interface StoredOrder {
  readonly id: string
  readonly names: readonly string[]
  /** The URL of the order at the authority. */
  readonly url: string
  /** The private key of the certificate to come, as PEM. */
  readonly key: string
  readonly startedAtMs: number
}

/** A record of failed orders, so that a restart does not order again at once. */
export interface StoredRefusal {
  readonly id: string
  /** The number of failures in a row. */
  readonly failures: number
  readonly untilMs: number
  /** The code of the last failure. */
  readonly code: string
  readonly message: string
}

export interface OrderLimits {
  readonly perName: number
  readonly perNameMs: number
  readonly total: number
  readonly totalMs: number
}

/**
 * Stores the data of one certificate authority: the account, certificates, orders in progress, failures.
 *
 * When a method has resolved, its data is written and survives a power cut. Each method is one transaction. Several
 * processes may share one store. Failures reject with `STORE_FAILED`.
 */
export interface CertificateStore {
  account(): Promise<StoredAccount | undefined>
  saveAccount(account: StoredAccount): Promise<void>
  /** Removes the account; certificates stay. */
  removeAccount(): Promise<void>

  certificate(id: string): Promise<StoredCertificate | undefined>
  /** Replaces the certificate with the same id, and removes its order and its refusal, which it settles. */
  saveCertificate(certificate: StoredCertificate): Promise<void>
  /** Changes the times of a certificate. Does nothing if it does not exist any more. */
  reschedule(id: string, times: Pick<StoredCertificate, 'renewAtMs' | 'lookAtMs' | 'window'>): Promise<void>
  removeCertificate(id: string): Promise<void>
  /** Returns ids of certificates that are due, the longest due first, at most `limit`. */
  dueCertificates(nowMs: number, limit: number): Promise<readonly string[]>
  /** The earliest `lookAtMs`. */
  nextLookAtMs(): Promise<number | undefined>

  order(id: string): Promise<StoredOrder | undefined>
  /** Returns all orders in progress, the oldest first, at most `limit`, for a server that starts again. */
  orders(limit: number): Promise<readonly StoredOrder[]>
  saveOrder(order: StoredOrder): Promise<void>
  removeOrder(id: string): Promise<void>

  refusal(id: string): Promise<StoredRefusal | undefined>
  saveRefusal(refusal: StoredRefusal): Promise<void>
  removeRefusal(id: string): Promise<void>

  /**
   * Removes orders that were started before `beforeMs`, and refusals and claims that ended before it, so that they do
   * not pile up.
   */
  prune(beforeMs: number): Promise<void>

  /**
   * Counts one order for `id` if the limits allow it, and resolves with `undefined`. If not, counts nothing and
   * resolves with the time of the next allowed one. A limit of 0 means none.
   */
  admitOrder(id: string, nowMs: number, limits: OrderLimits): Promise<number | undefined>

  /**
   * Claims the right to order for `id` until `untilMs`, or extends it, so that two processes do not order twice.
   * Resolves with `false` if another holder has it. The claim of a killed process ends at its time.
   */
  claim(id: string, holder: string, nowMs: number, untilMs: number): Promise<boolean>
  /** Releases the claim; does nothing if another holder has it. */
  release(id: string, holder: string): Promise<void>

  /** Closes the store. Later calls reject with `STORE_FAILED`. */
  close(): Promise<void>
}

/** The links that work once and were used. When a method returns, its data is written. */
export interface UsedLinks {
  /** Whether this link was used. */
  has(id: string): boolean
  /**
   * Marks a link as used. Returns `false` if it was used before, or there is no room to remember it: `owner` gets no
   * more of the room than it leaves free.
   */
  use(id: string, untilMs: number, owner?: string): boolean
  close(): void
}
