// From interleaved rounds to the groups that the comparison reports.

import type { Rounds } from '../ahead/rounds.ts'
import { ROWS, type Row } from '../ahead/rows.ts'
import type { Measured } from '../ahead/verdict.ts'
import type { Column, Figure, Group, ResultRow } from '../measure/result.ts'
import { summarize } from '../measure/samples.ts'
import { INTERNET_PEERS, PEERS } from '../peers/list.ts'

const IDS = ['held', 't50', '64k10', '1m10']

export const COMPARED_ROWS: readonly Row[] = ROWS.filter(({ id }) => IDS.includes(id))

type Shown = Column & { readonly row: string; readonly figure: string }

const GROUPS: readonly {
  readonly name: string
  readonly note?: string
  readonly columns: readonly Shown[]
}[] = [
  {
    name: 'Live peers: GET 20 B, 50 connections',
    columns: [
      shown('t50', 'rps', 'requests/s', '', 'higher'),
      shown('t50', 'p50', 'p50', 'ms', 'lower'),
      shown('t50', 'p90', 'p90', 'ms', 'lower'),
      shown('t50', 'p99', 'p99', 'ms', 'lower'),
      shown('t50', 'p999', 'p99.9', 'ms', 'lower'),
      shown('t50', 'cpu100k', 'CPU s per 100k, server + client', '', 'lower'),
    ],
  },
  {
    name: 'Live peers: transfer, 10 connections',
    columns: [
      shown('64k10', 'mbps', '64 KB', 'MB/s', 'higher'),
      shown('64k10', 'p99', '64 KB p99', 'ms', 'lower'),
      shown('1m10', 'mbps', '1 MB', 'MB/s', 'higher'),
      shown('1m10', 'cpuPerGb', '1 MB, CPU s per GB', '', 'lower'),
    ],
  },
  {
    name: 'Startup Time',
    note: 'Spawn of the server to listening; then spawn of the client to the first request answered through the tunnel.',
    columns: [
      shown('held', 'serverReadyMs', 'server', 'ms', 'lower'),
      shown('held', 'clientReadyMs', 'client, to the first answer', 'ms', 'lower'),
    ],
  },
  {
    name: 'Live peers: resident memory',
    columns: [
      shown('held', 'idleServerMb', 'server idle', 'MB', 'lower'),
      shown('held', 'idleClientMb', 'client idle', 'MB', 'lower'),
      shown('held', 'heldServerMb', 'server, 1,000 connections', 'MB', 'lower'),
      shown('held', 'heldClientMb', 'client, 1,000 connections', 'MB', 'lower'),
      shown('held', 'kbPerConnection', 'per connection', 'KB', 'lower'),
    ],
  },
]

function shown(row: string, figure: string, title: string, unit: string, better: Column['better']): Shown {
  return { key: `${row}.${figure}`, title, unit, better, row, figure }
}

export function peerGroups({ measured, versions, skipped }: Rounds): readonly Group[] {
  return [
    detection(versions, skipped),
    ...GROUPS.map(({ columns, ...group }) => ({
      ...group,
      columns: columns.map(({ key, title, unit, better }) => ({ key, title, unit, better })),
      rows: [...new Set(measured.map(({ peer }) => peer))].map(peer => ({
        name: peer,
        cells: Object.fromEntries(columns.map(column => [column.key, cell(measured, peer, column)])),
      })),
    })),
  ]
}

function cell(measured: readonly Measured[], peer: string, { row, figure }: Shown): Figure | string {
  const of = measured.filter(one => one.peer === peer && one.row === row)
  const values = of
    .map(one => one.figures?.[figure])
    .filter(value => value !== undefined && Number.isFinite(value))
  if (values.length === 0) return of.find(({ failure }) => failure)?.failure ?? 'not measured'
  // Filtered for undefined right above.
  const { median, min, max } = summarize(values as number[])
  return { value: median, low: min, high: max }
}

function detection(versions: Rounds['versions'], skipped: Rounds['skipped']): Group {
  const rows: ResultRow[] = []
  for (const { name, kind, how } of [...PEERS, ...INTERNET_PEERS]) {
    const state = skipped[name] ?? (versions[name] === undefined ? 'not asked for' : 'measured')
    rows.push({ name, cells: { version: versions[name] ?? '–', state, kind, how } })
  }
  const column = (key: string, title: string): Column => ({ key, title, unit: '', better: 'neither' })
  const columns = [
    column('version', 'version'),
    column('state', 'state'),
    column('kind', 'reads'),
    column('how', 'run as'),
  ]
  return { name: 'Tools', columns, rows }
}
