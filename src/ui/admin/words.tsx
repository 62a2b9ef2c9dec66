// Formats numbers and facts of the server for an operator.

import { quantile } from '../../measures.ts'
import type { RecentRow, TunnelRow } from '../../parts/admin/rows.ts'
import { bytes, duration } from '../parts/format.ts'

export const SLOW_MS = 1_000
const MANY_ERRORS = 5

export const perMinute = (count: number, { seconds }: RecentRow): number => (count * 60) / seconds

/** Returns a rate as text. Less than one per minute is not shown as none. */
export function rateText(count: number, recent: RecentRow): string {
  const rate = perMinute(count, recent)
  return rate > 0 && rate < 9.95 ? rate.toFixed(1) : Math.round(rate).toLocaleString('en-US')
}

export const bytesText = (count: number, recent: RecentRow): string =>
  bytes(Math.round(perMinute(count, recent)))

const errorPart = ({ requests, errors }: RecentRow): number =>
  requests === 0 ? 0 : (100 * errors) / requests

export const latency = ({ durations }: RecentRow, part: number): number | undefined =>
  quantile(durations, part)

export const Zero = ({ text = '0' }: { readonly text?: string }) => <span class="zero">{text}</span>

export function Rate({ recent }: { readonly recent: RecentRow }) {
  return recent.requests === 0 ? <Zero /> : rateText(recent.requests, recent)
}

export function Errors({ recent }: { readonly recent: RecentRow }) {
  const part = errorPart(recent)
  if (part === 0) return <Zero />
  return <span class={part >= MANY_ERRORS ? 'is-bad strong' : ''}>{part.toFixed(1)} %</span>
}

export function Latency({ recent, part }: { readonly recent: RecentRow; readonly part: number }) {
  const ms = latency(recent, part)
  if (ms === undefined) return <Zero text="—" />
  return <span class={ms >= SLOW_MS ? 'is-warn strong' : ''}>{duration(ms)}</span>
}

export function Moved({ count, recent }: { readonly count: number; readonly recent: RecentRow }) {
  return count === 0 ? <Zero /> : bytesText(count, recent)
}

const STATES: Readonly<Record<TunnelRow['state'], readonly [look: string, text: string]>> = {
  up: ['ok', 'Up'],
  reconnecting: ['warn', 'Client away'],
  unhealthy: ['bad', 'App down'],
}

export function State({ state }: { readonly state: TunnelRow['state'] }) {
  const [look, text] = STATES[state]
  return (
    <span class="state">
      <span class={`dot ${look}`} />
      {text}
    </span>
  )
}

const UNITS = [
  [86_400, 'd'],
  [3_600, 'h'],
  [60, 'min'],
] as const

export function span(seconds: number): string {
  const [size, unit] = UNITS.find(([least]) => seconds >= least) ?? [1, 's']
  return `${Math.floor(seconds / size)} ${unit}`
}

/** A time relative to now, whose full text is shown on hover. */
export function Ago({
  time,
  never = 'never',
}: {
  readonly time: string | undefined
  readonly never?: string
}) {
  if (time === undefined) return <Zero text={never} />
  const seconds = (Date.now() - Date.parse(time)) / 1_000
  return (
    <time dateTime={time} title={new Date(time).toLocaleString('en-GB')}>
      {seconds < 5 ? 'now' : seconds < 86_400 ? `${span(seconds)} ago` : day(time)}
    </time>
  )
}

/** Returns a date such as 26 Jan 2027. */
export const day = (time: string): string =>
  new Date(time).toLocaleDateString('en-GB', { day: 'numeric', month: 'short', year: 'numeric' })
