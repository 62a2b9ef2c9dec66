// Stores the last reports of the other servers of a cluster, so that each admin page shows all of them: their tunnels
// and clients, the traffic of all their tunnels, and that of each tunnel whose graphs a page shows.

import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { deferred } from '../../deferred.ts'
import { objectIn } from '../../directory.ts'
import { isRecentRow } from '../../measures.ts'
import type { Span, Traffic } from '../../operations.ts'
import type { Table } from '../../server/contracts/tables.ts'
import type { ClientRow, TunnelRow } from './rows.ts'

const REPORT_MS = 10_000
/**
 * The time in milliseconds after which a silent server is forgotten: three reports, so that a single lost one does not matter.
 */
const KEPT_MS = 3 * REPORT_MS
/** The maximum number of tunnels (the busiest), and of clients (the newest), in one report. Each takes about 130 bytes. */
const MAX_REPORTED = 1_000
/** The maximum size in bytes of a report that is read. */
const MAX_REPORT_BYTES = 16 * 1024 * 1024
/** The maximum number of keys of the table: servers, and tunnels that a page asks for. */
export const MAX_KEYS = 10_000
/** The prefix of the key of a tunnel that a page asks for. */
const ASKED = '?'
/** The maximum number of tunnels whose traffic a server reports at once. */
const MAX_ASKED = 20
/** The longest wait in milliseconds for another server's report. */
const REPLY_MS = 2_000
/** The length and number of the rows that graphs show: an hour, and a week. A row takes about 40 bytes. */
const SPANS = { minute: [60_000, 60], hour: [3_600_000, 168] } as const

/** The report of a server about itself. */
export interface Reporter {
  ownTunnels(): readonly TunnelRow[]
  ownClients(): readonly ClientRow[]
  /** Returns rows from `fromMs` on, the newest first: those of one tunnel, or of all together. */
  ownTraffic(span: Span, fromMs: number, limit: number, tunnel?: string): readonly Traffic[]
}

/** Time, requests, errors, bytes in and out, durations. */
type Row = readonly number[]
type Rows = Record<keyof typeof SPANS, readonly Row[]>

interface Report {
  readonly tunnels: readonly TunnelRow[]
  readonly clients: readonly ClientRow[]
  readonly traffic: Rows
  /** The traffic of tunnels that a page asked for, by their names. */
  readonly asked: Readonly<Record<string, Rows>>
}

export class FarRows {
  readonly #table: Table
  readonly #own: string
  readonly #timer: ReturnType<typeof setInterval>
  readonly #stopListening: () => void
  /** The traffic as last reported. Past rows do not change. */
  #traffic: Rows = { minute: [], hour: [] }
  /** The tunnels whose traffic is in the last report. */
  #reported: readonly string[] = []
  /** The parsed reports, by their texts. */
  #read = new Map<string, Report>()

