// Latencies of a run in an HDR histogram (three digits, 1 µs to 60 s), as milliseconds.

import { createHistogram } from 'node:perf_hooks'

/** Milliseconds. */
export interface Latency {
  readonly mean: number
  readonly p50: number
  readonly p90: number
  readonly p95: number
  readonly p99: number
  readonly p999: number
  readonly max: number
}

export class Latencies {
  readonly #histogram = createHistogram({ lowest: 1, highest: 60_000_000, figures: 3 })

  /** `ms` from the moment a request was due to the end of its answer. */
  add(ms: number): void {
    this.#histogram.record(Math.max(1, Math.round(ms * 1000)))
  }

  summary(): Latency | null {
    const histogram = this.#histogram
    if (histogram.count === 0) return null
    const at = (percent: number): number => histogram.percentile(percent) / 1000
    return {
      mean: histogram.mean / 1000,
      p50: at(50),
      p90: at(90),
      p95: at(95),
      p99: at(99),
      p999: at(99.9),
      max: histogram.max / 1000,
    }
  }
}
