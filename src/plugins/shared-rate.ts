// An access rule: a rate that several servers share. Each requests another share when its own is used up.

import { Gcra, rateLimited } from '../gcra.ts'
import type { RateRule } from '../guard.ts'
import type { Admittance, Allotment, Guard, Refusal } from '../plugin.ts'
import type { RateShare as Answer, SharedRates } from '../shared-rates.ts'
import { RateShare } from './rate-share.ts'

/** The maximum number of remembered keys. If exceeded, the one that was quiet longest is forgotten. */
export const MAX_SHARES = 10_000
/** The time in milliseconds for the shared store to respond, because a visitor waits for it. */
const ANSWER_MS = 500
/** The time in milliseconds in which the store is not asked after a failure. */
const DOWN_MS = 1_000

/** The behaviour while the shared store does not respond. `local`: this server counts alone. */
export type WhenUnreachable = 'local' | 'open' | 'closed'

export class SharedRate implements Guard {
  readonly name = 'shared rate'
  readonly tunnels?: readonly string[]
  readonly #rule: RateRule
  readonly #rates: SharedRates
  readonly #whenUnreachable: WhenUnreachable
  readonly #keyOf: (visitor: Admittance) => string
  readonly #of: string
  readonly #shares = new Map<string, RateShare>()
  readonly #local: Gcra
  #downUntil = 0

  /** Makes a rate. `of`: the owner of the rate, for visitors to read. */
  constructor(
    rule: RateRule,
    rates: SharedRates,
    whenUnreachable: WhenUnreachable,
    keyOf: (visitor: Admittance) => string,
    of: string,
    tunnels: readonly string[] | undefined,
  ) {
    this.#rule = rule
    this.#rates = rates
    this.#whenUnreachable = whenUnreachable
    this.#keyOf = keyOf
    this.#of = of
    this.#local = new Gcra(rule, MAX_SHARES)
    if (tunnels !== undefined) this.tunnels = tunnels
  }

  admit(visitor: Admittance): Refusal | undefined | Promise<Refusal | undefined> {
    const share = this.#shareOf(this.#keyOf(visitor))
    const verdict = this.#verdict(share)
    return verdict === 'unknown' ? this.#wait(share) : verdict
  }

  /** Lets lanes take from the share of their visitor. While the shared store is away, none begin. */
  allot(visitor: Admittance): Allotment | undefined {
    return this.#shares.get(this.#keyOf(visitor))?.lend()
  }

  #verdict(share: RateShare): Refusal | undefined | 'unknown' {
    const now = performance.now()
    if (share.take(now)) return undefined
    if (share.emptyUntil > now) return rateLimited(this.#rule, share.emptyUntil - now, this.#of)
    return this.#downUntil > now ? this.#alone(share.key) : 'unknown'
  }

  async #wait(share: RateShare): Promise<Refusal | undefined> {
    // Other requests may use up a share before this one has its turn.
    for (;;) {
      await share.more()
      const verdict = this.#verdict(share)
      if (verdict !== 'unknown') return verdict
    }
  }

  readonly #ask = async (share: RateShare, wanted: number): Promise<void> => {
    if (this.#downUntil > performance.now()) return
    try {
      const { granted, waitMs } = await inTime(this.#rates.take(share.key, this.#rule, wanted))
      const now = performance.now()
      if (granted > 0) share.grant(granted, now)
      else share.emptyUntil = now + Math.max(1, waitMs)
    } catch {
      // The connection reports its own error; here it only matters what to do until it is back.
      this.#downUntil = performance.now() + DOWN_MS
    }
  }

  #alone(key: string): Refusal | undefined {
    if (this.#whenUnreachable === 'open') return undefined
    if (this.#whenUnreachable === 'closed')
      return { code: 'CLUSTER_UNREACHABLE', headers: [['retry-after', '1']] }
    const waitMs = this.#local.take(key, performance.now())
    return waitMs === 0 ? undefined : rateLimited(this.#rule, waitMs, this.#of)
  }

  #shareOf(key: string): RateShare {
    const share = this.#shares.get(key) ?? new RateShare(key, this.#rule, this.#ask)
    this.#shares.delete(key)
    this.#shares.set(key, share)
    if (this.#shares.size > MAX_SHARES) {
      const [oldest = ''] = this.#shares.keys()
      this.#shares.delete(oldest)
    }
    return share
  }
}

async function inTime(answer: Promise<Answer>): Promise<Answer> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error('no answer in time')), ANSWER_MS)
  try {
    return await Promise.race([answer, late.promise])
  } finally {
    clearTimeout(timer)
  }
}
