// Measurements of many exchanges in one row of numbers that threads may share: their number by class of status, and
// histograms of duration and size.
//
//   statuses 0 1xx … 5xx · seconds in sum · durations by bucket · sizes by bucket

/** The upper ends of the buckets of durations, in milliseconds; the last bucket has none. */
export const DURATION_BOUNDS_MS: readonly number[] = [
  1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000,
]
/** The upper ends of the buckets of sizes, in bytes. */
export const SIZE_BOUNDS: readonly number[] = [
  256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 16_777_216, 268_435_456,
]

/** The number of classes of status: 0 for no response, then 1xx to 5xx. */
export const STATUS_CLASSES = 6
export const DURATION_SUM: number = STATUS_CLASSES
export const FIRST_DURATION: number = DURATION_SUM + 1
export const FIRST_SIZE: number = FIRST_DURATION + DURATION_BOUNDS_MS.length + 1
/** The number of values in a row. */
export const MEASURES: number = FIRST_SIZE + SIZE_BOUNDS.length + 1

/**
 * Returns the duration in milliseconds below which the share `part` of the counted exchanges is. `undefined` if none
 * were counted.
 */
export function quantile(buckets: readonly number[], part: number): number | undefined {
  const wanted = buckets.reduce((sum, count) => sum + count, 0) * part
  let below = 0
  for (const [at, count] of buckets.entries()) {
    if (count > 0 && below + count >= wanted) {
      const from = DURATION_BOUNDS_MS[at - 1] ?? 0
      // The last bucket has no end.
      const to = DURATION_BOUNDS_MS[at] ?? from
      return from + ((to - from) * (wanted - below)) / count
    }
    below += count
  }
  return undefined
}

/** Adds one exchange to the row that begins at `at`. */
export function measure(
  numbers: Float64Array,
  at: number,
  status: number,
  durationMs: number,
  bytes: number,
): void {
  numbers[at + Math.min(Math.floor(status / 100), STATUS_CLASSES - 1)]!++
  numbers[at + DURATION_SUM]! += durationMs
  numbers[at + FIRST_DURATION + bucketOf(DURATION_BOUNDS_MS, durationMs)]!++
  numbers[at + FIRST_SIZE + bucketOf(SIZE_BOUNDS, bytes)]!++
}

function bucketOf(bounds: readonly number[], value: number): number {
  let bucket = 0
  while (bucket < bounds.length && value > bounds[bucket]!) bucket++
  return bucket
}

/** The traffic of visitors in the last five minutes, or since the server started. */
export interface RecentRow {
  readonly seconds: number
  readonly requests: number
  readonly errors: number
  readonly bytesIn: number
  readonly bytesOut: number
  /** The number of requests by bucket of their duration, as in `/metrics`. */
  readonly durations: readonly number[]
  /** The processors in use (1 is a whole one) and the memory in bytes; only for a server. */
  readonly processors?: number
  readonly memoryBytes?: number
}

/** Whether a report of another server is a valid row. */
export function isRecentRow(value: unknown): value is RecentRow {
  if (typeof value !== 'object' || value === null) return false
  const { seconds, requests, errors, bytesIn, bytesOut, durations, processors, memoryBytes } =
    value as Record<string, unknown>
  const isCount = (one: unknown) => typeof one === 'number'
  return (
    [seconds, requests, errors, bytesIn, bytesOut].every(isCount) &&
    [processors, memoryBytes].every(one => one === undefined || isCount(one)) &&
    Array.isArray(durations) &&
    durations.every(isCount)
  )
}
