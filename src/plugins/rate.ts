// An access rule: the number of requests that one address may make in a window, or all visitors of a tunnel, or of a token's
// tunnels.

import { optionInvalid } from '../errors.ts'
import { Gcra, isAllowance, rateLimited } from '../gcra.ts'
import type { RateRule } from '../guard.ts'
import { checkNames } from '../option-names.ts'
import type { Admittance, Allotment, ForTunnels, Guard, Refusal } from '../plugin.ts'
import type { SharedRates } from '../shared-rates.ts'
import { sourceOf } from './addresses.ts'
import { SharedRate, type WhenUnreachable } from './shared-rate.ts'

/** The visitor that a rate counts. */
type Counted = Pick<Admittance, 'address'> & Partial<Pick<Admittance, 'tunnel' | 'owner'>>
type CountedBy = 'address' | 'tunnel' | 'token'

/** The options of a rate. */
export interface RateOptions extends RateRule, ForTunnels {
  /**
   * The unit that has a rate of its own. `address`: IPv6 by its first 64 bits. `tunnel`: all visitors of a tunnel share one.
   * `token`: all visitors of all tunnels of a token, or, on a server without tokens, of the clients of one address. Default
   * `address`.
   */
  readonly by?: 'address' | 'tunnel' | 'token'
  /**
   * The store of a rate that several servers share: `RedisRates` of `localtunnels/cluster`. Each server takes shares of it, a
   * tenth of the limit at most, and asks again when one is used up. Below 640 a window, requests have no lanes. Default: each
   * server keeps it alone.
   */
  readonly shared?: SharedRates
  /**
   * The behaviour while `shared` does not respond within half a second: `local`, this server counts alone; `open`, everybody
   * passes; `closed`, 503 `CLUSTER_UNREACHABLE`. Default `local`.
   */
  readonly whenUnreachable?: WhenUnreachable
}

/**
 * A guard for all tunnels of a server, or for some: `limit` requests or connections in `windowMs`, refused above with 429
 * `RATE_LIMITED`, `RateLimit` and `Retry-After`. Connections keep their lanes. 10,000 addresses or tunnels are remembered. Throws
 * `OPTION_INVALID`.
 *
 * ```ts
 * import { rate, TunnelServer } from 'localtunnels'
 *
 * const guards = [rate({ limit: 100, windowMs: 1_000 }), rate({ limit: 1_000, windowMs: 1_000, by: 'tunnel' })]
 * const server = new TunnelServer({ port: 0, guards })
 * ```
 */
export function rate({
  by = 'address',
  tunnels,
  limit,
  windowMs,
  shared,
  whenUnreachable = 'local',
  ...others
}: RateOptions): Guard {
  checkNames(others, { by, tunnels, limit, windowMs, shared, whenUnreachable }, 'rate()')
  const rule = { limit, windowMs }
  const alone = new Rate(rule, undefined, by, tunnels)
  if (shared === undefined) return alone
  if (!['local', 'open', 'closed'].includes(whenUnreachable))
    throw optionInvalid(`rate: whenUnreachable "${whenUnreachable}" is none of local, open and closed.`)
  const keyOf = (visitor: Admittance) => `${by}:${keyFor(by, visitor)}`
  return new SharedRate(rule, shared, whenUnreachable, keyOf, OWNERS[by], tunnels)
}

function keyFor(by: CountedBy, { address, tunnel = '', owner = '' }: Counted): string {
  switch (by) {
    case 'tunnel':
      return tunnel
    case 'token':
      return owner
    case 'address':
      return sourceOf(address)
  }
}

const OWNERS: Readonly<Record<CountedBy, string>> = { address: 'visitor', tunnel: 'tunnel', token: 'token' }

/** Refuses visitors whose address, or tunnel, sends too many requests. */
export class Rate implements Guard {
  readonly name = 'rate'
  readonly tunnels?: readonly string[]
  readonly #by: CountedBy
  readonly #rule: RateRule
  readonly #gcra: Gcra

  /** Makes the rule. Throws `OPTION_INVALID`. */
  constructor(rule: RateRule, maxSources?: number, by: CountedBy = 'address', tunnels?: readonly string[]) {
    if (!isAllowance(rule))
      throw optionInvalid('guard.rate needs a limit of 1 to 1,000,000 and a window of 1 s to 24 h.')
    this.#rule = rule
    this.#by = by
    if (tunnels !== undefined) this.tunnels = tunnels
    this.#gcra = new Gcra(rule, maxSources)
  }

  admit(visitor: Counted, nowMs: number = performance.now()): Refusal | undefined {
    const waitMs = this.#gcra.take(this.#keyOf(visitor), nowMs)
    return waitMs === 0 ? undefined : rateLimited(this.#rule, waitMs, OWNERS[this.#by])
  }

  allot(visitor: Counted, nowMs: number = performance.now()): Allotment | undefined {
    return this.#gcra.allot(this.#keyOf(visitor), nowMs)
  }

  #keyOf(visitor: Counted): string {
    return keyFor(this.#by, visitor)
  }
}
