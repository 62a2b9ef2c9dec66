// Traffic and bans in a SQLite file. Traffic is written in one transaction every few seconds, and each ban at once.

import type { Database } from 'bun:sqlite'
import { messageOf, optionInvalid, TunnelError } from '../errors.ts'
import type { AuditEntry, AuditLog, Ban, OperationsStore, Span, Traffic } from '../operations.ts'
import { openPrivateDatabase } from './private-database.ts'

const DAY_MS = 86_400_000

/** The length of a row of each span, and how long rows are stored. */
const SPANS: Readonly<
  Record<Span, { readonly number: number; readonly ms: number; readonly keptMs: number }>
> = {
  minute: { number: 0, ms: 60_000, keptMs: DAY_MS },
  hour: { number: 1, ms: 3_600_000, keptMs: 60 * DAY_MS },
  day: { number: 2, ms: DAY_MS, keptMs: 1_096 * DAY_MS },
}

/** The number of stored lines of the audit log. */
const MAX_AUDIT_LINES = 100_000

const SCHEMA = `
  create table traffic (
    span integer not null, atMs integer not null, tunnel text not null, requests integer not null,
    errors integer not null, bytesIn integer not null, bytesOut integer not null, primary key (span, atMs, tunnel)
  ) strict, without rowid;
  create table latency (
    span integer not null, atMs integer not null, tunnel text not null, bucket integer not null, requests integer not null,
    primary key (span, atMs, tunnel, bucket)
  ) strict, without rowid;
  create table ban (
    id integer primary key autoincrement, kind text not null, value text not null, reason text not null,
    sinceMs integer not null, untilMs integer
  ) strict;
  create table audit (
    id integer primary key autoincrement, atMs integer not null, action text not null, actor text not null,
    subject text not null, detail text
  ) strict;
`

interface LatencyRow {
  readonly atMs: number
  readonly bucket: number
  readonly requests: number
}

type BanRow = Omit<Ban, 'untilMs'> & { readonly untilMs: number | null }
type AuditRow = Omit<AuditEntry, 'detail'> & { readonly detail: string | null }

/** The store in one file with mode 0600; `:memory:` stores nothing. Throws `OPTION_INVALID` if the file cannot be used. */
export class SqliteOperations implements OperationsStore, AuditLog {
  readonly #database: Database

  constructor(path: string) {
    try {
      // An acknowledged ban survives a power cut.
      this.#database = openPrivateDatabase(path, { version: 1, schema: SCHEMA, synchronous: 'full' })
    } catch (cause) {
      throw failed(path, cause)
    }
  }

