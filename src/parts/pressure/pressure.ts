// The operator's limits for a tunnel under load: a breaker, a number of requests at once, and limits of what visitors send.

import type { Clock } from '../../server/contracts/clock.ts'
import type { LayeredTunnel } from '../../server/contracts/layer.ts'
import { pluginsFor } from '../../server/settings/plugins-for.ts'
import type { TunnelRule } from '../../server/settings/tunnel-rule.ts'
import { Breaker } from './breaker.ts'
import { Slots } from './slots.ts'

export class Pressure {
  readonly breaker: Breaker | undefined
  readonly slots: Slots | undefined
  readonly maxContentLength: number
  readonly maxHeadBytes: number
  /** The time in milliseconds for a response. 0 for no limit. */
  readonly responseTimeoutMs: number

  constructor(
    { breaker, maxInFlight, maxQueued = 100, queueTimeoutMs = 10_000, ...rule }: TunnelRule,
    tunnel: LayeredTunnel,
    deadlines: Clock,
  ) {
    this.breaker = breaker && new Breaker(breaker, () => tunnel.routesChanged())
    this.slots =
      maxInFlight === undefined ? undefined : new Slots({ maxInFlight, maxQueued, queueTimeoutMs }, deadlines)
    this.maxContentLength = rule.maxContentLength ?? Number.POSITIVE_INFINITY
    this.responseTimeoutMs = rule.responseTimeoutMs ?? 0
    this.maxHeadBytes = rule.maxHeadBytes ?? Number.POSITIVE_INFINITY
  }
}

/** The state of each tunnel that has a rule. */
export class Pressures {
  readonly #rules: readonly TunnelRule[]
  readonly #deadlines: Clock
  readonly #byTunnel = new WeakMap<LayeredTunnel, Pressure>()

  constructor(rules: readonly TunnelRule[], deadlines: Clock) {
    this.#rules = rules
    this.#deadlines = deadlines
  }

  of(tunnel: LayeredTunnel): Pressure | undefined {
    if (this.#rules.length === 0) return undefined
    const known = this.#byTunnel.get(tunnel)
    if (known !== undefined) return known
    const [rule] = pluginsFor(this.#rules, tunnel.name)
    if (rule === undefined) return undefined
    const made = new Pressure(rule, tunnel, this.#deadlines)
    this.#byTunnel.set(tunnel, made)
    return made
  }
}
