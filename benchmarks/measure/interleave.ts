// Rounds over subjects, and the table rows that come out of them.

import { interrupted } from './children.ts'
import type { Column, Figure, Group, ResultRow } from './result.ts'
import { summarize } from './samples.ts'
import { say } from './suite.ts'

/** Figures of one measurement; a text says why there are none. */
export type Taken = Readonly<Record<string, number>> | string

/** One line of a table: a name and how to measure it once. */
export interface Subject {
  readonly name: string
  take(): Promise<Taken>
}

/** Measures every subject once a round, in reverse order every other round. An interrupted run keeps what it has. */
export async function interleave(
  name: string,
  columns: readonly Column[],
  subjects: readonly Subject[],
  rounds: number,
  note?: string,
): Promise<Group> {
  const taken = new Map(subjects.map(subject => [subject, [] as Taken[]]))
  for (let round = 0; round < rounds && !interrupted.aborted; round++) {
    for (const subject of round % 2 ? subjects.toReversed() : subjects) {
      if (interrupted.aborted) break
      say(`${name}: ${subject.name}${rounds > 1 ? `, round ${round + 1} of ${rounds}` : ''}`)
      const figures = await subject.take().catch((error: unknown) => reasonOf(error))
      if (!interrupted.aborted) taken.get(subject)!.push(figures)
    }
  }
  const rows = subjects.map(subject => toRow(subject.name, columns, taken.get(subject)!))
  return { name, columns, rows, ...(note !== undefined && { note }) }
}

export function toRow(name: string, columns: readonly Column[], taken: readonly Taken[]): ResultRow {
  const measured = taken.filter(one => typeof one !== 'string')
  const failure = taken.find(one => typeof one === 'string') ?? 'not measured'
  const cells: Record<string, Figure | string> = {}
  for (const { key } of columns) {
    const values = measured.map(one => one[key]).filter(value => value !== undefined)
    const { median, min, max } = summarize(values)
    cells[key] = values.length > 0 ? { value: median, low: min, high: max } : failure
  }
  return { name, cells }
}

export function column(
  key: string,
  title: string,
  unit: string,
  better: Column['better'] = 'neither',
): Column {
  return { key, title, unit, better }
}

export function reasonOf(error: unknown): string {
  const line = error instanceof Error ? error.message.split('\n')[0]! : String(error)
  return line.slice(0, 120)
}
