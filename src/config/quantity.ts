// Durations and sizes as people write them.

const DURATION_UNITS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}
const SIZE_UNITS: Readonly<Record<string, number>> = {
  '': 1,
  B: 1,
  kB: 1e3,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  KiB: 1_024,
  MiB: 1_048_576,
  GiB: 1_073_741_824,
}

/** Returns milliseconds for `500ms`, `30s`, `1.5h`, `1m30s`, or a bare number. `undefined` if it is not a duration. */
export function parseDuration(text: string): number | undefined {
  if (/^\d{1,12}$/.test(text)) return Number(text)
  if (!/^(?:\d{1,12}(?:\.\d{1,3})?(?:ms|[smhd]))+$/.test(text)) return undefined
  let ms = 0
  for (const [, number, unit = ''] of text.matchAll(/([\d.]+)(ms|[smhd])/g))
    ms += Number(number) * DURATION_UNITS[unit]!
  return Math.round(ms)
}

/** Returns bytes for `64KiB`, `1.5 MiB`, `10MB`, or a bare number. `undefined` if it is not a size. */
export function parseSize(text: string): number | undefined {
  const [, number, unit = ''] = /^(\d{1,15}(?:\.\d{1,3})?) ?([kKMG]i?B|B|)$/.exec(text) ?? []
  const factor = SIZE_UNITS[unit]
  return number === undefined || factor === undefined ? undefined : Math.round(Number(number) * factor)
}

/** Returns the shortest text: `30s`, `1500ms`. */
export function formatDuration(ms: number): string {
  for (const unit of ['d', 'h', 'm', 's']) {
    const factor = DURATION_UNITS[unit]!
    if (ms >= factor && ms % factor === 0) return `${ms / factor}${unit}`
  }
  return `${ms}ms`
}

/** Returns the shortest text: `64MiB`, `1000B`. */
export function formatSize(bytes: number): string {
  for (const unit of ['GiB', 'MiB', 'KiB']) {
    const factor = SIZE_UNITS[unit]!
    if (bytes >= factor && bytes % factor === 0) return `${bytes / factor}${unit}`
  }
  return `${bytes}B`
}
