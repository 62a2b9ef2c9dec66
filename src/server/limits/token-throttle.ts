// Checks the tokens that clients show, and delays addresses whose tokens are refused repeatedly.

import { type ErrorCode, errorOf } from '../../errors.ts'
import type { Scheduler } from '../../session/scheduler.ts'
import type { TokenFault } from '../../tokens.ts'
import { networkOf } from '../../wire/ip-address.ts'
import type { Bounds } from '../settings/bounds.ts'
import type { Rule } from '../settings/policy.ts'

/** The delay in milliseconds after the first refusal above the limit. Each further one doubles it, up to `tokenDelayMs`. */
const FIRST_DELAY_MS = 100
/** The time in milliseconds without refusals after which half of an address's refusals are forgotten. */
const HALF_LIFE_MS = 60_000
/** The number of refusals that count beyond the longest delay. The small number lets an address recover soon after it stops. */
const MAX_EXCESS = 10
/**
 * The number of addresses in memory, of about 150 bytes each. If exceeded, the one whose last refusal is longest ago
 * is forgotten.
 */
const MAX_ADDRESSES = 16_384

type TokenRefusal = Extract<ErrorCode, TokenFault | 'TOO_MANY_REFUSALS' | 'INTERNAL'>
export type Verdict = Rule | TokenRefusal

/** The operations of the server that checking tokens needs. */
export interface TokenThrottleHost {
  limits(): Bounds
  readonly scheduler: Scheduler
  /** Returns the rule of a token. `undefined` if the token has none. */
  ruleOf(token: string | undefined): Rule | undefined
  /** Returns a reader for a token that can only be checked with an issuer's keys. `undefined` if `ruleOf` is enough. */
  readingOf?(token: string | undefined, address: string): (() => Promise<Rule | TokenFault>) | undefined
  failed(error: Error): void
}

interface Suspect {
  /** The number of refusals, as of `atMs`. */
  count: number
  atMs: number
}

/**
 * Checks tokens. At a delayed address every token waits before it is checked: an earlier response to a valid token
 * would tell which one is valid. A valid token is accepted after the same delay, and each address has its own.
 */
export class TokenThrottle {
  readonly #host: TokenThrottleHost
  /** The addresses with refused tokens, the latest refusal last. */
  readonly #suspects = new Map<string, Suspect>()
  readonly #waiting = new Map<string, number>()

  constructor(host: TokenThrottleHost) {
    this.#host = host
  }

  /** Whether this token can be checked at once. Without a token there is nothing to guess. */
  isQuick(token: string | undefined, address: string): boolean {
    if (token === undefined) return true
    return this.delayOf(address) === 0 && this.#host.readingOf?.(token, address) === undefined
  }

  /** Returns the current delay of tokens from this address, in milliseconds. */
  delayOf(address: string): number {
    const { tokenDelayMs, maxTokenGuesses } = this.#host.limits()
    const suspect = this.#suspects.get(networkOf(address))
    if (suspect === undefined || tokenDelayMs === 0) return 0
    const excess = Math.round(this.#countOf(suspect)) - maxTokenGuesses
    return excess < 0 ? 0 : Math.min(FIRST_DELAY_MS * 2 ** excess, tokenDelayMs)
  }

  /** Checks a token at once. `INTERNAL`: the check itself failed, which is reported and says nothing about the token. */
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
   * Checks a token after the delay of its address, and calls `judged` once, unless the returned function is called
   * first. Returns a code if too many tokens of the address wait.
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

  /** Checks a token with a reader. Never rejects. */
  async #read(reading: () => Promise<Rule | TokenFault>, address: string): Promise<Verdict> {
    try {
      const verdict = await reading()
      // A token that has expired or cannot be checked is not a guess.
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
