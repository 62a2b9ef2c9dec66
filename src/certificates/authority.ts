// Contract: who issues certificates. The issuer decides when, the authority knows how.

import type { Certificate } from '../certificates.ts'

/** One certificate to get. */
export interface Wish {
  /** What the certificate is filed under. */
  readonly id: string
  readonly names: readonly string[]
  /** PEM of the certificate that the new one follows. */
  readonly replaces?: string | undefined
  /**
   * Asked before a new order is placed, not before one that is under way is continued. Rejects to prevent it.
   */
  readonly admit: () => Promise<void>
}

export interface SuggestedWindow {
  readonly startMs: number
  readonly endMs: number
  /** When to ask again, from now. */
  readonly retryAfterMs: number | undefined
}

export interface Authority {
  /**
   * Gets a certificate. What an earlier process began for the same id and names is continued: after a kill at any
   * moment, no certificate that was issued is lost, and none is ordered twice. Until the caller has saved it
   * (`CertificateStore.saveCertificate`), asking again yields the same one. Rejects with a `TunnelError`; one with
   * `retryAfterMs` says when to try again at the earliest.
   */
  obtain(wish: Wish, signal: AbortSignal): Promise<Certificate>
  /** When the authority wants it renewed; `undefined`: it does not say. `cert`: PEM. */
  suggestedWindow(cert: string): Promise<SuggestedWindow | undefined>
}
