// What every suite file begins and ends with: its flags, and saving, printing and comparing what it measured.

import { parseArgs } from 'node:util'
import { compare, isFigure } from './compare.ts'
import { environment } from './environment.ts'
import { type Group, readRun, type SuiteResult, writeJson } from './result.ts'
import { figure } from './samples.ts'
import { table } from './table.ts'

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    json: { type: 'string' },
    compare: { type: 'string' },
    rounds: { type: 'string' },
    hours: { type: 'string' },
    peers: { type: 'string' },
  },
  strict: false,
  allowPositionals: true,
})

/** A smoke run: everything runs and is checked, nothing is measured well. */
export const isQuick: boolean = values.quick === true

/** Seconds or counts: the second one in a smoke run. */
export function unlessQuick<T>(usual: T, quick: T): T {
  return isQuick ? quick : usual
}

/** `--rounds N`, else the suite's own number, else one in a smoke run. */
export function roundsOr(usual: number): number {
  return typeof values.rounds === 'string' ? Number(values.rounds) : unlessQuick(usual, 1)
}

/** `--hours N` for soaks; `null`: the suite's own number of minutes. */
export const hours: number | null = typeof values.hours === 'string' ? Number(values.hours) : null

/** What a smoke run is content with. */
const SMOKE_PEERS = ['direct', 'ours-streams', 'ours-json', 'rathole']

/** `--peers a,b`, else the suite's own; in a smoke run only a few of them. */
export function peersOr(names: readonly string[]): readonly string[] {
  if (typeof values.peers === 'string') return values.peers.split(',')
  return isQuick ? names.filter(name => SMOKE_PEERS.includes(name)) : names
}

/** Saves with `--json FILE`, compares with `--compare FILE`. */
export async function conclude(
  suite: string,
  title: string,
  groups: readonly Group[],
  tools: Readonly<Record<string, string>> = {},
): Promise<void> {
  const result: SuiteResult = { suite, title, environment: await environment(tools), quick: isQuick, groups }
  if (typeof values.json === 'string') await writeJson(values.json, result)
  if (typeof values.compare === 'string') console.log(`\n${compare(result, await readRun(values.compare))}`)
}

/** Progress goes to stderr, so that tables can be piped. */
export function say(line: string): void {
  process.stderr.write(`${line}\n`)
}

export function printGroup(group: Group): void {
  const head = [group.name, ...group.columns.map(({ title, unit }) => (unit ? `${title}, ${unit}` : title))]
  const rows = group.rows.map(row => [
    row.name,
    ...group.columns.map(({ key }) => {
      const cell = row.cells[key]
      return isFigure(cell) ? figure(cell.value) : (cell ?? '–')
    }),
  ])
  console.log(`\n${table(head, rows)}`)
  if (group.note) console.log(group.note)
}
