// The exclusive right to order for one id, taken from the store and extended until it is released.

import type { CertificateStore } from '../store.ts'
import { type Clock, pause } from './clock.ts'

/**
 * The time in milliseconds after which a killed process's claim ends. A living one extends its claim three times in that time.
 */
const CLAIM_MS = 30_000
/** The time in milliseconds between checks whether the claiming process is done. */
const POLL_MS = 1_000

export interface Claimant {
  readonly store: CertificateStore
  readonly clock: Clock
  readonly holder: string
  /** Called with errors while the claim is held. */
  readonly report: (error: unknown) => void
}

/** Waits until `holder` may order for `id`. Returns a function that releases the claim. Rejects with the reason of `signal`. */
export async function takeClaim(
  { store, clock, holder, report }: Claimant,
  id: string,
  signal: AbortSignal,
): Promise<() => Promise<void>> {
  const claim = () => {
    const nowMs = clock.now()
    return store.claim(id, holder, nowMs, nowMs + CLAIM_MS)
  }
  while (!(await claim())) await pause(clock, POLL_MS, signal)
  let cancel: () => void
  const prolong = () => {
    cancel = clock.after(CLAIM_MS / 3, () => {
      claim().catch(report)
      prolong()
    })
  }
  prolong()
  return async () => {
    cancel()
    await store.release(id, holder).catch(report)
  }
}
