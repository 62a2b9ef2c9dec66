// Rates by GCRA, in maps of limited size: those of the operator, of guards and of tokens.

import type { Allotment, Refusal } from './plugin.ts'

/** An average of `limit` requests in a window, which may come all at once. */
export interface Allowance {
  readonly limit: number
  readonly windowMs: number
}

/** The number of addresses remembered at once, about 1 MB. If exceeded, the one that was quiet longest is forgotten. */
export const MAX_SOURCES = 10_000

/** The minimum number of requests to lend to a lane. With fewer, the lane would end at once. */
const MIN_ALLOTTED = 16
/** The maximum number of allotments that no thread has used yet. */
const MAX_UNUSED = 64
/** The largest value of a counter that threads share. */
const MAX_LEFT = 1_000_000_000

/**
 * The generic cell rate algorithm (ITU-T I.371): stores one number for each key, the time when its allowance is full
 * again. Its verdicts are those of a bucket with `limit` tokens that fills evenly within the window.
 */
export class Gcra {
  readonly #intervalMs: number
  readonly #windowMs: number
  readonly #maxKeys: number
  readonly #wholeAt = new Map<string, number>()
  /** The requests that are lent to worker threads, by key. */
  readonly #allotted = new Map<string, KeyAllotment>()

  constructor({ limit, windowMs }: Allowance, maxKeys: number = MAX_SOURCES) {
    this.#intervalMs = windowMs / limit
    this.#windowMs = windowMs
    this.#maxKeys = maxKeys
  }

  get size(): number {
    return this.#wholeAt.size
  }

  /** Lends the remaining requests of a key to threads, with one loan for all connections. `undefined` if too few are left. */
  allot(key: string, nowMs: number): Allotment | undefined {
    const shared = this.#allotted.get(key)
    if (shared !== undefined) return shared
    if (this.availableOf(key, nowMs) < MIN_ALLOTTED || this.#allotted.size >= this.#maxKeys) return undefined
    if (this.#allotted.size >= MAX_UNUSED) this.#dropUnused()
    const made = new KeyAllotment(this, key, nowMs, () => this.#allotted.delete(key))
    this.#allotted.set(key, made)
    return made
  }

  /** Returns how many requests of a key are allowed now. */
  availableOf(key: string, nowMs: number): number {
    const usedMs = Math.max(0, (this.#wholeAt.get(key) ?? nowMs) - nowMs)
    // A rounding error must not cost a whole request.
    return Math.min(MAX_LEFT, Math.floor((this.#windowMs - usedMs) / this.#intervalMs + 1e-9))
  }

  #dropUnused(): void {
    for (const one of this.#allotted.values()) if (one.isUnused) one.drop()
  }

  /** Takes one request if it is allowed. Returns 0; otherwise the milliseconds until it is. */
  take(key: string, nowMs: number): number {
    const allotted = this.#allotted.size === 0 ? undefined : this.#allotted.get(key)
    if (allotted !== undefined) return allotted.take(nowMs)
    const wait = this.waitOf(key, nowMs)
    if (wait === 0) this.count(key, nowMs)
    return wait
  }

  /** Returns the milliseconds until this key may take one, without taking it. */
  waitOf(key: string, nowMs: number): number {
    const wholeAt = this.#wholeAt.get(key)
    return wholeAt === undefined ? 0 : Math.max(0, wholeAt + this.#intervalMs - this.#windowMs - nowMs)
  }

  /** Counts requests of a key, even beyond its limit. */
  count(key: string, nowMs: number, count = 1): void {
    const wholeAt = Math.max(this.#wholeAt.get(key) ?? nowMs, nowMs) + count * this.#intervalMs
    // Moves the key to the end: the map is in the order in which keys were last seen.
    this.#wholeAt.delete(key)
    this.#wholeAt.set(key, wholeAt)
    if (this.#wholeAt.size > this.#maxKeys) {
      const [oldest = ''] = this.#wholeAt.keys()
      this.#wholeAt.delete(oldest)
    }
  }

  /** Undoes the last count of a key. */
  giveBack(key: string): void {
    const wholeAt = this.#wholeAt.get(key)
    if (wholeAt !== undefined) this.#wholeAt.set(key, wholeAt - this.#intervalMs)
  }
}

/**
 * The remaining requests of one key, in memory that threads share. The next renewal counts what the threads took. A full
 * bucket refills only from then on, so the threads never get more than it has.
 */
class KeyAllotment implements Allotment {
  readonly left: Int32Array<SharedArrayBuffer> = new Int32Array(new SharedArrayBuffer(4))
  readonly #gcra: Gcra
  readonly #key: string
  readonly #over: () => void
  #users = 0
  /** The value of `left` after the last renewal. */
  #given = 0

  constructor(gcra: Gcra, key: string, nowMs: number, over: () => void) {
    this.#gcra = gcra
    this.#key = key
    this.#over = over
    this.renew(nowMs)
  }

  get isUnused(): boolean {
    return this.#users === 0
  }

  began(): void {
    this.#users++
  }

  ended(): void {
    if (--this.#users === 0) this.drop()
  }

  drop(): void {
    // Threads can take nothing more from it.
    this.#count(this.#given - Math.max(0, Atomics.exchange(this.left, 0, 0)), performance.now())
    this.#over()
  }

  renew(nowMs: number = performance.now()): void {
    const left = Math.max(0, Atomics.load(this.left, 0))
    this.#count(this.#given - left, nowMs)
    this.#given = this.#gcra.availableOf(this.#key, nowMs)
    // Requests that threads took since stay counted.
    Atomics.add(this.left, 0, this.#given - left)
  }

  /** Counts a request, like `Gcra.take`. */
  take(nowMs: number): number {
    if (this.#takeOne()) return 0
    this.renew(nowMs)
    return this.#takeOne() ? 0 : Math.max(this.#gcra.waitOf(this.#key, nowMs), 1)
  }

  #takeOne(): boolean {
    if (Atomics.sub(this.left, 0, 1) > 0) return true
    Atomics.add(this.left, 0, 1)
    return false
  }

  #count(count: number, nowMs: number): void {
    if (count > 0) this.#gcra.count(this.#key, nowMs, count)
  }
}

/** Whether a rate is valid: 1 to 1,000,000 in 1 s to 24 h. */
export function isAllowance({ limit, windowMs }: Allowance): boolean {
  return (
    Number.isSafeInteger(limit) &&
    limit >= 1 &&
    limit <= 1_000_000 &&
    Number.isSafeInteger(windowMs) &&
    windowMs >= 1_000 &&
    windowMs <= 86_400_000
  )
}

/** Makes the refusal of a visitor with too many requests. `of`: the kind of owner of the rate, such as `visitor`. */
export function rateLimited({ limit, windowMs }: Allowance, waitMs: number, of: string): Refusal {
  const seconds = Math.ceil(waitMs / 1_000)
  return {
    code: 'RATE_LIMITED',
    headers: [
      // draft-ietf-httpapi-ratelimit-headers-10: q is the quota, w its window, r the remaining number, t the time
      // until there is more.
      ['ratelimit-policy', `"${of}";q=${limit};w=${Math.ceil(windowMs / 1_000)}`],
      ['ratelimit', `"${of}";r=0;t=${seconds}`],
      ['retry-after', String(seconds)],
    ],
  }
}
