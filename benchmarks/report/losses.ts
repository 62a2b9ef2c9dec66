// Where ours is not first: found in the saved runs, explained by hand.

import { isFigure } from '../measure/compare.ts'
import type { Group, SuiteResult } from '../measure/result.ts'
import { figure } from '../measure/samples.ts'
import { table } from '../measure/table.ts'

/** Why, and the next idea, by part of a group's or figure's name. The first that matches counts. */
const REASONS: readonly (readonly [RegExp, string])[] = [
  [
    /idle, MB/,
    'A JavaScript runtime lies under ours: tens of megabytes before the first line runs. Next: a compiled client.',
  ],
  [/Startup/, 'The runtime starts and compiles our sources first. Next: `bun build --compile --bytecode`.'],
  [
    /peak|, MB$|, KB$/,
    'Buffers, and a heap that is collected late. Next: a profile of what a connection holds.',
  ],
  [
    /MB\/s|first byte|total/,
    'Up to 128 KB at a time bodies pass through the program at both ends; frp without its multiplexer never looks at one. Next: a read of a large answer that goes to the kernel sooner (docs/performance.md).',
  ],
  [
    /p9\d/,
    'The runtime collects garbage four times a second at both ends, whatever is allocated, and each pause of about a millisecond meets what is under way. Next: a smaller heap, so that a pause is shorter.',
  ],
  [
    /p50|mean/,
    'With few requests under way there is nothing to batch, and each hop wakes an event loop. Next: fewer wake-ups per hop.',
  ],
  [/requests\/s|CPU/, 'Processor time per request at both ends. Next: a profile at this very load.'],
]

/** Ours for HTTP, or for what a group is about instead. */
const OURS = ['ours-streams', 'ours-tcp', 'ours-udp']

export function losses(suites: readonly SuiteResult[]): string {
  const rows: string[][] = []
  for (const { title, groups } of suites) {
    for (const group of groups) rows.push(...lostIn(title, group))
  }
  if (rows.length === 0)
    return 'In the runs saved here ours is first in every figure that is compared with peers.'
  return table(['where', 'figure', 'ours', 'first', 'why, as far as known, and the next idea'], rows)
}

function lostIn(title: string, group: Group): string[][] {
  const ours = OURS.map(name => group.rows.find(row => row.name === name)).find(row => row !== undefined)
  if (!ours) return []
  const found: string[][] = []
  for (const { key, title: figureTitle, unit, better } of group.columns) {
    const own = ours.cells[key]
    if (better === 'neither' || !isFigure(own)) continue
    const rivals = group.rows
      .filter(({ name }) => name !== 'direct' && !name.startsWith('ours'))
      .flatMap(({ name, cells }) => (isFigure(cells[key]) ? [{ name, value: cells[key].value }] : []))
      .sort((a, b) => (better === 'higher' ? b.value - a.value : a.value - b.value))
    const [first] = rivals
    const isLost = first && (better === 'higher' ? first.value > own.value : first.value < own.value)
    if (!isLost) continue
    const reason =
      REASONS.find(([pattern]) => pattern.test(`${group.name} ${figureTitle}`))?.[1] ?? 'Not explained yet.'
    const what = unit ? `${figureTitle}, ${unit}` : figureTitle
    found.push([
      `${title}: ${group.name}`,
      what,
      figure(own.value),
      `${first.name} ${figure(first.value)}`,
      reason,
    ])
  }
  return found
}
