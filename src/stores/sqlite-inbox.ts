// Webhooks that wait for their client, in a SQLite file.

import type { Database } from 'bun:sqlite'
import { TunnelError } from '../errors.ts'
import type { Box, BoxBounds, InboxStore, Keeping, KeptWebhook, NewWebhook } from '../inbox.ts'
import { openPrivateDatabase } from './private-database.ts'

const SCHEMA = `
  create table if not exists boxes (
    name text primary key, owner text not null, paths text not null, answer integer not null, seenMs integer not null
  ) strict;
  create table if not exists webhooks (
    id integer primary key autoincrement, owner text not null, name text not null, path text not null,
    head text not null, body blob not null, address text not null, receivedMs integer not null,
    attempts integer not null
  ) strict;
  create index if not exists webhooksOf on webhooks (owner, name, id);
  create index if not exists webhooksAge on webhooks (receivedMs);
  create table if not exists known (
    owner text not null, name text not null, key text not null, receivedMs integer not null,
    primary key (owner, name, key)
  ) strict, without rowid;
  create index if not exists knownAge on known (receivedMs);
`
/** What a row takes besides its head and body. */
const ROW_BYTES = 200

interface BoxRow {
  readonly name: string
  readonly owner: string
  readonly paths: string
  readonly answer: number
}

interface Total {
  requests: number
  bytes: number
}

/** In one file, with mode 0600. Throws `OPTION_INVALID` when the file cannot be used. */
export class SqliteInbox implements InboxStore {
  readonly #database: Database
  /** Of each owner and name: counting rows for each webhook would take longer with each. */
  readonly #totals = new Map<string, Total>()
  #allBytes = 0

  constructor(path: string) {
    try {
      this.#database = openPrivateDatabase(path, { version: 1, schema: SCHEMA, synchronous: 'normal' })
      this.#count()
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause)
      throw new TunnelError('OPTION_INVALID', `The inbox ${path} cannot be used: ${reason}.`, { cause })
    }
  }

  boxes(): readonly Box[] {
    // The columns of the table below.
    const rows = this.#database.query('select name, owner, paths, answer from boxes').all() as BoxRow[]
    return rows.map(row => ({ ...row, paths: row.paths.split('\n') }))
  }

  saveBox({ name, owner, paths, answer }: Box, nowMs: number): void {
    this.#durably(() =>
      this.#database
        .query('insert or replace into boxes values (?, ?, ?, ?, ?)')
        .run(name, owner, paths.join('\n'), answer, nowMs),
    )
  }

  removeBox(name: string): void {
    this.#database.query('delete from boxes where name = ?').run(name)
  }

  keep(webhooks: readonly NewWebhook[], bounds: BoxBounds): readonly Keeping[] {
    try {
      return this.#durably(() => webhooks.map(one => this.#keep(one, bounds)))
    } catch (error) {
      // Nothing of it was written.
      this.#count()
      throw error
    }
  }

  /** What this writes is there after a power cut. Without it, what was delivered last may be delivered again then. */
  #durably<Outcome>(write: () => Outcome): Outcome {
    this.#database.run('pragma synchronous = full')
    try {
      return this.#database.transaction(write).immediate()
    } finally {
      this.#database.run('pragma synchronous = normal')
    }
  }

  #keep(webhook: NewWebhook, bounds: BoxBounds): Keeping {
    const { name, owner, path, key, head, body, address, receivedMs } = webhook
    const total = this.#totalOf(owner, name)
    const bytes = body.length + head.length + ROW_BYTES
    if (
      total.requests >= bounds.maxRequests ||
      total.bytes + bytes > bounds.maxBytes ||
      this.#allBytes + bytes > bounds.maxAllBytes
    )
      return 'full'
    if (key !== undefined) {
      const { changes } = this.#database
        .query('insert or ignore into known values (?, ?, ?, ?)')
        .run(owner, name, key, receivedMs)
      if (changes === 0) return 'known'
    }
    this.#database
      .query(
        'insert into webhooks (owner, name, path, head, body, address, receivedMs, attempts) values (?, ?, ?, ?, ?, ?, ?, 0)',
      )
      .run(owner, name, path, head, body, address, receivedMs)
    this.#add(total, 1, bytes)
    return 'kept'
  }

  next(owner: string, name: string, exceptPaths: readonly string[]): KeptWebhook | undefined {
    const others = exceptPaths.map(() => '?').join(', ')
    const row = this.#database
      .query(
        `select id, owner, name, path, head, body, address, receivedMs, attempts from webhooks
         where owner = ? and name = ? and path not in (${others}) order by id limit 1`,
      )
      .get(owner, name, ...exceptPaths)
    // The columns that were asked for.
    return row === null ? undefined : { ...(row as KeptWebhook), key: undefined }
  }

  tried(id: number): void {
    this.#database.query('update webhooks set attempts = attempts + 1 where id = ?').run(id)
  }

  remove(id: number): void {
    // The columns that were asked for.
    const row = this.#database
      .query(
        `delete from webhooks where id = ? returning owner, name, length(body) + length(head) + ${ROW_BYTES} as bytes`,
      )
      .get(id) as { owner: string; name: string; bytes: number } | null
    if (row !== null) this.#add(this.#totalOf(row.owner, row.name), -1, -row.bytes)
  }

  counts(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>()
    for (const [key, { requests }] of this.#totals) {
      const name = key.slice(0, key.indexOf(' '))
      if (requests > 0) counts.set(name, (counts.get(name) ?? 0) + requests)
    }
    return counts
  }

  touch(names: readonly string[], nowMs: number): void {
    const update = this.#database.query('update boxes set seenMs = ? where name = ?')
    this.#database.transaction(() => {
      for (const name of names) update.run(nowMs, name)
    })()
  }

  prune(beforeMs: number): number {
    const gone = this.#database.query('delete from webhooks where receivedMs < ?').run(beforeMs).changes
    this.#database.query('delete from known where receivedMs < ?').run(beforeMs)
    this.#database.query('delete from boxes where seenMs < ?').run(beforeMs)
    if (gone > 0) this.#count()
    return gone
  }

  close(): void {
    this.#database.close()
  }

  #totalOf(owner: string, name: string): Total {
    const key = `${name} ${owner}`
    const found = this.#totals.get(key)
    if (found !== undefined) return found
    const total: Total = { requests: 0, bytes: 0 }
    this.#totals.set(key, total)
    return total
  }

  #add(total: Total, requests: number, bytes: number): void {
    total.requests += requests
    total.bytes += bytes
    this.#allBytes += bytes
  }

  #count(): void {
    this.#totals.clear()
    this.#allBytes = 0
    // The columns that are asked for.
    const rows = this.#database
      .query(
        `select owner, name, count(*) as requests, sum(length(body) + length(head) + ${ROW_BYTES}) as bytes
         from webhooks group by owner, name`,
      )
      .all() as { owner: string; name: string; requests: number; bytes: number }[]
    for (const { owner, name, requests, bytes } of rows)
      this.#add(this.#totalOf(owner, name), requests, bytes)
  }
}
