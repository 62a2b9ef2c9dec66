// A graph of measurements up to now: zero is a line at the bottom, and times without a value are hatched. The pointer
// or the arrow keys read a minute, in every graph at once.

import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { Point, Series } from '../../parts/admin/view-rows.ts'
import { bytes, duration } from '../parts/format.ts'
import { change, place } from './state.ts'

const TOP = 8
/** The height below the bars, for times. */
const FOOT = 24
const LEFT = 52

interface Kind {
  readonly title: string
  /** The names of the longer bar, and of the one before it. */
  readonly names: readonly [long: string, short: string]
  readonly looks: readonly [long: string, short: string]
  /** Returns the two values of a point. `undefined` without requests. */
  readonly values: (point: Point) => readonly [long: number | undefined, short: number | undefined]
  readonly text: (value: number) => string
}

const KINDS: readonly Kind[] = [
  {
    title: 'Requests',
    names: ['requests', 'errors'],
    looks: ['b', 'e'],
    values: ({ requests, errors }) => [requests, errors],
    text: value => Math.round(value).toLocaleString('en-US'),
  },
  {
    title: 'Latency',
    names: ['p95', 'p50'],
    looks: ['s', 'b'],
    values: ({ p95, p50 }) => [p95, p50],
    text: duration,
  },
  {
    title: 'Transfer',
    names: ['out', 'in'],
    looks: ['b', 'q'],
    values: ({ bytesOut, bytesIn }) => [bytesOut, bytesIn],
    text: bytes,
  },
]

export function Graphs({ series }: { readonly series: Series }) {
  const chosen = useSignal<number | undefined>(undefined)
  const box = useRef<HTMLDivElement>(null)
  const width = useSignal(0)
  useEffect(() => {
    const { current } = box
    if (current === null) return undefined
    const fit = new ResizeObserver(() => (width.value = current.clientWidth))
    fit.observe(current)
    return () => fit.disconnect()
  }, [])
  const last = series.points.length - 1
  // The current span is not over, so the one before it is read until the user chooses one.
  const read = Math.min(chosen.value ?? (series.points[last - 1] ? last - 1 : last), last)
  const point = series.points[read]
  const move = (event: KeyboardEvent): void => {
    const to = { ArrowLeft: read - 1, ArrowRight: read + 1, Home: 0, End: last }[event.key]
    if (to === undefined) return
    event.preventDefault()
    chosen.value = Math.max(0, Math.min(last, to))
  }
  const when = timeText(series, read) + (read === last ? ', so far' : '')
  const said = point
    ? `${when}: ${KINDS.flatMap(({ names, values, text }) => names.map((name, at) => `${name} ${valueText(values(point)[at], text)}`)).join(', ')}`
    : `${when}: not measured`
  return (
    <div
      class="graphs"
      ref={box}
      role="slider"
      tabIndex={0}
      aria-label={`Requests, latency and transfer, ${rangeText(place.value.range)}`}
      aria-valuemin={0}
      aria-valuemax={last}
      aria-valuenow={read}
      aria-valuetext={said}
      onKeyDown={move}
      onPointerMove={({ currentTarget, clientX }) => {
        const { left } = currentTarget.getBoundingClientRect()
        const part = (clientX - left - LEFT) / (width.value - LEFT)
        chosen.value = Math.max(0, Math.min(last, Math.floor(part * series.points.length)))
      }}
      onPointerLeave={({ pointerType }) => {
        if (pointerType === 'mouse') chosen.value = undefined
      }}
    >
      {KINDS.map(kind => (
        <figure key={kind.title}>
          <figcaption>
            <b>{kind.title}</b>
            {kind.names.map((name, at) => (
              <span key={name}>
                <i class={kind.looks[at]} />
                {name} {point ? <output>{valueText(kind.values(point)[at], kind.text)}</output> : ''}
              </span>
            ))}
            {kind === KINDS[0] && series.points.includes(null) && (
              <span>
                <i class="gap" />
                not measured
              </span>
            )}
            <output class="when">{point ? when : `${when} not measured`}</output>
          </figcaption>
          {width.value > 0 && <Bars kind={kind} series={series} width={width.value} read={read} />}
        </figure>
      ))}
    </div>
  )
}

interface BarsProps {
  readonly kind: Kind
  readonly series: Series
  readonly width: number
  readonly read: number
}

