// The books of HTTP exchanges: counts them, and reports them to the server's listeners.

import type { ExchangeCounts } from '../accelerator.ts'
import type { ErrorCode } from '../errors.ts'
import type { Asked } from './clients.ts'
import type { TunnelServerEvents } from './options.ts'
import { Reports } from './reports.ts'
import type { ServerRoom } from './room.ts'
import type { Tunnel } from './tunnels.ts'

type RequestEvent = TunnelServerEvents['request']
type Outcome = Pick<RequestEvent, 'status' | 'durationMs' | 'bytes'>

export class Exchanges {
  readonly #room: ServerRoom
  readonly #reports: Reports
  /** Under way, those with the control host included, those in lanes not. */
  #count = 0

  constructor(room: ServerRoom) {
    this.#room = room
    this.#reports = new Reports(
      room.deadlines,
      () => room.settings.reportRate,
      ({ requests, errors, bytes }) => room.emit('requests', { requests, errors, bytes }),
    )
    room.deadlines.watch(this.#reports)
  }

  /** The server stops: nothing more comes. */
  flush(): void {
    this.#reports.flush()
  }

  get isIdle(): boolean {
    return this.#count === 0 && this.#room.tunnels.lanes.count === 0
  }

  /** Whether the server has listeners for requests. */
  get isHeard(): boolean {
    return this.#room.isHeard('request') || this.#room.isHeard('requests')
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
    const { counters } = this.#room
    counters.requests++
    counters.pending++
  }

  /** It does not go to that tunnel after all. */
  left(): void {
    this.#room.counters.pending--
  }

  /** It is over. `tunnel`: where it went, if it did. */
  ended(tunnel: Tunnel | undefined, bytesIn: number, bytesOut: number): void {
    const { counters } = this.#room
    this.#count--
    counters.bytesIn += bytesIn
    counters.bytesOut += bytesOut
    if (tunnel !== undefined) counters.pending--
  }

  /** One fewer is under way, perhaps none, and its events have been emitted. */
  fewer(): void {
    this.#room.somethingEnded()
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

  report(tunnel: Tunnel, asked: Asked, outcome: Outcome, error?: ErrorCode): void {
    const { host, method, target } = asked
    this.#room.emit('request', {
      subdomain: tunnel.name,
      ...(tunnel.isWildcard && { host }),
      method,
      path: target,
      ...outcome,
      ...(error !== undefined && { error }),
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
