// The metrics of a server by tunnel and method, stored only if there is an admin listener. The number of series is
// limited, because clients choose names of tunnels.

import type { ErrorCode } from '../../errors.ts'
import { MEASURES, measure } from '../../measures.ts'

/** The methods with series of their own. Others count as `OTHER`, because visitors can invent methods. */
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

/** The number of tunnels with series of their own. */
export const DEFAULT_METRIC_TUNNELS = 1_000
/** The name of the series for all other tunnels. */
export const OTHER_TUNNEL = '_other'

export class Series {
  /** A row for each of `METHODS`. `undefined` before the first request with that method. */
  readonly byMethod: (Float64Array | undefined)[] = []
  bytesIn = 0
  bytesOut = 0
  readonly codes: Map<ErrorCode, number> = new Map<ErrorCode, number>()
  /** The number of closed TCP and TLS connections. */
  rawVisits = 0
  /** The time when an app last responded to a visitor or probe, on the clock of `Date.now()`; 0 before. */
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
  /** The number of requests that waited for their client. */
  held = 0
  /** The number of requests that were sent again. */
  retried = 0
  /** The number of webhooks whose clients were away, by outcome. */
  readonly inbox: Record<'kept' | 'delivered' | 'dropped' | 'full', number> = {
    kept: 0,
    delivered: 0,
    dropped: 0,
    full: 0,
  }
  /** The number of requests and connections without a tunnel, by error code. */
  readonly codes: Map<ErrorCode, number> = new Map<ErrorCode, number>()

  /**
   * Makes the metrics. `maxTunnels`: those with series of their own. `isLive`: whether the tunnel exists now; others
   * lose their series first.
   */
  constructor(maxTunnels: number, isLive: (tunnel: string) => boolean) {
    this.#maxTunnels = maxTunnels
    this.#isLive = isLive
  }

  get series(): ReadonlyMap<string, Series> {
    return this.#series
  }

  /** Counts a refused request or connection without a tunnel. */
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

  /** Counts bytes of visitors that no `ended` counts. */
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

  /** Returns the series of a tunnel, or the common one. */
  of(tunnel: string): Series {
    const found = this.#series.get(tunnel)
    if (found !== undefined) return found
    if (tunnel !== OTHER_TUNNEL && this.#series.size >= this.#maxTunnels && !this.#forgetOne())
      return this.of(OTHER_TUNNEL)
    const series = new Series()
    this.#series.set(tunnel, series)
    return series
  }

  /** Removes the series of the oldest tunnel that no longer exists. */
  #forgetOne(): boolean {
    for (const name of this.#series.keys())
      if (name !== OTHER_TUNNEL && !this.#isLive(name)) return this.#series.delete(name)
    return false
  }
}