function Bars({ kind, series, width, read }: BarsProps) {
  const { points } = series
  const most = roundUp(
    Math.max(0, ...points.flatMap(point => (point ? kind.values(point).map((value = 0) => value) : []))),
  )
  const step = (width - LEFT) / points.length
  const height = width < 720 ? 132 : 180
  const base = height - FOOT
  const y = (value: number) => base - (value / most) * (base - TOP)
  const x = (at: number) => LEFT + at * step
  const bar = (value: number, at: number, look: string) =>
    value > 0 && (
      <rect
        class={look}
        x={x(at) + 0.5}
        y={y(value)}
        width={Math.max(1, step - 1)}
        height={base - y(value)}
      />
    )
  const labels = [0, 0.25, 0.5, 0.75].map(part => Math.round(part * points.length))
  return (
    <svg class="graph" width={width} height={height} aria-hidden="true">
      <defs>
        <pattern
          id={`hatch-${kind.title}`}
          width="6"
          height="6"
          patternUnits="userSpaceOnUse"
          patternTransform="rotate(45)"
        >
          <path d="M0 0V6" class="hatch" />
        </pattern>
      </defs>
      {[0, 0.5, 1].map(part => (
        <g key={part}>
          <path
            class={part === 0 ? 'base' : 'line'}
            d={`M${LEFT} ${Math.round(y(most * part)) + 0.5}H${width}`}
          />
          <text x={LEFT - 8} y={y(most * part) + 4} text-anchor="end">
            {kind.text(most * part).replace('.0 ', ' ')}
          </text>
        </g>
      ))}
      {points.map((point, at) =>
        point === null ? (
          <rect
            key={at}
            class="gap"
            x={x(at)}
            y={TOP}
            width={step + 0.5}
            height={base - TOP}
            fill={`url(#hatch-${kind.title})`}
          />
        ) : (
          <g key={at}>
            {bar(kind.values(point)[0] ?? 0, at, kind.looks[0])}
            {bar(kind.values(point)[1] ?? 0, at, kind.looks[1])}
          </g>
        ),
      )}
      <rect class="read" x={x(read)} y={TOP} width={step} height={base - TOP} />
      {labels.map(at => (
        <text key={at} x={x(at)} y={height - 4}>
          {timeText(series, at)}
        </text>
      ))}
      <text x={width} y={height - 4} text-anchor="end">
        now
      </text>
    </svg>
  )
}

const valueText = (value: number | undefined, text: Kind['text']): string =>
  value === undefined ? '—' : text(value)

/** Rounds up to a number of one or two digits, and zeros. */
function roundUp(value: number): number {
  if (value <= 0) return 10
  const size = 10 ** Math.floor(Math.log10(value))
  return size * ([1, 1.5, 2, 3, 4, 5, 6, 8, 10].find(one => one * size >= value) ?? 10)
}

function timeText({ fromMs, stepMs, points }: Series, at: number): string {
  const date = new Date(fromMs + at * stepMs)
  const time = date.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' })
  if (points.length * stepMs <= 86_400_000) return time
  return `${date.toLocaleDateString('en-GB', { day: 'numeric', month: 'short' })} ${time}`
}

const RANGES = [
  ['', '1 h', 'last hour'],
  ['day', '24 h', 'last 24 hours'],
  ['week', '7 d', 'last 7 days'],
] as const

export const rangeText = (range: string): string => RANGES.find(([one]) => one === range)?.[2] ?? ''

export function Ranges() {
  return (
    <fieldset class="seg" aria-label="Range">
      {RANGES.map(([range, text]) => (
        <button
          key={range}
          type="button"
          aria-pressed={place.value.range === range}
          onClick={() => change({ range })}
        >
          {text}
        </button>
      ))}
    </fieldset>
  )
}

interface SparkProps {
  readonly points: readonly (Point | null)[]
  readonly of: (point: Point) => number
  readonly label: string
  readonly isBad?: boolean
}

/** A graph without axes, and without the current span, which is not over. */
export function Spark({ points: all, of, label, isBad = false }: SparkProps) {
  const points = all.at(-2) == null ? all : all.slice(0, -1)
  const most = Math.max(1e-9, ...points.map(point => (point ? of(point) : 0)))
  const runs: [at: number, y: number][][] = []
  for (const [at, point] of points.entries()) {
    if (point === null) continue
    const spot: [number, number] = [at + 0.5, 34 - (of(point) / most) * 32]
    if (at > 0 && points[at - 1] != null) runs.at(-1)?.push(spot)
    else runs.push([spot])
  }
  const line = (run: readonly [number, number][]) => run.map(([x, y]) => `${x} ${y.toFixed(1)}`).join('L')
  // A single minute would have no line, so it is half a step wide.
  const wide = runs.map(run =>
    run.length === 1 ? [run[0]!, [run[0]![0] + 0.5, run[0]![1]] as [number, number]] : run,
  )
  return (
    <svg
      class={isBad ? 'spark bad' : 'spark'}
      viewBox={`0 0 ${points.length} 36`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      {wide.map(run => (
        <g key={run[0]?.[0]}>
          <path class="area" d={`M${run[0]?.[0]} 36L${line(run)}L${run.at(-1)?.[0]} 36Z`} />
          <path d={`M${line(run)}`} />
        </g>
      ))}
      {points.map(
        (point, at) => point === null && <rect key={at} class="gap" x={at} y="35" width="1" height="1" />,
      )}
    </svg>
  )
}
