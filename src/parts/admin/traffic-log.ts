// Writes the traffic by tunnel: every few seconds, the difference of the counts goes to the store.

import { FIRST_DURATION, FIRST_SIZE, STATUS_CLASSES } from '../../measures.ts'
import type { OperationsStore, Traffic } from '../../operations.ts'
import type { Metrics, Series } from './metrics.ts'

/** The time in milliseconds between writes, whose traffic a crash may lose. */
const WRITE_EVERY_MS = 5_000
const PRUNE_EVERY_MS = 3_600_000

export type Counts = Required<Omit<Traffic, 'tunnel' | 'atMs'>>
const NO_DURATIONS: readonly number[] = Array.from({ length: FIRST_SIZE - FIRST_DURATION }, () => 0)
export const NONE: Counts = { requests: 0, errors: 0, bytesIn: 0, bytesOut: 0, durations: NO_DURATIONS }

export class TrafficLog {
  readonly #metrics: Metrics
  readonly #store: OperationsStore
  readonly #harvest: () => void
  readonly #failed: (error: unknown) => void
  /** The written counts of each series, for series that the metrics still have. */
  #written = new Map<Series, Counts>()
  readonly #timer: ReturnType<typeof setInterval>
  #prunedAtMs = 0

  /** Makes the log. `harvest` brings the metrics up to date. */
  constructor(
    metrics: Metrics,
    store: OperationsStore,
    harvest: () => void,
    failed: (error: unknown) => void,
  ) {
    this.#metrics = metrics
    this.#store = store
    this.#harvest = harvest
    this.#failed = failed
    this.#timer = setInterval(() => this.write(), WRITE_EVERY_MS)
    this.#timer.unref()
  }

  /** Writes all traffic so far to the store. */
  write(): void {
    try {
      this.#write(Date.now())
    } catch (error) {
      // A full disk must not end the server. The next attempt includes these counts.
      this.#failed(error)
    }
  }

  stop(): void {
    clearInterval(this.#timer)
    this.write()
  }

  #write(nowMs: number): void {
    this.#harvest()
    // Records that this span was measured: one without this row is a gap, rather than one without requests.
    const rows: Omit<Traffic, 'atMs'>[] = [{ tunnel: '', requests: 0, errors: 0, bytesIn: 0, bytesOut: 0 }]
    const written = new Map<Series, Counts>()
    for (const [tunnel, series] of this.#metrics.series) {
      const now = countsOf(series)
      const before = this.#written.get(series) ?? NONE
      written.set(series, now)
      const row = { tunnel, ...difference(now, before) }
      if (row.requests > 0 || row.bytesIn > 0 || row.bytesOut > 0) rows.push(row)
    }
    this.#store.add(nowMs, rows)
    this.#written = written
    if (nowMs - this.#prunedAtMs < PRUNE_EVERY_MS) return
    this.#prunedAtMs = nowMs
    this.#store.prune(nowMs)
  }
}

export function countsOf({ byMethod, bytesIn, bytesOut }: Series): Counts {
  let requests = 0
  let errors = 0
  const durations = [...NO_DURATIONS]
  for (const row of byMethod) {
    if (row === undefined) continue
    for (let status = 0; status < STATUS_CLASSES; status++) requests += row[status]!
    errors += row[0]! + row[5]!
    for (let at = FIRST_DURATION; at < FIRST_SIZE; at++) durations[at - FIRST_DURATION]! += row[at]!
  }
  return { requests, errors, bytesIn, bytesOut, durations }
}

export function difference(now: Counts, before: Counts): Counts {
  return {
    requests: now.requests - before.requests,
    errors: now.errors - before.errors,
    bytesIn: now.bytesIn - before.bytesIn,
    bytesOut: now.bytesOut - before.bytesOut,
    durations: now.durations.map((count, at) => count - before.durations[at]!),
  }
}
