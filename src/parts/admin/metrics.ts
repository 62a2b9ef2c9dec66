// The metrics of a server for its operator, by tunnel and method. Kept only where there is an admin listener. The number of
// series is bounded: names of tunnels are chosen by clients.

import type { ErrorCode } from '../../errors.ts'
import { MEASURES, measure } from '../../measures.ts'

/** Methods with series of their own; the rest is `OTHER`, because visitors may make up methods. */
export const METHODS: readonly string[] = [
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
  'OTHER',
]
const OTHER_METHOD = METHODS.length - 1

/** Tunnels with series of their own. */
export const DEFAULT_METRIC_TUNNELS = 1_000
/** The series of all tunnels beyond the bound. */
export const OTHER_TUNNEL = '_other'

export class Series {
  /** A row for each of `METHODS`; `undefined`: it did not come yet. */
  readonly byMethod: (Float64Array | undefined)[] = []
  bytesIn = 0
  bytesOut = 0
  readonly codes: Map<ErrorCode, number> = new Map<ErrorCode, number>()
  /** The number of closed TCP and TLS connections. */
  rawVisits = 0
  /** The time when an app responded to the last visitor or probe, on the clock of `Date.now()`; 0: not yet. */
  provenAtMs = 0

  row(method: string): Float64Array {
    const found = METHODS.indexOf(method)
    const at = found === -1 ? OTHER_METHOD : found
    this.byMethod[at] ??= new Float64Array(MEASURES)
    return this.byMethod[at]
  }
}

export interface MeasuredExchange {
  readonly method: string
  readonly status: number
  readonly durationMs: number
  readonly requestBytes: number
  readonly responseBytes: number
  readonly code: ErrorCode | undefined
}

export class Metrics {
  readonly #maxTunnels: number
  readonly #isLive: (tunnel: string) => boolean
  readonly #series = new Map<string, Series>()
  /** Requests that waited for their client. */
  held = 0
  /** Requests that were sent once more. */
  retried = 0
  /** Webhooks whose clients were away, by what became of them. */
  readonly inbox: Record<'kept' | 'delivered' | 'dropped' | 'full', number> = {
    kept: 0,
    delivered: 0,
    dropped: 0,
    full: 0,
  }
  /** Requests and connections that were for no tunnel, by the code. */
  readonly codes: Map<ErrorCode, number> = new Map<ErrorCode, number>()

  /**
   * Makes the metrics. `maxTunnels`: with series of their own. `isLive`: whether the tunnel exists now; one that does not gives
   * way.
   */
  constructor(maxTunnels: number, isLive: (tunnel: string) => boolean) {
    this.#maxTunnels = maxTunnels
    this.#isLive = isLive
  }

  get series(): ReadonlyMap<string, Series> {
    return this.#series
  }

  /** A request or a connection is refused, for no tunnel. */
  refused(code: ErrorCode): void {
    this.codes.set(code, (this.codes.get(code) ?? 0) + 1)
  }

  ended(tunnel: string, exchange: MeasuredExchange): void {
    const { method, status, durationMs, requestBytes, responseBytes, code } = exchange
    const series = this.of(tunnel)
    measure(series.row(method), 0, status, durationMs, responseBytes)
    series.bytesIn += requestBytes
    series.bytesOut += responseBytes
    if (code !== undefined) series.codes.set(code, (series.codes.get(code) ?? 0) + 1)
    else series.provenAtMs = Date.now()
  }

  measured(tunnel: string, method: string, measures: Float64Array): void {
    const series = this.of(tunnel)
    const row = series.row(method)
    let count = 0
    for (let index = 0; index < MEASURES; index++) {
      row[index]! += measures[index]!
      count += measures[index]!
    }
    if (count > 0) series.provenAtMs = Date.now()
  }

  /** Bytes that visitors sent and got, which no `ended` counts. */
  moved(tunnel: string, bytesIn: number, bytesOut: number): void {
    const series = this.of(tunnel)
    series.bytesIn += bytesIn
    series.bytesOut += bytesOut
  }

  rawEnded(tunnel: string, bytesIn: number, bytesOut: number, code: ErrorCode | undefined): void {
    const series = this.of(tunnel)
    series.rawVisits++
    series.bytesIn += bytesIn
    series.bytesOut += bytesOut
    if (code !== undefined) series.codes.set(code, (series.codes.get(code) ?? 0) + 1)
    if (bytesOut > 0) series.provenAtMs = Date.now()
  }

  /** The series of a tunnel, or of all that have none of their own. */
  of(tunnel: string): Series {
    const found = this.#series.get(tunnel)
    if (found !== undefined) return found
    if (tunnel !== OTHER_TUNNEL && this.#series.size >= this.#maxTunnels && !this.#forgetOne())
      return this.of(OTHER_TUNNEL)
    const series = new Series()
    this.#series.set(tunnel, series)
    return series
  }

  /** The tunnel that has been there for longest and is not any more. */
  #forgetOne(): boolean {
    for (const name of this.#series.keys())
      if (name !== OTHER_TUNNEL && !this.#isLive(name)) return this.#series.delete(name)
    return false
  }
}
