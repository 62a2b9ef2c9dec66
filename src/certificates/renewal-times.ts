// When to renew a certificate: at the time that the authority suggests (RFC 9773), otherwise after two thirds of the lifetime.

import type { StoredCertificate } from '../store.ts'
import type { SuggestedWindow } from './authority.ts'

export type RenewalTimes = Pick<StoredCertificate, 'renewAtMs' | 'lookAtMs' | 'window'>

export interface Lifetime {
  readonly notBeforeMs: number
  readonly notAfterMs: number
}

/** The time in milliseconds between questions to an authority that names none (RFC 9773, 4.3.3, leaves it open). */
const ASK_AGAIN_MS = 6 * 3_600_000
const MIN_ASK_AGAIN_MS = 60_000
const MAX_ASK_AGAIN_MS = 24 * 3_600_000
/**
 * The share of the lifetime after which renewal begins without advice. It is spread over a twentieth, so that
 * certificates of one day are not renewed at one moment.
 */
const FALLBACK_SHARE = 2 / 3
const SPREAD_SHARE = 1 / 20
/** The share of the lifetime after which renewal begins whatever the advice: a twentieth is left for failed attempts. */
const LATEST_SHARE = 19 / 20

/**
 * Returns the times for a certificate. `suggested`: the authority's advice, if it could be asked. `earlier`: the last
 * result. The same window keeps its moment; otherwise each call would choose another one.
 */
export function renewalTimes(
  { notBeforeMs, notAfterMs }: Lifetime,
  suggested: SuggestedWindow | undefined,
  nowMs: number,
  random: () => number,
  earlier?: RenewalTimes,
): RenewalTimes {
  const lifetimeMs = notAfterMs - notBeforeMs
  if (suggested === undefined) {
    const share = FALLBACK_SHARE + SPREAD_SHARE * random()
    const renewAtMs = Math.round(earlier?.renewAtMs ?? notBeforeMs + lifetimeMs * share)
    const kept = earlier?.window === undefined ? {} : { window: earlier.window }
    return { renewAtMs, lookAtMs: Math.min(renewAtMs, nowMs + ASK_AGAIN_MS), ...kept }
  }
  const { startMs, endMs, retryAfterMs = ASK_AGAIN_MS } = suggested
  const isSame = earlier?.window?.startMs === startMs && earlier.window.endMs === endMs
  const chosenMs = isSame ? earlier.renewAtMs : startMs + (endMs - startMs) * random()
  const renewAtMs = Math.round(Math.min(chosenMs, notBeforeMs + lifetimeMs * LATEST_SHARE))
  const againMs = Math.min(Math.max(retryAfterMs, MIN_ASK_AGAIN_MS), MAX_ASK_AGAIN_MS)
  return { renewAtMs, lookAtMs: Math.min(renewAtMs, nowMs + againMs), window: { startMs, endMs } }
}
