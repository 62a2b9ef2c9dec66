// What the operator allows a tunnel under pressure: a breaker, a bound of requests at once, bounds of what visitors send.

import { TunnelError } from '../errors.ts'
import { Breaker } from './breaker.ts'
import type { Deadlines } from './deadlines.ts'
import { pluginsFor } from './plugins-for.ts'
import { Slots } from './slots.ts'
import type { Tunnel } from './tunnel.ts'
import type { TunnelRule } from './tunnel-rule.ts'

/** Each of them is a connection of a visitor. */
const MAX_QUEUED = 10_000

export class Pressure {
  readonly breaker: Breaker | undefined
  readonly slots: Slots | undefined
  readonly maxContentLength: number
  readonly maxHeadBytes: number
  /** 0: none. */
  readonly answerTimeoutMs: number

  constructor(
    { breaker, maxInFlight, maxQueued = 100, queueTimeoutMs = 10_000, ...rule }: TunnelRule,
    tunnel: Tunnel,
    deadlines: Deadlines,
  ) {
    this.breaker = breaker && new Breaker(breaker, () => tunnel.routesChanged())
    this.slots =
      maxInFlight === undefined ? undefined : new Slots({ maxInFlight, maxQueued, queueTimeoutMs }, deadlines)
    this.maxContentLength = rule.maxContentLength ?? Number.POSITIVE_INFINITY
    this.answerTimeoutMs = rule.answerTimeoutMs ?? 0
    this.maxHeadBytes = rule.maxHeadBytes ?? Number.POSITIVE_INFINITY
  }
}

/** The state of each tunnel that has a rule. */
export class Pressures {
  readonly #rules: readonly TunnelRule[]
  readonly #deadlines: Deadlines
  readonly #byTunnel = new WeakMap<Tunnel, Pressure>()

  constructor(rules: readonly TunnelRule[], deadlines: Deadlines) {
    this.#rules = rules
    this.#deadlines = deadlines
  }

  of(tunnel: Tunnel): Pressure | undefined {
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

/** Throws `OPTION_INVALID`. */
export function checkTunnelRules(rules: readonly TunnelRule[]): readonly TunnelRule[] {
  for (const { breaker = {}, tunnels: _tunnels, ...rest } of rules)
    for (const [name, value] of Object.entries({ ...breaker, ...rest })) {
      const isBytes = name === 'maxContentLength' || name === 'bandwidth' || name === 'addressBandwidth'
      const least = leastOf(name)
      const most = name === 'errorPercent' ? 100 : name === 'maxQueued' ? MAX_QUEUED : 2_147_483_647
      if (
        value !== undefined &&
        !(
          Number.isInteger(value) &&
          value >= least &&
          (value <= most || (isBytes && Number.isSafeInteger(value)))
        )
      )
        throw new TunnelError(
          'OPTION_INVALID',
          `tunnelRules: ${name} must be from ${least} to ${most}, not ${value}.`,
        )
    }
  return rules
}

function leastOf(name: string): number {
  if (name === 'maxQueued' || name === 'maxContentLength') return 0
  return name === 'bandwidth' || name === 'addressBandwidth' ? 1_024 : 1
}
