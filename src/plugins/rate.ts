// A wall: how many requests one address may make in a window, by GCRA, in a bounded map.

import { TunnelError } from '../errors.ts'
import type { RateRule } from '../guard.ts'
import type { Admittance, Guard, Refusal } from '../plugin.ts'
import { sourceOf } from './addresses.ts'

/** Addresses remembered at once: some 1 MB. Above, the one that has been quiet for longest is forgotten. */
export const MAX_SOURCES = 10_000

/**
 * The generic cell rate algorithm (ITU-T I.371): one number for each key, the time at which its allowance is whole again. Its
 * verdicts are those of a bucket of `limit` tokens that fills evenly within the window.
 */
export class Gcra {
  readonly #intervalMs: number
  readonly #windowMs: number
  readonly #maxKeys: number
  readonly #wholeAt = new Map<string, number>()

  constructor({ limit, windowMs }: RateRule, maxKeys: number = MAX_SOURCES) {
    this.#intervalMs = windowMs / limit
    this.#windowMs = windowMs
    this.#maxKeys = maxKeys
  }

  get size(): number {
    return this.#wholeAt.size
  }

  /** Takes one if there is one: 0, else the milliseconds until there is. */
  take(key: string, nowMs: number): number {
    const wait = this.waitOf(key, nowMs)
    if (wait === 0) this.count(key, nowMs)
    return wait
  }

  /** Milliseconds until this key may take one; takes nothing. */
  waitOf(key: string, nowMs: number): number {
    const wholeAt = this.#wholeAt.get(key)
    return wholeAt === undefined ? 0 : Math.max(0, wholeAt + this.#intervalMs - this.#windowMs - nowMs)
  }

  /** Takes one, whether there is one or not. */
  count(key: string, nowMs: number): void {
    const wholeAt = Math.max(this.#wholeAt.get(key) ?? nowMs, nowMs) + this.#intervalMs
    // Behind all others: the map is in the order in which keys were last seen.
    this.#wholeAt.delete(key)
    this.#wholeAt.set(key, wholeAt)
    if (this.#wholeAt.size > this.#maxKeys) {
      const [oldest = ''] = this.#wholeAt.keys()
      this.#wholeAt.delete(oldest)
    }
  }

  /** What was counted last did not count. */
  giveBack(key: string): void {
    const wholeAt = this.#wholeAt.get(key)
    if (wholeAt !== undefined) this.#wholeAt.set(key, wholeAt - this.#intervalMs)
  }
}

/** Refuses visitors whose address asks too often. */
export class Rate implements Guard {
  readonly name = 'rate'
  readonly #rule: RateRule
  readonly #gcra: Gcra

  /** Throws `GUARD_INVALID`. */
  constructor(rule: RateRule, maxSources?: number) {
    const { limit, windowMs } = rule
    const isUsable =
      Number.isSafeInteger(limit) &&
      limit >= 1 &&
      limit <= 1_000_000 &&
      windowMs >= 1_000 &&
      windowMs <= 86_400_000
    if (!isUsable)
      throw new TunnelError(
        'GUARD_INVALID',
        'guard.rate needs a limit of 1 to 1,000,000 and a window of 1 s to 24 h.',
      )
    this.#rule = rule
    this.#gcra = new Gcra(rule, maxSources)
  }

  admit({ address }: Pick<Admittance, 'address'>, nowMs: number = performance.now()): Refusal | undefined {
    const waitMs = this.#gcra.take(sourceOf(address), nowMs)
    return waitMs === 0 ? undefined : tooMany(this.#rule, waitMs)
  }
}

function tooMany({ limit, windowMs }: RateRule, waitMs: number): Refusal {
  const seconds = Math.ceil(waitMs / 1_000)
  return {
    code: 'RATE_LIMITED',
    headers: [
      // draft-ietf-httpapi-ratelimit-headers-10: q is the quota, w its window, r what remains, t when there is more.
      ['ratelimit-policy', `"visitor";q=${limit};w=${Math.ceil(windowMs / 1_000)}`],
      ['ratelimit', `"visitor";r=0;t=${seconds}`],
      ['retry-after', String(seconds)],
    ],
  }
}
