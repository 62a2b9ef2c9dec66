// Stores the last reports of the other servers of a cluster, so that each admin page shows them all: their busiest tunnels, and
// the traffic of all their tunnels.

import { objectIn } from '../../directory.ts'
import { isRecentRow } from '../../measures.ts'
import type { Span, Traffic } from '../../operations.ts'
import type { Table } from '../../server/contracts/tables.ts'
import type { TunnelRow } from './rows.ts'

const REPORT_MS = 10_000
/** A server that stops reporting is forgotten; three reports, so that a lost one means nothing. */
const KEPT_MS = 3 * REPORT_MS
/** Rows of one report, about 400 bytes each. */
const MAX_REPORTED = 50
export const MAX_SERVERS = 10_000
/** The times that graphs show: an hour, and a week. A row takes about 40 bytes. */
const SPANS = { minute: [60_000, 60], hour: [3_600_000, 168] } as const

/** A server's own part of what it reports. */
export interface Reporter {
  ownTunnels(): readonly TunnelRow[]
  /** Rows from `fromMs` on, the newest first. */
  ownTraffic(span: Span, fromMs: number, limit: number): readonly Traffic[]
}

/** Time, requests, errors, bytes in and out, durations. */
type Row = readonly number[]
type Rows = Record<keyof typeof SPANS, readonly Row[]>

interface Report {
  readonly tunnels: readonly TunnelRow[]
  readonly traffic: Rows
}

export class FarRows {
  readonly #table: Table
  readonly #own: string
  readonly #timer: ReturnType<typeof setInterval>
  /** The traffic as last reported: past rows do not change. */
  #traffic: Rows = { minute: [], hour: [] }

  /** Makes the rows. `own`: the id of this server. */
  constructor(table: Table, own: string, reporter: () => Reporter | undefined) {
    this.#table = table
    this.#own = own
    const report = () => {
      const from = reporter()
      if (from === undefined) return
      const busiest = from
        .ownTunnels()
        .toSorted((one, other) => other.recent.requests - one.recent.requests)
        .slice(0, MAX_REPORTED)
      // Numbers of clients mean something at their server alone.
      const tunnels = busiest.map(row => ({ ...row, clients: [] }))
      this.#traffic = { minute: this.#rows('minute', from), hour: this.#rows('hour', from) }
      table.set(own, JSON.stringify({ tunnels, traffic: this.#traffic }), Date.now() + KEPT_MS)
    }
    report()
    this.#timer = setInterval(report, REPORT_MS)
    this.#timer.unref()
  }

  #rows(span: keyof typeof SPANS, from: Reporter): readonly Row[] {
    const [ms, most] = SPANS[span]
    const [last, ...past] = this.#traffic[span]
    const fromMs = last?.[0] ?? Date.now() - ms * most
    const fresh = from
      .ownTraffic(span, fromMs, most)
      .map(({ atMs, requests, errors, bytesIn, bytesOut, durations = [] }) => [
        ...[atMs, requests, errors, bytesIn, bytesOut],
        ...durations,
      ])
    return [...fresh, ...past].slice(0, most)
  }

  /** Each with its server. */
  all(): readonly TunnelRow[] {
    return this.#reports().flatMap(([server, { tunnels }]) => tunnels.map(row => ({ ...row, server })))
  }

  /** The traffic of one server, or of all others. */
  traffic(span: Span, server?: string): readonly Traffic[] {
    if (span === 'day') return []
    return this.#reports()
      .filter(([id]) => server === undefined || id === server)
      .flatMap(([, { traffic }]) => traffic[span].map(trafficOf))
  }

  #reports(): readonly (readonly [server: string, report: Report])[] {
    return this.#table
      .all()
      .flatMap(({ key, value }) => (key === this.#own ? [] : [[key, reportIn(value)] as const]))
  }

  /** The others forget it at once. */
  stop(): void {
    clearInterval(this.#timer)
    this.#table.end(this.#own)
  }
}

function trafficOf([
  atMs = 0,
  requests = 0,
  errors = 0,
  bytesIn = 0,
  bytesOut = 0,
  ...durations
]: Row): Traffic {
  return { tunnel: '', atMs, requests, errors, bytesIn, bytesOut, durations }
}

/** Servers of one cluster are of one version; whatever else the directory has is left out. */
function reportIn(text: string): Report {
  const { tunnels, traffic } = objectIn(text) ?? {}
  const { minute, hour } = (traffic ?? {}) as Partial<Record<string, unknown>>
  return {
    tunnels: Array.isArray(tunnels) ? tunnels.filter(isRow) : [],
    traffic: { minute: rowsIn(minute), hour: rowsIn(hour) },
  }
}

function rowsIn(rows: unknown): readonly Row[] {
  const isCounts = (row: unknown): row is Row => Array.isArray(row) && row.every(Number.isFinite)
  return Array.isArray(rows) ? rows.filter(isCounts) : []
}

function isRow(row: Partial<TunnelRow> | null): row is TunnelRow {
  const { name, url, clients, codes, recent } = row ?? {}
  return (
    typeof name === 'string' &&
    typeof url === 'string' &&
    /^(?:https?|tcp|udp|tls|private):/.test(url) &&
    Array.isArray(clients) &&
    typeof codes === 'object' &&
    isRecentRow(recent)
  )
}