  add(atMs: number, traffic: readonly Omit<Traffic, 'atMs'>[]): void {
    const insert = this.#database.query(
      `insert into traffic values (?, ?, ?, ?, ?, ?, ?) on conflict do update set
        requests = requests + excluded.requests, errors = errors + excluded.errors,
        bytesIn = bytesIn + excluded.bytesIn, bytesOut = bytesOut + excluded.bytesOut`,
    )
    const count = this.#database.query(
      `insert into latency values (?, ?, ?, ?, ?) on conflict do update set requests = requests + excluded.requests`,
    )
    this.#database.transaction(() => {
      for (const { number, ms } of Object.values(SPANS))
        for (const { tunnel, requests, errors, bytesIn, bytesOut, durations = [] } of traffic) {
          const at = atMs - (atMs % ms)
          insert.run(number, at, tunnel, requests, errors, bytesIn, bytesOut)
          for (const [bucket, more] of durations.entries())
            if (more > 0) count.run(number, at, tunnel, bucket, more)
        }
    })()
  }

  traffic(span: Span, fromMs: number, limit: number, tunnel?: string): readonly Traffic[] {
    const { number, ms } = SPANS[span]
    const from = fromMs - (fromMs % ms)
    const rows =
      tunnel === undefined
        ? this.#database
            .query<Traffic, [number, number, number]>(
              `select '' as tunnel, atMs, sum(requests) as requests, sum(errors) as errors, sum(bytesIn) as bytesIn,
                sum(bytesOut) as bytesOut from traffic where span = ? and atMs >= ? group by atMs order by atMs desc limit ?`,
            )
            .all(number, from, limit)
        : this.#database
            .query<Traffic, [number, number, string, number]>(
              `select tunnel, atMs, requests, errors, bytesIn, bytesOut from traffic
                where span = ? and atMs >= ? and tunnel = ? order by atMs desc limit ?`,
            )
            .all(number, from, tunnel, limit)
    const durations = this.#durations(number, rows.at(-1)?.atMs ?? 0, tunnel)
    return rows.map(row => {
      const buckets = durations.get(row.atMs)
      return buckets === undefined ? row : { ...row, durations: buckets }
    })
  }

  /** Rows from `fromMs` on, sorted by the beginning of the span. */
  #durations(
    span: number,
    fromMs: number,
    tunnel: string | undefined,
  ): ReadonlyMap<number, readonly number[]> {
    const rows = this.#database
      .query<LatencyRow, [number, number, string | null]>(
        `select atMs, bucket, sum(requests) as requests from latency
          where span = ?1 and atMs >= ?2 and (?3 is null or tunnel = ?3) group by atMs, bucket order by atMs, bucket`,
      )
      .all(span, fromMs, tunnel ?? null)
    const found = new Map<number, number[]>()
    for (const { atMs, bucket, requests } of rows) {
      const buckets = found.get(atMs) ?? []
      // Up to the last bucket with any.
      while (buckets.length < bucket) buckets.push(0)
      buckets.push(requests)
      found.set(atMs, buckets)
    }
    return found
  }

  prune(nowMs: number): void {
    const removes = ['traffic', 'latency'].map(table =>
      this.#database.query(`delete from ${table} where span = ? and atMs < ?`),
    )
    this.#database.transaction(() => {
      for (const { number, keptMs } of Object.values(SPANS))
        for (const remove of removes) remove.run(number, nowMs - keptMs)
      this.#database
        .query('delete from audit where id <= (select max(id) from audit) - ?')
        .run(MAX_AUDIT_LINES)
    })()
  }

  bans(): readonly Ban[] {
    const rows = this.#database.query<BanRow, []>('select * from ban order by id').all()
    return rows.map(({ untilMs, ...ban }) => ({ ...ban, ...(untilMs !== null && { untilMs }) }))
  }

  version(): number {
    // The pragma always returns one row. It does not count writes of this connection.
    const row = this.#database.query('pragma data_version').get() as { data_version: number }
    return row.data_version
  }

  saveBan({ id, ...ban }: Omit<Ban, 'id'> & Partial<Pick<Ban, 'id'>>): number {
    const { kind, value, reason, sinceMs, untilMs } = ban
    const { lastInsertRowid } = this.#database
      .query(
        'insert or ignore into ban (id, kind, value, reason, sinceMs, untilMs) values (?, ?, ?, ?, ?, ?)',
      )
      .run(id ?? null, kind, value, reason, sinceMs, untilMs ?? null)
    return id ?? Number(lastInsertRowid)
  }

  removeBan(id: number): void {
    this.#database.query('delete from ban where id = ?').run(id)
  }

  note({ atMs, action, actor, subject, detail }: AuditEntry): void {
    this.#database
      .query('insert into audit (atMs, action, actor, subject, detail) values (?, ?, ?, ?, ?)')
      .run(atMs, action, actor, subject, detail ?? null)
  }

  entries(beforeMs: number, limit: number): readonly AuditEntry[] {
    const rows = this.#database
      .query<AuditRow, [number, number]>(
        'select atMs, action, actor, subject, detail from audit where atMs < ? order by id desc limit ?',
      )
      .all(beforeMs, limit)
    return rows.map(({ detail, ...entry }) => ({ ...entry, ...(detail !== null && { detail }) }))
  }

  close(): void {
    this.#database.close()
  }
}

function failed(path: string, cause: unknown): TunnelError {
  if (cause instanceof TunnelError) return cause
  return optionInvalid(`The file ${path} cannot be used: ${messageOf(cause)}.`, { cause })
}
