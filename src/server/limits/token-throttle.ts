// Looks at the tokens that clients show, and slows addresses down whose tokens are refused again and again.

import { type ErrorCode, errorOf } from '../../errors.ts'
import type { Scheduler } from '../../session/scheduler.ts'
import type { TokenFault } from '../../tokens.ts'
import { networkOf } from '../../wire/ip-address.ts'
import type { Bounds } from '../settings/bounds.ts'
import type { Rule } from '../settings/policy.ts'

/** The delay of the first refusal that is one too many; each further one doubles it, up to `tokenDelayMs`. */
const FIRST_DELAY_MS = 100
/** The time in milliseconds without refusals in which an address loses half of those it has. */
const HALF_LIFE_MS = 60_000
/** Refusals that count beyond those that reach the longest delay: an address that stops is soon as good as new. */
const MAX_EXCESS = 10
/** Addresses in memory, of about 150 bytes each. The one whose last refusal is longest ago is forgotten. */
const MAX_ADDRESSES = 16_384

type TokenRefusal = Extract<ErrorCode, TokenFault | 'TOO_MANY_REFUSALS' | 'INTERNAL'>
export type Verdict = Rule | TokenRefusal

/** The operations of the server that the gate needs. */
export interface TokenThrottleHost {
  limits(): Bounds
  readonly scheduler: Scheduler
  /** Returns the rule of a token. `undefined` if it has none. */
  ruleOf(token: string | undefined): Rule | undefined
  /** Returns a reader for a token that needs the keys of an issuer. `undefined` if it needs none, and `ruleOf` has decided. */
  readingOf?(token: string | undefined, address: string): (() => Promise<Rule | TokenFault>) | undefined
  failed(error: Error): void
}

interface Suspect {
  /** Refusals, as of `atMs`. */
  count: number
  atMs: number
}

/**
 * A token of a slow address waits before it is looked at, whatever it is: a response that came earlier for a good token
 * would tell which one is good. So a good one gets in after the same delay, and each address has its own.
 */
export class TokenThrottle {
  readonly #host: TokenThrottleHost
  /** The suspects by address; the one refused last is the last. */
  readonly #suspects = new Map<string, Suspect>()
  readonly #waiting = new Map<string, number>()

  constructor(host: TokenThrottleHost) {
    this.#host = host
  }

  /** Whether this token can be looked at at once. `undefined`: none is shown, and nothing is guessed. */
  isQuick(token: string | undefined, address: string): boolean {
    if (token === undefined) return true
    return this.delayOf(address) === 0 && this.#host.readingOf?.(token, address) === undefined
  }

  /** Returns how long a token from this address waits now, in milliseconds. */
  delayOf(address: string): number {
    const { tokenDelayMs, maxTokenGuesses } = this.#host.limits()
    const suspect = this.#suspects.get(networkOf(address))
    if (suspect === undefined || tokenDelayMs === 0) return 0
    const excess = Math.round(this.#countOf(suspect)) - maxTokenGuesses
    return excess < 0 ? 0 : Math.min(FIRST_DELAY_MS * 2 ** excess, tokenDelayMs)
  }

  /** Looks at a token at once. `INTERNAL`: looking failed, which is reported and says nothing of the token. */
  judge(token: string | undefined, address: string): Verdict {
    let rule: Rule | undefined
    try {
      rule = this.#host.ruleOf(token)
    } catch (cause) {
      this.#failed(cause)
      return 'INTERNAL'
    }
    if (rule === undefined && token !== undefined) this.#refused(address)
    return rule ?? 'TOKEN_REFUSED'
  }

  /**
   * Looks at a token after the delay of its address, and calls `judged` once, unless the function returned is called
   * before. A code: too many tokens of the address wait already.
   */
  judgeLater(
    token: string | undefined,
    address: string,
    judged: (verdict: Verdict) => void,
  ): (() => void) | TokenRefusal {
    const network = networkOf(address)
    const waiting = this.#waiting.get(network) ?? 0
    if (waiting >= this.#host.limits().maxTokenWaits) return 'TOO_MANY_REFUSALS'
    this.#waiting.set(network, waiting + 1)
    let isOver = false
    const end = (): void => {
      if (!isOver) this.#left(network)
      isOver = true
    }
    const tell = (verdict: Verdict): void => {
      if (isOver) return
      end()
      try {
        judged(verdict)
      } catch (cause) {
        this.#failed(cause)
      }
    }
    const cancel = this.#host.scheduler.after(this.delayOf(address), () => {
      const reading = this.#host.readingOf?.(token, address)
      if (reading === undefined) tell(this.judge(token, address))
      else void this.#read(reading, address).then(tell)
    })
    return () => {
      cancel()
      end()
    }
  }

  /** Reads a token. Never rejects. */
  async #read(reading: () => Promise<Rule | TokenFault>, address: string): Promise<Verdict> {
    try {
      const verdict = await reading()
      // A token that has expired, or cannot be checked, is not a guess.
      if (verdict === 'TOKEN_REFUSED') this.#refused(address)
      return verdict
    } catch (cause) {
      this.#failed(cause)
      return 'INTERNAL'
    }
  }

  #failed(cause: unknown): void {
    this.#host.failed(errorOf(cause))
  }

  #left(network: string): void {
    const waiting = (this.#waiting.get(network) ?? 0) - 1
    if (waiting > 0) this.#waiting.set(network, waiting)
    else this.#waiting.delete(network)
  }

  #refused(address: string): void {
    const network = networkOf(address)
    const suspect = this.#suspects.get(network)
    const most = this.#host.limits().maxTokenGuesses + MAX_EXCESS
    const count = Math.min((suspect === undefined ? 0 : this.#countOf(suspect)) + 1, most)
    this.#suspects.delete(network)
    this.#suspects.set(network, { count, atMs: this.#host.scheduler.now() })
    if (this.#suspects.size <= MAX_ADDRESSES) return
    const [oldest = ''] = this.#suspects.keys()
    this.#suspects.delete(oldest)
  }

  #countOf({ count, atMs }: Suspect): number {
    return count * 2 ** ((atMs - this.#host.scheduler.now()) / HALF_LIFE_MS)
  }
}
