// The traffic of tunnels in the last five minutes, as the difference from a mark of that time.

import type { Traffic } from '../../operations.ts'
import type { Metrics, Series } from './metrics.ts'
import { processorUs, usedMemory } from './process-state.ts'
import type { RecentRow } from './rows.ts'
import { type Counts, countsOf, difference, NONE } from './traffic-log.ts'

export const MARK_MS = 30_000
const WINDOW_MS = 300_000
/** The minimum time in seconds for a rate. Without it, one request in the first second would be sixty a minute. */
const MIN_SECONDS = 60

interface Mark {
  readonly atMs: number
  readonly counts: ReadonlyMap<Series, Counts>
  /** The processor time, in microseconds. */
  readonly processorUs: number
}

export class Recent {
  readonly #metrics: Metrics
  #marks: readonly Mark[]

  constructor(metrics: Metrics, nowMs: number = Date.now()) {
    this.#metrics = metrics
    this.#marks = [{ atMs: nowMs, counts: new Map(), processorUs: processorUs() }]
  }

  /** Sets a mark, every `MARK_MS`. */
  mark(nowMs: number = Date.now()): void {
    const last = this.#marks.at(-1)?.counts
    const counts = new Map<Series, Counts>()
    for (const series of this.#metrics.series.values()) {
      const now = countsOf(series)
      const before = last?.get(series)
      // Most tunnels are idle, and all marks share their unchanged counts.
      counts.set(series, before !== undefined && isSame(now, before) ? before : now)
    }
    const next = this.#marks.findLastIndex(({ atMs }) => nowMs - atMs >= WINDOW_MS)
    this.#marks = [
      ...this.#marks.slice(Math.max(0, next)),
      { atMs: nowMs, counts, processorUs: processorUs() },
    ]
  }

  of(tunnel: string): RecentRow {
    const series = this.#metrics.series.get(tunnel)
    return this.#since(series === undefined ? NONE : this.#done(series))
  }

  /** The traffic of all tunnels, and the resources that the process uses. */
  get total(): RecentRow {
    const row = this.#since(addedCounts([...this.#metrics.series.values()].map(series => this.#done(series))))
    const { atMs, processorUs: before } = this.#marks[0]!
    const passedUs = Math.max(1_000, 1_000 * (Date.now() - atMs))
    const memoryBytes = usedMemory()?.rss
    return {
      ...row,
      processors: (processorUs() - before) / passedUs,
      ...(memoryBytes !== undefined && { memoryBytes }),
    }
  }

  #done(series: Series): Counts {
    return difference(countsOf(series), this.#marks[0]?.counts.get(series) ?? NONE)
  }

  #since(counts: Counts): RecentRow {
    return { seconds: Math.max(MIN_SECONDS, (Date.now() - this.#marks[0]!.atMs) / 1_000), ...counts }
  }
}

/** Returns the sum. Its time is that of the row with the longest one. */
export function addedRecent(all: readonly RecentRow[]): RecentRow {
  const seconds = Math.max(MIN_SECONDS, ...all.map(row => row.seconds))
  const used = (of: (row: RecentRow) => number | undefined) =>
    all.some(row => of(row) !== undefined) ? all.reduce((sum, row) => sum + (of(row) ?? 0), 0) : undefined
  const [processors, memoryBytes] = [used(row => row.processors), used(row => row.memoryBytes)]
  return {
    seconds,
    ...addedCounts(all),
    ...(processors !== undefined && { processors }),
    ...(memoryBytes !== undefined && { memoryBytes }),
  }
}

/** Returns one row for each time, the newest first. */
export function addedTraffic(rows: readonly Traffic[]): readonly Traffic[] {
  const byTime = Map.groupBy(rows, ({ atMs }) => atMs)
  return [...byTime]
    .sort(([one], [other]) => other - one)
    .map(([atMs, all]) => ({
      tunnel: '',
      atMs,
      ...addedCounts(all.map(row => ({ ...row, durations: row.durations ?? [] }))),
    }))
}

function addedCounts(all: readonly Counts[]): Counts {
  const sum = (of: (counts: Counts) => number) => all.reduce((total, counts) => total + of(counts), 0)
  return {
    requests: sum(({ requests }) => requests),
    errors: sum(({ errors }) => errors),
    bytesIn: sum(({ bytesIn }) => bytesIn),
    bytesOut: sum(({ bytesOut }) => bytesOut),
    durations: NONE.durations.map((_, at) => sum(({ durations }) => durations[at] ?? 0)),
  }
}

function isSame(one: Counts, other: Counts): boolean {
  return one.requests === other.requests && one.bytesIn === other.bytesIn && one.bytesOut === other.bytesOut
}
