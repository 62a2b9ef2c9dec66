// Formats numbers for people: units of 1,000, a space before the unit.

export function bytes(count: number): string {
  if (count < 1_000) return `${count} B`
  if (count < 1_000_000) return `${short(count / 1_000)} kB`
  return count < 1_000_000_000 ? `${short(count / 1_000_000)} MB` : `${short(count / 1_000_000_000)} GB`
}

export function duration(ms: number | undefined): string {
  if (ms === undefined) return '…'
  if (ms < 999.5) return `${short(ms)} ms`
  if (ms < 60_000) return `${short(ms / 1_000)} s`
  const [minutes, seconds] = [Math.floor(ms / 60_000), Math.floor((ms / 1_000) % 60)]
  return minutes < 60 ? `${minutes} min ${seconds} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/** Returns 09:14:30 for today, and 27 Nov 09:14 before that. */
export function clock(iso: string): string {
  const [date, now] = [new Date(iso), new Date()]
  const time = date.toLocaleTimeString('en-GB')
  if (date.toDateString() === now.toDateString()) return time
  const day = date.toLocaleDateString('en-GB', { day: 'numeric', month: 'short' })
  return `${day} ${time.slice(0, 5)}`
}

/** Returns date and time in the reader's own format, with columns that line up. */
export function moment(iso: string): string {
  return new Date(iso).toLocaleString('sv-SE')
}

/** Returns one digit after the point below 10, so that columns line up. */
const short = (value: number): string => value.toFixed(value < 9.95 ? 1 : 0)
