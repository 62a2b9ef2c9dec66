// Where ours is not first: found in the saved runs, explained by hand.

import { isFigure } from '../measure/compare.ts'
import type { Group, SuiteResult } from '../measure/result.ts'
import { figure } from '../measure/samples.ts'
import { table } from '../measure/table.ts'

/** Why, and the next idea, by part of where, which figure and its unit. The first that matches counts. */
const REASONS: readonly (readonly [RegExp, string])[] = [
  [
    /, MB$/,
    'A JavaScript runtime lies under ours: 50 MB in each process before the first request, a heap that is collected late, and buffers that its allocator keeps. Where there are two origins there are two clients. What a connection adds is less than anywhere else. Next: a compiled client that loads fewer modules.',
  ],
  [/Startup/, 'The runtime starts and compiles our sources first. Next: `bun build --compile --bytecode`.'],
  [
    /pgbench/,
    'Ten sessions keep both cores busy, and in the thread that moves them a piece costs four system calls an end where others have two. Next: receive and send in place of two splices for small pieces.',
  ],
  [
    /UDP/,
    'Datagrams pass through the program at both ends. Next: the thread of conversations for flows as well.',
  ],
  [
    /round trips of 64 bytes; p99/,
    'The spreads overlap: a tie. What is left are moments when the collector of the program takes a core that the thread wants. Next: a smaller heap.',
  ],
  [
    /transfer, 10 connections|10 KB|100 KB|; total/,
    'frp without its multiplexer moves each answer inside the kernel and reads no head; ours does so only behind a read of 128 KB, and up to there bodies pass through the program at both ends. Next: jobs for the kernel that begin at less cost, so that smaller answers are worth one.',
  ],
  [
    /first byte|first event|Request Forwarding/,
    'A single request finds every event loop asleep and its code not compiled yet, four hops long. Next: fewer wake-ups per hop.',
  ],
  [
    /p9\d/,
    'The runtime collects garbage four times a second at both ends, whatever is allocated, and each pause of about a millisecond meets what is under way. Next: a smaller heap, so that a pause is shorter.',
  ],
  [
    /p50|mean|avg/,
    'With few requests under way there is nothing to batch, and each hop wakes an event loop. Next: fewer wake-ups per hop.',
  ],
  [
    /requests\/s|MB\/s|CPU/,
    'The cores are full, more than half of them with load and origin; 59 % of ours is the kernel, at one receive and one send a request (docs/performance.md). Next: a runtime that hands over what it read without making an array of it.',
  ],
]

/** Ours for HTTP, or for what a group is about instead. */
const OURS = ['ours-streams', 'ours-tcp', 'ours-udp']

interface Loss {
  readonly reason: string
  readonly cells: readonly string[]
}

/** By reason, so that each is said once. */
export function losses(suites: readonly SuiteResult[]): string {
  const all = suites.flatMap(({ title, groups }) => groups.flatMap(group => lostIn(title, group)))
  if (all.length === 0)
    return 'In the runs saved here ours is first in every figure that is compared with peers.'
  const intro =
    'Found in the runs above, figure by figure, against whatever peer was first; by reason, with the next idea for each.'
  const parts = [...Map.groupBy(all, ({ reason }) => reason)].map(([reason, lost]) => {
    const rows = lost.map(({ cells }) => [...cells])
    return `${reason}\n\n${table(['where', 'figure', 'ours', 'first'], rows)}`
  })
  return [intro, ...parts].join('\n\n')
}

function lostIn(title: string, group: Group): readonly Loss[] {
  const ours = OURS.map(name => group.rows.find(row => row.name === name)).find(row => row !== undefined)
  if (!ours) return []
  const found: Loss[] = []
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
    const where = `${title}: ${group.name}`
    const what = unit ? `${figureTitle}, ${unit}` : figureTitle
    const reason = REASONS.find(([pattern]) => pattern.test(`${where}; ${what}`))?.[1] ?? 'Not explained yet.'
    const cells = [where, what, figure(own.value), `${first.name} ${figure(first.value)}`]
    found.push({ reason, cells })
  }
  return found
}
