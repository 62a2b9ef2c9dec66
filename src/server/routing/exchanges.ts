// The books of HTTP exchanges: counts them, and reports them to the server's listeners.

import type { ExchangeCounts } from '../../accelerator.ts'
import type { ErrorCode } from '../../errors.ts'
import type { Asked } from '../contracts/clients.ts'
import type { ServerEvents } from '../contracts/server-events.ts'
import type { Deadlines } from '../limits/deadlines.ts'
import type { TunnelServerEvents } from '../settings/options.ts'
import type { ServerSettings } from '../settings/settings.ts'
import type { Counters } from '../settings/stats.ts'
import type { Tunnel } from '../tunnels/tunnel.ts'
import type { Tunnels } from '../tunnels/tunnels.ts'
import { Reports } from './reports.ts'

type RequestEvent = TunnelServerEvents['request']
type Outcome = Pick<RequestEvent, 'status' | 'durationMs' | 'bytes'>

/** The operations of the server that it needs. */
export interface ExchangesHost extends ServerEvents {
  readonly settings: ServerSettings
  readonly deadlines: Deadlines
  readonly counters: Counters
  readonly tunnels: Tunnels
}

export class Exchanges {
  readonly #host: ExchangesHost
  readonly #reports: Reports
  /** The number of open exchanges, with those of the control host, without those in lanes. */
  #count = 0

  constructor(host: ExchangesHost) {
    this.#host = host
    this.#reports = new Reports(
      host.deadlines,
      () => host.settings.reportRate,
      ({ requests, errors, bytes }) => host.emit('requests', { requests, errors, bytes }),
    )
    host.deadlines.watch(this.#reports)
  }

  /** The server stops: nothing more comes. */
  flush(): void {
    this.#reports.flush()
  }

  get isIdle(): boolean {
    return this.#count === 0 && this.#host.tunnels.lanes.count === 0
  }

  /** Whether the server has listeners for requests. */
  get isHeard(): boolean {
    return this.#host.isHeard('request') || this.#host.isHeard('requests')
  }

  /** The number of requests per second that its listeners want reported one by one. */
  get reportRate(): number {
    return this.isHeard ? this.#reports.rate || Number.POSITIVE_INFINITY : 0
  }

  /** Counts a request, before its destination is known. */
  begun(): void {
    this.#count++
  }

  /** Counts a request to a tunnel. */
  routed(): void {
    const { counters } = this.#host
    counters.requests++
    counters.pending++
  }

  /** Undoes the count of a request that does not go to a tunnel after all. */
  left(): void {
    this.#host.counters.pending--
  }

  /** Counts the end of a request; `tunnel` is its destination, if it had one. `tunnel`: where it went, if it did. */
  ended(tunnel: Tunnel | undefined, bytesIn: number, bytesOut: number): void {
    const { counters } = this.#host
    this.#count--
    counters.bytesIn += bytesIn
    counters.bytesOut += bytesOut
    if (tunnel !== undefined) counters.pending--
  }

  /** Counts one open request less, after its events were emitted. */
  fewer(): void {
    this.#host.somethingEnded()
  }

  /** Counts exchanges that have ended and were not reported one by one. */
  counted(counts: ExchangeCounts): void {
    if (this.isHeard) this.#reports.counted(counts)
  }

  /**
   * Whether the server's listeners get a report of the request that has ended. A request that is not reported has to be
   * counted.
   */
  takeReport(): boolean {
    return this.#reports.take()
  }

  /** Counts a request that has ended and was not reported one by one. */
  count(hasFailed: boolean, bytes: number): void {
    this.#reports.ended(hasFailed, bytes)
  }

  report(tunnel: Tunnel, asked: Asked, outcome: Outcome, error?: ErrorCode, reason?: string): void {
    const { host, method, target } = asked
    this.#host.emit('request', {
      subdomain: tunnel.name,
      ...(tunnel.isWildcard && { host }),
      method,
      path: target,
      ...outcome,
      ...(error !== undefined && { error }),
      ...(reason !== undefined && { reason }),
    })
  }
}

/** Returns the milliseconds until now, to the hundredth. */
export function msSince(startedAt: number): number {
  return toHundredth(performance.now() - startedAt)
}

export function toHundredth(ms: number): number {
  return Math.round(ms * 100) / 100
}