  /** Makes the rows. `own`: the id of this server. */
  constructor(table: Table, own: string, reporter: () => Reporter | undefined) {
    this.#table = table
    this.#own = own
    const report = () => {
      const from = reporter()
      if (from !== undefined) table.set(own, this.#report(from), Date.now() + KEPT_MS)
    }
    report()
    this.#timer = setInterval(report, REPORT_MS)
    this.#timer.unref()
    this.#stopListening = table.onChange(() => {
      const fresh = this.#asked().filter(name => !this.#reported.includes(name))
      if (fresh.length === 0) return
      if (
        reporter()
          ?.ownTunnels()
          .some(({ name }) => fresh.includes(name))
      )
        report()
    })
  }

  #report(from: Reporter): string {
    const all = from.ownTunnels()
    const busiest = all.toSorted((one, other) => other.recent.requests - one.recent.requests)
    this.#reported = this.#asked().filter(asked => all.some(({ name }) => name === asked))
    this.#traffic = { minute: this.#rows('minute', from), hour: this.#rows('hour', from) }
    const rowsOf = (tunnel: string): Rows => ({
      minute: from.ownTraffic('minute', 0, SPANS.minute[1], tunnel).map(rowOf),
      hour: from.ownTraffic('hour', 0, SPANS.hour[1], tunnel).map(rowOf),
    })
    const report: Report = {
      // A client's number has a meaning only at its own server.
      tunnels: busiest.slice(0, MAX_REPORTED).map(row => ({ ...row, clients: [] })),
      clients: from.ownClients().slice(-MAX_REPORTED),
      traffic: this.#traffic,
      asked: Object.fromEntries(this.#reported.map(name => [name, rowsOf(name)])),
    }
    return deflateRawSync(JSON.stringify(report), { level: 1 }).toString('base64')
  }

  /** Returns the tunnels whose traffic a page asks for. */
  #asked(): readonly string[] {
    const names = this.#table.all().flatMap(({ key }) => (key.startsWith(ASKED) ? key.slice(1) : []))
    return names.slice(0, MAX_ASKED)
  }

  #rows(span: keyof typeof SPANS, from: Reporter): readonly Row[] {
    const [ms, most] = SPANS[span]
    const [last, ...past] = this.#traffic[span]
    const fromMs = last?.[0] ?? Date.now() - ms * most
    return [...from.ownTraffic(span, fromMs, most).map(rowOf), ...past].slice(0, most)
  }

  /** Returns the tunnels of other servers, each with its server. */
  tunnels(): readonly TunnelRow[] {
    return this.#reports().flatMap(([server, { tunnels }]) => tunnels.map(row => ({ ...row, server })))
  }

  clients(): readonly ClientRow[] {
    return this.#reports().flatMap(([server, { clients }]) => clients.map(row => ({ ...row, server })))
  }

  /** Returns the traffic of one server, or of all others. */
  traffic(span: Span, server?: string): readonly Traffic[] {
    if (span === 'day') return []
    return this.#reports()
      .filter(([id]) => server === undefined || id === server)
      .flatMap(([, { traffic }]) => traffic[span].map(trafficOf))
  }

  /** Resolves with the traffic of a tunnel at other servers, which report it on request. `undefined` if one did not. */
  async trafficOf(tunnel: string, span: Span): Promise<readonly Traffic[] | undefined> {
    const holders = () =>
      this.#reports().flatMap(([, report]) =>
        report.tunnels.some(({ name }) => name === tunnel) ? [report] : [],
      )
    const isReported = () => holders().every(({ asked }) => asked[tunnel] !== undefined)
    if (span === 'day' || holders().length === 0) return []
    this.#table.set(ASKED + tunnel, this.#own, Date.now() + KEPT_MS)
    if (!isReported()) {
      const { promise, resolve } = deferred()
      const stopListening = this.#table.onChange(() => isReported() && resolve())
      const timer = setTimeout(resolve, REPLY_MS)
      await promise
      clearTimeout(timer)
      stopListening()
    }
    if (!isReported()) return undefined
    return holders().flatMap(({ asked }) => asked[tunnel]?.[span].map(trafficOf) ?? [])
  }

  #reports(): readonly (readonly [server: string, report: Report])[] {
    const read = new Map<string, Report>()
    const reports = this.#table.all().flatMap(({ key, value }) => {
      if (key === this.#own || key.startsWith(ASKED)) return []
      const report = this.#read.get(value) ?? reportIn(value)
      read.set(value, report)
      return [[key, report] as const]
    })
    this.#read = read
    return reports
  }

  /** Ends the reports: the others forget this server at once. */
  stop(): void {
    clearInterval(this.#timer)
    this.#stopListening()
    this.#table.end(this.#own)
  }
}

function rowOf({ atMs, requests, errors, bytesIn, bytesOut, durations = [] }: Traffic): Row {
  return [atMs, requests, errors, bytesIn, bytesOut, ...durations]
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

/** Parses a report. All servers of a cluster have the same version; anything else in the directory is left out. */
function reportIn(text: string): Report {
  const { tunnels, clients, traffic, asked } = objectIn(inflated(text)) ?? {}
  return {
    tunnels: Array.isArray(tunnels) ? tunnels.filter(isTunnel) : [],
    clients: Array.isArray(clients) ? clients.filter(isClient) : [],
    traffic: spansIn(traffic),
    asked: Object.fromEntries(Object.entries(asked ?? {}).map(([name, rows]) => [name, spansIn(rows)])),
  }
}

function inflated(text: string): string {
  try {
    return inflateRawSync(Buffer.from(text, 'base64'), { maxOutputLength: MAX_REPORT_BYTES }).toString()
  } catch {
    // Not a report.
    return ''
  }
}

function spansIn(value: unknown): Rows {
  const { minute, hour } = (value ?? {}) as Partial<Record<string, unknown>>
  return { minute: rowsIn(minute), hour: rowsIn(hour) }
}

function rowsIn(rows: unknown): readonly Row[] {
  const isCounts = (row: unknown): row is Row => Array.isArray(row) && row.every(Number.isFinite)
  return Array.isArray(rows) ? rows.filter(isCounts) : []
}

function isTunnel(row: Partial<TunnelRow> | null): row is TunnelRow {
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

function isClient(row: Partial<ClientRow> | null): row is ClientRow {
  const { number, address, connectedAt, tunnels } = row ?? {}
  return (
    typeof number === 'number' &&
    [address, connectedAt].every(text => typeof text === 'string') &&
    Array.isArray(tunnels) &&
    tunnels.every(name => typeof name === 'string')
  )
}
