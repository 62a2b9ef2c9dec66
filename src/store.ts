// Contract: what a server keeps across restarts. Today that is certificates and what belongs to them.

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
  /** Milliseconds since 1970, as all times here. */
  readonly notAfterMs: number
  /** The time to order the next certificate. */
  readonly renewAtMs: number
  /** The time to check next: to order, or to ask the authority when to order. */
  readonly lookAtMs: number
  /** The window in which the authority wants it renewed (RFC 9773), when it has said one. */
  readonly window?: { readonly startMs: number; readonly endMs: number }
}

/** An order that the authority has accepted, and whose certificate has not been saved yet. */
export interface StoredOrder {
  readonly id: string
  readonly names: readonly string[]
  /** The URL of the order at the authority. */
  readonly url: string
  /** The private key of the certificate to come, as PEM. */
  readonly key: string
  readonly startedAtMs: number
}

/** A record of failed orders, so that a restart does not ask again at once. */
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
 * Keeps what belongs to one certificate authority: the account, certificates, orders in progress, failures.
 *
 * A method that has resolved has written: what it saved is there after a power cut. Each method is one transaction.
 * Several processes may share one store. Failures reject with `STORE_FAILED`.
 */
export interface CertificateStore {
  account(): Promise<StoredAccount | undefined>
  saveAccount(account: StoredAccount): Promise<void>
  /** Forgets the account; certificates stay. */
  removeAccount(): Promise<void>

  certificate(id: string): Promise<StoredCertificate | undefined>
  /** Replaces the one with the same id, and removes its order and its refusal: both are settled by it. */
  saveCertificate(certificate: StoredCertificate): Promise<void>
  /** Changes when to look at it. Does nothing when there is none any more. */
  reschedule(id: string, times: Pick<StoredCertificate, 'renewAtMs' | 'lookAtMs' | 'window'>): Promise<void>
  removeCertificate(id: string): Promise<void>
  /** Ids of certificates to look at, the longest due first, at most `limit`. */
  dueCertificates(nowMs: number, limit: number): Promise<readonly string[]>
  /** The earliest `lookAtMs`. */
  nextLookAtMs(): Promise<number | undefined>

  order(id: string): Promise<StoredOrder | undefined>
  /** All orders in progress, the oldest first, at most `limit`, for a server that starts again. */
  orders(limit: number): Promise<readonly StoredOrder[]>
  saveOrder(order: StoredOrder): Promise<void>
  removeOrder(id: string): Promise<void>

  refusal(id: string): Promise<StoredRefusal | undefined>
  saveRefusal(refusal: StoredRefusal): Promise<void>
  removeRefusal(id: string): Promise<void>

  /** Forgets orders that were started before, and refusals and claims that ended before: so that none pile up without limit. */
  prune(beforeMs: number): Promise<void>

  /**
   * Counts one order for `id`, if the limits allow it: `undefined`. If they do not, it counts nothing and says when the
   * next one is allowed. A limit of 0 is none.
   */
  admitOrder(id: string, nowMs: number, limits: OrderLimits): Promise<number | undefined>

  /**
   * Takes or prolongs the right to order for `id` until `untilMs`, so that two processes do not order twice. `false`:
   * another holder has it. It is free again when the time has passed: a process that was killed blocks it no longer.
   */
  claim(id: string, holder: string, nowMs: number, untilMs: number): Promise<boolean>
  /** Releases the claim; does nothing if another holder has it. */
  release(id: string, holder: string): Promise<void>

  /** Closes the store. Later calls reject with `STORE_FAILED`. */
  close(): Promise<void>
}

/** Links that work once and were used. A method that has returned has written. */
export interface UsedLinks {
  /** Whether this one was. */
  has(id: string): boolean
  /**
   * Marks a link as used. `false`: it was before, or there is no room to remember it: `owner` has no more of it than it leaves
   * free.
   */
  use(id: string, untilMs: number, owner?: string): boolean
  close(): void
}
