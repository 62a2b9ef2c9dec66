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

/** What it needs of the server. */
export interface ExchangesHost extends ServerEvents {
  readonly settings: ServerSettings
  readonly deadlines: Deadlines
  readonly counters: Counters
  readonly tunnels: Tunnels
}

export class Exchanges {
  readonly #host: ExchangesHost
  readonly #reports: Reports
  /** Under way, those with the control host included, those in lanes not. */
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

  /** How many requests of a second its listeners want reported one by one. */
  get reportRate(): number {
    return this.isHeard ? this.#reports.rate || Number.POSITIVE_INFINITY : 0
  }

  /** Before it is known where it goes. */
  begun(): void {
    this.#count++
  }

  /** It goes to a tunnel. */
  routed(): void {
    const { counters } = this.#host
    counters.requests++
    counters.pending++
  }

  /** It does not go to that tunnel after all. */
  left(): void {
    this.#host.counters.pending--
  }

  /** It is over. `tunnel`: where it went, if it did. */
  ended(tunnel: Tunnel | undefined, bytesIn: number, bytesOut: number): void {
    const { counters } = this.#host
    this.#count--
    counters.bytesIn += bytesIn
    counters.bytesOut += bytesOut
    if (tunnel !== undefined) counters.pending--
  }

  /** One fewer is under way, perhaps none, and its events have been emitted. */
  fewer(): void {
    this.#host.somethingEnded()
  }

  /** These are over and were not reported one by one. */
  counted(counts: ExchangeCounts): void {
    if (this.isHeard) this.#reports.counted(counts)
  }

  /** One is over: whether the server's listeners get a report of it. One that is not reported is to be counted. */
  takeReport(): boolean {
    return this.#reports.take()
  }

  /** It is over and was not reported one by one. */
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

/** Until now, to the hundredth. */
export function msSince(startedAt: number): number {
  return toHundredth(performance.now() - startedAt)
}

export function toHundredth(ms: number): number {
  return Math.round(ms * 100) / 100
}
