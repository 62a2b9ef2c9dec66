// Numbers as people read them.

export function bytes(count: number): string {
  if (count < 1_024) return `${count} B`
  if (count < 1_048_576) return `${short(count / 1_024)} KiB`
  return `${short(count / 1_048_576)} MiB`
}

export function duration(ms: number | undefined): string {
  if (ms === undefined) return '…'
  if (ms < 1_000) return `${short(ms)} ms`
  return ms < 60_000
    ? `${short(ms / 1_000)} s`
    : `${Math.floor(ms / 60_000)} min ${Math.round((ms / 1_000) % 60)} s`
}

export function clock(iso: string): string {
  return new Date(iso).toLocaleTimeString(undefined, { hour12: false })
}

/** Date and time of the reader's own place, so that columns line up. */
export function moment(iso: string): string {
  return new Date(iso).toLocaleString('sv-SE')
}

const short = (value: number): string =>
  value < 10 ? value.toFixed(1).replace(/\.0$/, '') : value.toFixed(0)
