// The operator's rules for tunnels under load; `pressure.ts` applies them.

import { optionInvalid } from '../../errors.ts'

import type { ForTunnels } from '../../plugin.ts'

/** A rule for the tunnels that it names. If several rules name a tunnel, the first counts. */
export interface TunnelRule extends ForTunnels {
  /** Refuses visitors with 503 `CIRCUIT_OPEN` for a while when the app fails. Default none. `{}`: with the defaults. */
  readonly breaker?: BreakerRule
  /**
   * Requests in progress at once; a WebSocket counts until it is one. Default none. If exceeded: they wait. Tunnels with it have no lanes.
   */
  readonly maxInFlight?: number
  /**
   * Requests that wait like that, at most 10,000. Default 100. The address with the fewest in progress is next. If exceeded: the address with the
   * most that wait gives one up for one that has fewer; without one, 503 `TUNNEL_BUSY` at once. `0`: none waits.
   */
  readonly maxQueued?: number
  /**
   * The time that a request waits in the queue. Milliseconds. Default 10,000. If exceeded: the address with the most in progress gives
   * one up for one that has fewer; without one, 503 `TUNNEL_BUSY`.
   */
  readonly queueTimeoutMs?: number
  /**
   * The maximum length of a request body in bytes, whether the visitor announces it or not. Default that of the server. If
   * exceeded: 413 `BODY_TOO_LARGE`; if the response has begun, the connection is cut.
   */
  readonly maxContentLength?: number
  /**
   * The time from when a request goes to its client to the head of the response, uploads included. Milliseconds. Default:
   * `originTimeoutMs` of the server alone, which holds as well. If exceeded: 504 `ORIGIN_TIMEOUT`. Counted in quarters of a second.
   */
  readonly responseTimeoutMs?: number
  /** The maximum length of a request head in bytes. Default that of the server. If exceeded: 431 `HEAD_TOO_LARGE`. */
  readonly maxHeadBytes?: number
  /**
   * Bytes a second, each way, of all visitors of a tunnel together. Default no bound. If exceeded: bytes wait, and nothing is cut. Tunnels with
   * it have no lanes, and no other thread moves their bytes. Not for UDP. Least 1,024.
   */
  readonly bandwidth?: number
  /** The same for each visitor's address at a tunnel; IPv6 by its first 64 bits. 10,000 addresses are remembered. Default no bound. */
  readonly addressBandwidth?: number
}

/** The conditions under which a circuit breaker opens, and for how long. */
export interface BreakerRule {
  /**
   * The percentage of failed requests in a window from which it opens: a status of 500 or above, or an app that cannot be
   * reached. Default 50.
   */
  readonly errorPercent?: number
  /** Requests of a window below which it does not open. Default 20. */
  readonly minRequests?: number
  /** The length of a window. Milliseconds. Default 10,000. */
  readonly windowMs?: number
  /**
   * The time for which it is open before one visitor tries. Milliseconds. Default 5,000; twice as long after each try that
   * failed, up to a minute.
   */
  readonly openMs?: number
}

/** The largest `maxQueued`: each waiting request is a visitor's connection. */
const MAX_QUEUED = 10_000

/** Checks the rules. Throws `OPTION_INVALID`. */
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
        throw optionInvalid(`tunnelRules: ${name} must be from ${least} to ${most}, not ${value}.`)
    }
  return rules
}

function leastOf(name: string): number {
  if (name === 'maxQueued' || name === 'maxContentLength') return 0
  return name === 'bandwidth' || name === 'addressBandwidth' ? 1_024 : 1
}
