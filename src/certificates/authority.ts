// Contract: an authority that issues certificates. The issuer decides when to order.

import type { Certificate } from '../certificates.ts'

export interface Wish {
  /** The id under which the certificate is stored. */
  readonly id: string
  readonly names: readonly string[]
  /** The PEM text of the certificate that is being replaced. */
  readonly replaces?: string | undefined
  /** Called before a new order is placed, but not before an open one continues. Rejects to prevent it. */
  readonly admit: () => Promise<void>
}

export interface SuggestedWindow {
  readonly startMs: number
  readonly endMs: number
  /** The time in milliseconds until the next question. */
  readonly retryAfterMs: number | undefined
}

export interface Authority {
  /**
   * Gets a certificate. An order of an earlier process for the same id and names is continued: after a kill at any moment, no
   * certificate that was issued is lost, and none is ordered twice. Until the caller has saved it
   * (`CertificateStore.saveCertificate`), asking again yields the same one. Rejects with a `TunnelError`; one with
   * `retryAfterMs` says when to try again at the earliest.
   */
  obtain(wish: Wish, signal: AbortSignal): Promise<Certificate>
  /** Returns when the authority wants a certificate renewed. `undefined` if it does not say. `cert`: PEM. */
  suggestedWindow(cert: string): Promise<SuggestedWindow | undefined>
}
