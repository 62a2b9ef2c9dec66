// Medians and spreads: what a handful of repeated figures says.

export interface Summary {
  readonly median: number
  readonly min: number
  readonly max: number
  readonly count: number
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  if (sorted.length === 0) return Number.NaN
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

export function summarize(values: readonly number[]): Summary {
  return { median: median(values), min: Math.min(...values), max: Math.max(...values), count: values.length }
}

/** Percentile of already sorted values, nearest rank. */
export function percentile(sorted: ArrayLike<number>, percent: number): number {
  if (sorted.length === 0) return Number.NaN
  const rank = Math.ceil((percent / 100) * sorted.length)
  return sorted[Math.min(sorted.length - 1, Math.max(0, rank - 1))]!
}

/** Three significant digits are more than a shared machine can honestly give. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return '–'
  if (value === 0) return '0'
  const size = Math.abs(value)
  if (size >= 1000) return Math.round(value).toLocaleString('en-US')
  if (size >= 100) return value.toFixed(0)
  if (size >= 10) return value.toFixed(1)
  return value.toFixed(size >= 1 ? 2 : 3)
}

export function spread({ median, min, max, count }: Summary): string {
  if (count < 2 || figure(min) === figure(max)) return figure(median)
  return `${figure(median)} (${figure(min)}..${figure(max)})`
}

export function reasonOf(error: unknown): string {
  const line = error instanceof Error ? error.message.split('\n')[0]! : String(error)
  return line.slice(0, 120)
}
