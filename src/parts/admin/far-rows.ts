// The busiest tunnels of the other servers of a cluster, as each of them reported last: any of their admin pages shows them all.

import { isRecentRow } from '../../measures.ts'
import type { Table } from '../../server/contracts/tables.ts'
import type { TunnelRow } from './rows.ts'

const REPORT_MS = 10_000
/** A server that stops reporting is forgotten; three reports, so that a lost one means nothing. */
const KEPT_MS = 3 * REPORT_MS
/** Rows of one report, about 400 bytes each. */
const MAX_REPORTED = 50
export const MAX_SERVERS = 10_000

export class FarRows {
  readonly #table: Table
  readonly #own: string
  readonly #timer: ReturnType<typeof setInterval>

  /** Makes the rows. `own`: the id of this server. */
  constructor(table: Table, own: string, tunnels: () => readonly TunnelRow[]) {
    this.#table = table
    this.#own = own
    const report = () => {
      const busiest = tunnels().toSorted((one, other) => other.recent.requests - one.recent.requests)
      // Numbers of clients mean something at their server alone.
      const rows = busiest.slice(0, MAX_REPORTED).map(row => ({ ...row, clients: [] }))
      table.set(own, JSON.stringify(rows), Date.now() + KEPT_MS)
    }
    report()
    this.#timer = setInterval(report, REPORT_MS)
    this.#timer.unref()
  }

  /** Each with its server. */
  all(): readonly TunnelRow[] {
    return this.#table.all().flatMap(({ key, value }) => {
      if (key === this.#own) return []
      return rowsIn(value).map(row => ({ ...row, server: key }))
    })
  }

  /** The others forget it at once. */
  stop(): void {
    clearInterval(this.#timer)
    this.#table.end(this.#own)
  }
}

/** Servers of one cluster are of one version; whatever else the directory has is left out. */
function rowsIn(text: string): readonly TunnelRow[] {
  try {
    const rows: unknown = JSON.parse(text)
    return Array.isArray(rows) ? rows.filter(isRow) : []
  } catch {
    return []
  }
}

function isRow(row: Partial<TunnelRow> | null): row is TunnelRow {
  const { name, url, clients, codes, recent } = row ?? {}
  return (
    typeof name === 'string' &&
    typeof url === 'string' &&
    /^(?:https?|tcp|udp|tls):/.test(url) &&
    Array.isArray(clients) &&
    typeof codes === 'object' &&
    isRecentRow(recent)
  )
}
