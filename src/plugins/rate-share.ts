// One server's share of a key's rate: visitors take from it, on the main thread and in lanes.

import type { RateRule } from '../guard.ts'
import type { Allotment } from '../plugin.ts'

/** The time in milliseconds after which a share expires. The rest of it is lost for its key. */
const SHARE_MS = 1_000
/** The divisor of a rate: a server has at most this fraction of it at a time. */
const SHARES = 10
/** The minimum number of requests to lend to worker threads. With fewer per lane, lanes would end at once. */
const MIN_LENT = 64

/** Requests and adds `wanted` more. Never rejects. */
type Ask = (share: RateShare, wanted: number) => Promise<void>

export class RateShare implements Allotment {
  readonly key: string
  /** The time until which the rate is used up at all servers. All times here are on the clock of `performance.now()`. */
  emptyUntil = 0
  readonly #maxShare: number
  readonly #ask: Ask
  #endsAt = 0
  /** The number of requests that are left, while none are lent. */
  #own = 0
  #lent: Int32Array<SharedArrayBuffer> | undefined
  #lanes = 0
  /** The number that was left when the main thread last read the counter of the threads. */
  #seen = 0
  /** The number used since the last request. The next share is twice as large. */
  #used = 0
  #asking: Promise<void> | undefined

  constructor(key: string, { limit }: RateRule, ask: Ask) {
    this.key = key
    this.#maxShare = Math.ceil(limit / SHARES)
    this.#ask = ask
  }

  take(now: number): boolean {
    this.#dropExpired(now)
    if (!this.#takeOne()) return false
    this.#used++
    return true
  }

  /** Requests more. All callers wait for the same response. */
  more(): Promise<void> {
    this.#asking ??= this.#askForMore().finally(() => {
      this.#asking = undefined
    })
    return this.#asking
  }

  #askForMore(): Promise<void> {
    this.#count()
    const wanted = Math.min(this.#maxShare - this.#left, Math.max(1, 2 * this.#used))
    this.#used = 0
    return wanted > 0 ? this.#ask(this, wanted) : Promise.resolve()
  }

  grant(count: number, now: number): void {
    this.emptyUntil = 0
    this.#add(count)
    this.#endsAt = now + SHARE_MS
  }

  // ── For lanes ──────────────────────────────────────────────────────────────────────────────────────────────

  /** Lends the share to threads. `undefined` if too few are left. */
  lend(): Allotment | undefined {
    return this.#left < MIN_LENT * (this.#lanes + 1) ? undefined : this
  }

  get left(): Int32Array<SharedArrayBuffer> {
    if (this.#lent !== undefined) return this.#lent
    const lent = new Int32Array(new SharedArrayBuffer(4))
    lent[0] = this.#own
    this.#seen = this.#own
    this.#lent = lent
    return lent
  }

  began(): void {
    this.#lanes++
  }

  ended(): void {
    this.#lanes--
  }

  /** Requests more before none are left, so that lanes continue. */
  renew(now: number = performance.now()): void {
    const taken = this.#count()
    this.#dropExpired(now)
    if (taken > 0 && this.#left <= 2 * taken && this.emptyUntil <= now) void this.more()
  }

  // ───────────────────────────────────────────────────────────────────────────────────────────────────────────

  get #left(): number {
    return this.#lent === undefined ? this.#own : Math.max(0, Atomics.load(this.#lent, 0))
  }

  #dropExpired(now: number): void {
    // A thread that takes one at this moment leaves a debt, which the next share pays.
    if (this.#endsAt <= now) this.#add(-this.#left)
  }

  #add(count: number): void {
    if (this.#lent === undefined) this.#own += count
    else {
      Atomics.add(this.#lent, 0, count)
      this.#seen += count
    }
  }

  #takeOne(): boolean {
    if (this.#lent === undefined) {
      if (this.#own === 0) return false
      this.#own--
      return true
    }
    if (Atomics.sub(this.#lent, 0, 1) > 0) {
      this.#seen--
      return true
    }
    Atomics.add(this.#lent, 0, 1)
    return false
  }

  /** Returns how many threads took since the last call. */
  #count(): number {
    if (this.#lent === undefined) return 0
    const left = Atomics.load(this.#lent, 0)
    const taken = this.#seen - left
    this.#seen = left
    this.#used += taken
    return taken
  }
}
