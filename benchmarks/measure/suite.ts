// What every suite begins and ends with: its arguments, what must not have happened to ours, and saving and printing.

import { existsSync, readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { interrupted, stopAll } from './children.ts'
import { compare } from './compare.ts'
import { environment } from './environment.ts'
import {
  type Column,
  type ResultRow,
  readRun,
  type SavedRun,
  type SuiteResult,
  type Table,
  writeRun,
} from './result.ts'
import { figure, reasonOf, spread, summarize } from './samples.ts'
import { table } from './table.ts'

const USAGE = `
  --quick          a smoke run: everything runs and is checked, nothing is measured well
  --rounds N       interleaved rounds, 1 to 1,000 (default 5)
  --seconds N      length of one measurement (default 0.5)
  --only A,B       tables by their id
  --peers A,B      tunnels by name or beginning of a name
  --minutes N      the time that it may take: fewer rounds, then fewer rows (default: no limit)
  --json FILE      save everything with the environment
  --gate FILE      this run against a saved one: it fails when ours is slower than the saved spread or takes more processor time
  --help           this text`

interface Arguments {
  readonly quick: boolean
  /** Of `report.ts` alone. */
  readonly publish: boolean
  readonly words: readonly string[]
  readonly rounds: number | undefined
  readonly seconds: number | undefined
  readonly minutes: number | undefined
  readonly only: readonly string[] | undefined
  readonly peers: readonly string[] | undefined
  readonly json: string | undefined
  readonly gate: string | undefined
}

/** Reads and checks the arguments. What cannot be used is said in one line, and ends the program with 2. */
function readArguments(): Arguments {
  try {
    const flag = { type: 'boolean', default: false } as const
    const value = { type: 'string' } as const
    const { values, positionals } = parseArgs({
      args: process.argv.slice(2),
      options: {
        quick: flag,
        publish: flag,
        help: flag,
        rounds: value,
        seconds: value,
        only: value,
        peers: value,
        minutes: value,
        json: value,
        gate: value,
      },
      allowPositionals: true,
    })
    const { quick, publish, help, rounds, seconds, only, peers, minutes, json, gate } = values
    if (help) {
      const [head = ''] = /^(?:\/\/.*\n)*/.exec(readFileSync(process.argv[1] ?? '', 'utf8')) ?? []
      console.log(`${head.replaceAll(/^\/\/ ?/gm, '')}\nThe arguments of every suite:${USAGE}`)
      process.exit(0)
    }
    if (gate !== undefined && !existsSync(gate)) throw new Error(`--gate: there is no file ${gate}`)
    return {
      quick,
      publish,
      words: positionals,
      rounds: number('--rounds', rounds, 1, 1_000, true),
      seconds: number('--seconds', seconds, 0.1, 3_600),
      minutes: number('--minutes', minutes, 0.01, 10_000),
      only: only?.split(','),
      peers: peers?.split(','),
      json,
      gate,
    }
  } catch (error) {
    return refuse(error instanceof Error ? error.message.split('\n')[0]! : String(error))
  }
}

export function refuse(why: string): never {
  console.error(`error: ${why}\n\nThe arguments of every suite:${USAGE}`)
  process.exit(2)
}

function number(
  name: string,
  text: string | undefined,
  from: number,
  to: number,
  whole = false,
): number | undefined {
  if (text === undefined) return undefined
  const value = Number(text)
  if (text.trim() !== '' && value >= from && value <= to && (!whole || Number.isInteger(value))) return value
  throw new Error(`${name} must be a ${whole ? 'whole ' : ''}number from ${from} to ${to}, not "${text}"`)
}

const given = readArguments()
if (given.words.length > 0 && /\/suites\/[\w-]+\.ts$/.test(process.argv[1] ?? ''))
  refuse(`a suite takes no words: ${given.words.join(' ')}; --only chooses its tables`)
/** Read before anything is measured: what cannot be compared with is said at once. */
const before: SavedRun | undefined = given.gate === undefined ? undefined : await savedRun(given.gate)

/** A saved run that the user named. */
export function savedRun(path: string): Promise<SavedRun> {
  return readRun(path).catch((error: unknown) => refuse(reasonOf(error)))
}

export const isQuick: boolean = given.quick
export const options: Arguments = given

/** Seconds or counts: the second one in a smoke run. */
export function unlessQuick<T>(usual: T, quick: T): T {
  return isQuick ? quick : usual
}

/** Rounds from which on a median is one. With fewer, tables say how many there were. */
export const USUAL_ROUNDS = 5
export const rounds: number = given.rounds ?? unlessQuick(USUAL_ROUNDS, 1)
export const seconds: number = given.seconds ?? unlessQuick(0.5, 0.2)

const endsAt = performance.now() + (given.minutes ?? Number.POSITIVE_INFINITY) * 60_000
/** Of the time that the suite may take. */
export function msLeft(): number {
  return Math.max(0, endsAt - performance.now())
}

/** Why ours was missing, failed or answered wrongly. A suite with one of them ends with 1. */
const faults: string[] = []
export function fault(what: string): void {
  if (!faults.includes(what)) faults.push(what)
  say(`OURS: ${what}`)
}

/** Prints, saves, compares, ends what still runs, and ends the program: with 1 if ours had a fault. */
export async function conclude(
  suite: string,
  title: string,
  tables: readonly Table[],
  tools: Readonly<Record<string, string>> = {},
  meanwhile?: SuiteResult['meanwhile'],
): Promise<never> {
  const result: SuiteResult = {
    suite,
    title,
    environment: await environment(tools),
    quick: isQuick,
    rounds: Math.max(0, ...tables.map(table => table.rounds ?? 0)) || 1,
    ...(meanwhile && { meanwhile }),
    tables,
  }
  if (meanwhile) say(meanwhileLine(meanwhile))
  if (given.json !== undefined) await writeRun(given.json, [result])
  if (before !== undefined) {
    const { text, slower } = compare(result, before)
    console.log(`\n${text}`)
    if (!interrupted.aborted) for (const what of slower) fault(what)
  }
  await stopAll()
  for (const what of faults) console.error(`error: ours: ${what}`)
  process.exit(interrupted.aborted ? 130 : faults.length > 0 ? 1 : 0)
}

export function meanwhileLine({ foreign, steal }: NonNullable<SuiteResult['meanwhile']>): string {
  return `During the run, other programs used ${figure(foreign)} cores and the hypervisor used ${figure(steal)} %.`
}

/** Progress goes to stderr, so that tables can be piped. */
export function say(line: string): void {
  process.stderr.write(`${line}\n`)
}

export function printTable({ title, columns, rows, note }: Table): void {
  console.log(
    `\n${table(
      [title, ...headOf(columns)],
      rows.map(({ name, cells }) => [name, ...cellTexts(columns, cells)]),
    )}`,
  )
  if (note) console.log(note)
}

export function headOf(columns: readonly Column[]): readonly string[] {
  return columns.map(({ title, unit }) => (unit ? `${title}, ${unit}` : title))
}

/** What failed as a whole says so once. */
export function cellTexts(columns: readonly Column[], cells: ResultRow['cells']): readonly string[] {
  const first = cells[columns[0]!.key]
  return columns.map(({ key }, i) => (typeof first === 'string' && i > 0 ? '' : shown(cells[key])))
}

function shown(cell: readonly number[] | string | undefined): string {
  return typeof cell === 'object' ? spread(summarize(cell)) : (cell ?? '–')
}
