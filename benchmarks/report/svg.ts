// Charts as plain SVG, for light and dark pages and for a phone: bars with spreads, and curves. Ours has one colour
// everywhere, floors are hollow, and each title says which direction is better.

import { figure } from '../measure/samples.ts'

export interface Mark {
  readonly name: string
  readonly isOurs: boolean
  readonly isFloor: boolean
}

export interface Bar extends Mark {
  readonly value: number
  readonly low: number
  readonly high: number
}

/** Points from left to right; `null`: not measured. */
export interface Curve extends Mark {
  readonly points: readonly (number | null)[]
  /** Of the rounds, at each point. */
  readonly spreads?: readonly (readonly [low: number, high: number] | null)[]
}

/** As wide as a phone shows without shrinking the text below 11 px. */
const WIDTH = 480
const OURS = '#2f81f7'
const CLI = '#79b8ff'
/** Of peers, told apart by lightness too. */
const PEERS = [
  '#d1742a',
  '#3f9142',
  '#8957e5',
  '#a37200',
  '#c9415b',
  '#2c8a8f',
  '#6e7781',
  '#9a6700',
  '#57606a',
]
const STYLE = `<style>text{fill:#1f2328;font:13px system-ui,sans-serif}.q{fill:#59636e}.l{stroke:#d1d9e0}.o{font-weight:600}.s{stroke:#1f2328}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.q{fill:#9198a1}.l{stroke:#3d444d}.s{stroke:#e6edf3}}</style>`

/** Best first. A thin line over each bar is the spread of the rounds. */
export function bars(title: string, direction: string, all: readonly Bar[]): string {
  const [left, right, row, top] = [128, WIDTH - 64, 24, 62]
  const { most } = scaleOf(Math.max(...all.map(({ high }) => high)))
  const x = (value: number): number => left + (Math.max(0, value) / most) * (right - left)
  const lines = all.map(({ name, value, low, high, isOurs, isFloor }, i) => {
    const y = top + i * row
    const fill = isFloor ? 'none' : isOurs ? colourOfOurs(name) : '#8b949e'
    const border = isFloor ? ' stroke="#8b949e" stroke-dasharray="3 2"' : ''
    return [
      `<text x="${left - 6}" y="${y + 13}" text-anchor="end"${isOurs ? ' class="o"' : ''}>${escapeXml(name)}</text>`,
      `<rect x="${left}" y="${y}" width="${Math.max(1, x(value) - left).toFixed(1)}" height="16" rx="2" fill="${fill}"${border}/>`,
      `<path d="M${x(low).toFixed(1)} ${y + 8}H${x(high).toFixed(1)}" class="s"/>`,
      `<text x="${Math.max(x(value), x(high)) + 5}" y="${y + 13}" class="q">${figure(value)}</text>`,
    ].join('')
  })
  return frame(top + all.length * row + 8, title, direction, lines)
}

/** Over named steps. Both axes have round ticks. */
export function curves(
  title: string,
  direction: string,
  steps: readonly string[],
  all: readonly Curve[],
  logarithmic = false,
): string {
  const [left, right, top, bottom] = [52, WIDTH - 14, 62, 262]
  const drawnValues = all.flatMap(({ points, spreads = [] }) => [
    ...points,
    ...spreads.flatMap(range => range ?? []),
  ])
  const values = drawnValues.filter(value => value !== null && value > 0) as number[]
  const { most, step } = scaleOf(Math.max(...values))
  // Half of the axis would be empty below the smallest value with whole decades.
  const least = Math.min(...values) * 0.8
  const highest = Math.max(...values) * 1.1
  const share = (value: number): number =>
    logarithmic ? Math.log(value / least) / Math.log(highest / least) : value / most
  const y = (value: number): number => bottom - share(value) * (bottom - top)
  const x = (i: number): number => left + 16 + (i / Math.max(1, steps.length - 1)) * (right - left - 32)
  const ticks: number[] = []
  if (logarithmic) {
    for (let decade = 10 ** Math.floor(Math.log10(least)); decade <= highest; decade *= 10)
      for (const tick of [1, 2, 5].map(factor => factor * decade))
        if (tick >= least && tick <= highest) ticks.push(tick)
  } else for (let tick = 0; tick <= most * 1.001; tick += step) ticks.push(tick)
  const guides = ticks.map(
    tick =>
      `<path d="M${left} ${y(tick).toFixed(1)}H${right}" class="l"/><text x="${left - 6}" y="${(y(tick) + 4).toFixed(1)}" text-anchor="end" class="q">${short(tick)}</text>`,
  )
  const labels = steps.map(
    (name, i) =>
      `<text x="${x(i).toFixed(1)}" y="${bottom + 18}" text-anchor="middle" class="q">${name}</text>`,
  )
  let peers = 0
  const drawn = all.map((one, i) => {
    const colour = one.isOurs
      ? colourOfOurs(one.name)
      : one.isFloor
        ? '#8b949e'
        : PEERS[peers++ % PEERS.length]
    const dash = one.isFloor ? ` stroke-dasharray="${one.name === 'direct' ? '1 3' : '4 3'}"` : ''
    const path = one.points
      .map((value, at) => (value === null || value <= 0 ? '' : `${x(at).toFixed(1)} ${y(value).toFixed(1)}`))
      .filter(Boolean)
    const spreads = (one.spreads ?? []).map((range, at) =>
      range && range[0] > 0 ? `M${x(at).toFixed(1)} ${y(range[0]).toFixed(1)}V${y(range[1]).toFixed(1)}` : '',
    )
    const [column, line] = [i % 3, Math.floor(i / 3)]
    const at = { x: left - 40 + column * 156, y: bottom + 44 + line * 20 }
    return [
      `<path d="M${path.join('L')}" fill="none" stroke="${colour}" stroke-width="${one.isOurs ? 3 : 1.5}"${dash}/>`,
      `<path d="${spreads.join('')}" stroke="${colour}" stroke-width="${one.isOurs ? 7 : 3}" stroke-opacity=".3"/>`,
      `<path d="M${at.x} ${at.y - 6}h14" stroke="${colour}" stroke-width="4"${dash}/>`,
      `<text x="${at.x + 20}" y="${at.y}"${one.isOurs ? ' class="o"' : ''}>${escapeXml(one.name)}</text>`,
    ].join('')
  })
  return frame(bottom + 44 + Math.ceil(all.length / 3) * 20, title, direction, [
    ...guides,
    ...labels,
    ...drawn,
  ])
}

function colourOfOurs(name: string): string {
  return name.includes('cli') ? CLI : OURS
}

/** A round step, and the first multiple of it that holds everything. */
function scaleOf(most: number): { readonly most: number; readonly step: number } {
  const power = 10 ** Math.floor(Math.log10(most / 4))
  const step = [1, 2, 5, 10].map(factor => factor * power).find(one => one * 4 >= most)!
  return { most: Math.ceil(most / step) * step, step }
}

function short(value: number): string {
  return value >= 1_000 ? `${Number((value / 1_000).toFixed(1))}k` : String(Number(value.toPrecision(3)))
}

function frame(height: number, title: string, direction: string, body: readonly string[]): string {
  const head = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" role="img" aria-label="${escapeXml(title)}">`
  const heading = `<text x="8" y="20" style="font-size:15px;font-weight:600">${escapeXml(title)}</text><text x="8" y="40" class="q">${escapeXml(direction)}</text>`
  return `${head}${STYLE}${heading}\n${body.join('\n')}\n</svg>\n`
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
