// A wall: a rate that several servers keep together. Each has a share of it, and asks for the next when that is used up.

import { Gcra, rateLimited } from '../gcra.ts'
import type { RateRule } from '../guard.ts'
import type { Admittance, Guard, Refusal } from '../plugin.ts'
import type { RateShare, SharedRates } from '../shared-rates.ts'

/** Keys remembered at once. Above, the one that has been quiet for longest is forgotten. */
export const MAX_SHARES = 10_000
/** A share that is not used in this time is given up: what is left of it is lost for its key. */
const SHARE_MS = 1_000
/** Of a rate, at most this part is one server's at a time. */
const SHARES = 10
/** The keeper of the rates has so long to answer: a visitor waits for it. */
const ANSWER_MS = 500
/** And is left alone for so long when it did not. */
const DOWN_MS = 1_000

/** What holds while the other servers cannot be asked. `local`: this server alone keeps the rate. */
export type WhenUnreachable = 'local' | 'open' | 'closed'

interface Share {
  left: number
  /** On the clock of `performance.now()`, as all here. */
  endsAt: number
  /** None is left anywhere until then. */
  emptyUntil: number
  /** What was taken since the last share: the next one is as large. */
  used: number
  asking: Promise<void> | undefined
}

export class SharedRate implements Guard {
  readonly name = 'shared rate'
  readonly tunnels?: readonly string[]
  readonly #rule: RateRule
  readonly #rates: SharedRates
  readonly #whenUnreachable: WhenUnreachable
  readonly #keyOf: (visitor: Admittance) => string
  readonly #of: string
  readonly #shares = new Map<string, Share>()
  readonly #local: Gcra
  #downUntil = 0

  /** `of`: whose rate it is, for visitors to read. */
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
    const key = this.#keyOf(visitor)
    const now = performance.now()
    const share = this.#shareOf(key)
    if (share.left > 0 && share.endsAt > now) {
      take(share)
      return undefined
    }
    if (share.emptyUntil > now) return rateLimited(this.#rule, share.emptyUntil - now, this.#of)
    if (this.#downUntil > now) return this.#alone(key)
    return this.#wait(key, share)
  }

  async #wait(key: string, share: Share): Promise<Refusal | undefined> {
    // Others may take all of a share before this one has its turn.
    for (;;) {
      share.asking ??= this.#ask(key, share).finally(() => {
        share.asking = undefined
      })
      await share.asking
      const now = performance.now()
      if (share.left > 0 && share.endsAt > now) {
        take(share)
        return undefined
      }
      if (share.emptyUntil > now) return rateLimited(this.#rule, share.emptyUntil - now, this.#of)
      if (this.#downUntil > now) return this.#alone(key)
    }
  }

  async #ask(key: string, share: Share): Promise<void> {
    const wanted = Math.max(1, Math.min(Math.ceil(this.#rule.limit / SHARES), share.used))
    share.used = 0
    try {
      const { granted, waitMs } = await inTime(this.#rates.take(key, this.#rule, wanted))
      const now = performance.now()
      share.left = granted
      share.endsAt = now + SHARE_MS
      share.emptyUntil = granted > 0 ? 0 : now + Math.max(1, waitMs)
    } catch {
      // Said by the connection itself; here only what holds meanwhile matters.
      share.left = 0
      this.#downUntil = performance.now() + DOWN_MS
    }
  }

  #alone(key: string): Refusal | undefined {
    if (this.#whenUnreachable === 'open') return undefined
    if (this.#whenUnreachable === 'closed')
      return { code: 'RATES_UNREACHABLE', headers: [['retry-after', '1']] }
    const waitMs = this.#local.take(key, performance.now())
    return waitMs === 0 ? undefined : rateLimited(this.#rule, waitMs, this.#of)
  }

  #shareOf(key: string): Share {
    const known = this.#shares.get(key)
    const share = known ?? { left: 0, endsAt: 0, emptyUntil: 0, used: 0, asking: undefined }
    this.#shares.delete(key)
    this.#shares.set(key, share)
    if (this.#shares.size > MAX_SHARES) {
      const [oldest = ''] = this.#shares.keys()
      this.#shares.delete(oldest)
    }
    return share
  }
}

function take(share: Share): void {
  share.left--
  share.used += 2
}

async function inTime(answer: Promise<RateShare>): Promise<RateShare> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error('no answer in time')), ANSWER_MS)
  try {
    return await Promise.race([answer, late.promise])
  } finally {
    clearTimeout(timer)
  }
}
