// Charts as plain SVG: bars and curves, readable on light and dark pages.

import type { Chart, Series } from '../measure/result.ts'
import { figure } from '../measure/samples.ts'

const WIDTH = 760
const FONT = 'font-family="system-ui, sans-serif" font-size="13"'
/** Distinguishable by lightness too; the same on both backgrounds. */
const COLOURS = ['#2f81f7', '#db6d28', '#3fb950', '#a371f7', '#d29922', '#f85149', '#39c5cf', '#8b949e']
const STYLE = `<style>
  text { fill: #1f2328 } .quiet { fill: #59636e } .line { stroke: #d1d9e0 } .ours { font-weight: 600 }
  @media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .quiet { fill: #9198a1 } .line { stroke: #3d444d } }
</style>`

export interface Bar {
  readonly name: string
  readonly value: number
}

/** Horizontal bars in the order given, ours in colour. */
export function bars(title: string, unit: string, all: readonly Bar[]): string {
  const [left, row] = [150, 26]
  const most = Math.max(...all.map(({ value }) => value))
  const height = 44 + all.length * row
  const lines = all.map(({ name, value }, i) => {
    const y = 40 + i * row
    const width = Math.max(1, (value / most) * (WIDTH - left - 110))
    const isOurs = name.startsWith('ours')
    return [
      `<text x="${left - 8}" y="${y + 14}" text-anchor="end"${isOurs ? ' class="ours"' : ''}>${escapeXml(name)}</text>`,
      `<rect x="${left}" y="${y}" width="${width.toFixed(1)}" height="18" rx="2" fill="${COLOURS[isOurs ? 0 : 7]}"/>`,
      `<text x="${left + width + 8}" y="${y + 14}" class="quiet">${figure(value)}</text>`,
    ].join('\n')
  })
  return frame(height, `${title}${unit ? `, ${unit}` : ''}`, lines.join('\n'))
}

/** Curves over a common x axis. `logarithmic` for latencies, which span decades. */
export function curves(title: string, { x, y, series }: Chart, logarithmic = false): string {
  const [left, top, right, bottom] = [64, 44, WIDTH - 190, 300]
  const points = series.flatMap(one => one.points)
  const [maxX, maxY] = [Math.max(...points.map(([at]) => at)), Math.max(...points.map(([, value]) => value))]
  const minY = logarithmic ? Math.min(...points.map(([, value]) => value)) : 0
  const scale = logarithmic ? Math.log : (value: number): number => value
  const placeX = (at: number): number => left + (at / maxX) * (right - left)
  const placeY = (value: number): number =>
    bottom -
    ((scale(value) - scale(minY || 1e-9)) / (scale(maxY * 1.05) - scale(minY || 1e-9))) * (bottom - top)
  const guides = ticks(minY, maxY, logarithmic).map(value => {
    const at = placeY(value).toFixed(1)
    return `<line x1="${left}" x2="${right}" y1="${at}" y2="${at}" class="line"/><text x="${left - 8}" y="${Number(at) + 4}" text-anchor="end" class="quiet">${figure(value)}</text>`
  })
  const steps = [0, 0.25, 0.5, 0.75, 1].map(
    part =>
      `<text x="${placeX(part * maxX).toFixed(1)}" y="${bottom + 18}" text-anchor="middle" class="quiet">${figure(part * maxX)}</text>`,
  )
  const drawn = series.map((one, i) =>
    curve(one, COLOURS[i % COLOURS.length]!, placeX, placeY, right, top + i * 20),
  )
  const axes = `<text x="${(left + right) / 2}" y="${bottom + 38}" text-anchor="middle" class="quiet">${escapeXml(x)}</text>`
  return frame(bottom + 50, `${title} (${y})`, [...guides, ...steps, axes, ...drawn].join('\n'))
}

function curve(
  { name, points }: Series,
  colour: string,
  placeX: (at: number) => number,
  placeY: (value: number) => number,
  right: number,
  legendY: number,
): string {
  const path = points.map(
    ([at, value], i) => `${i ? 'L' : 'M'}${placeX(at).toFixed(1)} ${placeY(value).toFixed(1)}`,
  )
  return [
    `<path d="${path.join('')}" fill="none" stroke="${colour}" stroke-width="2"/>`,
    `<rect x="${right + 14}" y="${legendY}" width="12" height="4" fill="${colour}"/>`,
    `<text x="${right + 32}" y="${legendY + 7}">${escapeXml(name)}</text>`,
  ].join('\n')
}

function ticks(min: number, max: number, logarithmic: boolean): readonly number[] {
  if (!logarithmic) return [0, 0.25, 0.5, 0.75, 1].map(part => part * max)
  const values: number[] = []
  for (let power = Math.floor(Math.log10(min)); power <= Math.ceil(Math.log10(max)); power++) {
    for (const step of [1, 3]) {
      const value = step * 10 ** power
      if (value >= min && value <= max) values.push(value)
    }
  }
  return values
}

function frame(height: number, title: string, body: string): string {
  const head = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" ${FONT} role="img" aria-label="${escapeXml(title)}">`
  return `${head}\n${STYLE}\n<text x="8" y="22" font-size="15" font-weight="600">${escapeXml(title)}</text>\n${body}\n</svg>\n`
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
