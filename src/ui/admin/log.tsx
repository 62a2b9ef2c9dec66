// The log: actions of the operator and clients, and refusals.

import { clock, moment } from '../parts/format.ts'
import type { AuditRow } from './api.ts'
import { limit, place, seen } from './state.ts'
import { Bar, type Column, fits, Table } from './table.tsx'

/** The maximum number that the API returns at once. */
const MOST = 1_000

const COLUMNS: readonly Column<AuditRow>[] = [
  {
    head: 'Time',
    cell: ({ at }) => (
      <time dateTime={at} title={moment(at)}>
        {clock(at)}
      </time>
    ),
  },
  { head: 'Action', cell: ({ action }) => <code>{action}</code> },
  { head: 'By', cell: ({ actor }) => actor },
  { head: 'Subject', cell: ({ subject }) => <span class="name">{subject}</span> },
  { head: 'Detail', cell: ({ detail }) => <span class="wrap">{detail}</span> },
]

export function Log() {
  const value = seen('log')
  const rows = value?.entries.filter(({ action, actor, subject, detail = '' }) =>
    fits(action, actor, subject, detail),
  )
  // After a full page there are more.
  const isFull = value !== undefined && value.entries.length >= limit.value && limit.value < MOST
  return (
    <>
      <Bar title="Log" placeholder="Action, who, subject or detail" />
      <Table
        label="Audit log"
        columns={COLUMNS}
        rows={rows}
        matching={isFull ? MOST : 0}
        keyOf={({ at }, index) => `${at} ${index}`}
        empty={
          value?.isKept === false
            ? 'This server keeps no audit log: admin.store in its configuration.'
            : place.value.q === ''
              ? 'Nothing yet.'
              : `Nothing of the newest ${value?.entries.length ?? 0} fits “${place.value.q}”.`
        }
      />
    </>
  )
}
