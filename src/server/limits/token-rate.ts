// The limits that a token's rule sets for visitors of all its tunnels together. They apply before the tunnels' own
// guards.

import { type Allowance, Gcra, rateLimited } from '../../gcra.ts'
import type { Allotment, Guard, Refusal } from '../../plugin.ts'

/** The only key of the counter, because all visitors count together. */
const KEY = ''

export class TokenRate implements Guard {
  readonly name = 'token'
  readonly rate: Allowance
  readonly #gcra: Gcra

  constructor(rate: Allowance) {
    this.rate = rate
    this.#gcra = new Gcra(rate, 1)
  }

  admit(): Refusal | undefined {
    const waitMs = this.#gcra.take(KEY, performance.now())
    return waitMs === 0 ? undefined : rateLimited(this.rate, waitMs, 'token')
  }

  allot(): Allotment | undefined {
    return this.#gcra.allot(KEY, performance.now())
  }

  /** Whether these are the same limits, so that the counter can stay. */
  isOf({ limit, windowMs }: Allowance): boolean {
    return limit === this.rate.limit && windowMs === this.rate.windowMs
  }
}
