// The stored webhooks in a SQLite file.

import type { Database } from 'bun:sqlite'
import { messageOf, optionInvalid, TunnelError } from '../errors.ts'
import type { Box, BoxBounds, InboxStore, Keeping, KeptWebhook, NewWebhook, Waiting } from '../inbox.ts'
import { openPrivateDatabase } from './private-database.ts'

const SCHEMA = `
  create table if not exists boxes (
    name text primary key, owner text not null, paths text not null, status integer not null, seenMs integer not null
  ) strict;
  create table if not exists webhooks (
    id integer primary key autoincrement, owner text not null, name text not null, path text not null,
    head text not null, body blob not null, address text not null, receivedMs integer not null,
    attempts integer not null, sender text not null default ''
  ) strict;
  create index if not exists webhooksOf on webhooks (owner, name, id);
  create index if not exists webhooksAge on webhooks (receivedMs);
  create table if not exists known (
    owner text not null, name text not null, key text not null, receivedMs integer not null,
    primary key (owner, name, key)
  ) strict, without rowid;
  create index if not exists knownAge on known (receivedMs);
  create index if not exists boxesOf on boxes (owner, seenMs);
  create index if not exists knownOf on known (owner, receivedMs);
`
/** The size of a row without its head and body. */
const ROW_BYTES = 200
/**
 * The sums for each owner and name, and for each sender there; the sender '' is the total. Counting rows for each
 * webhook would get slower with their number. Each process that opens the file counts again.
 */
const SUMS = `
  create table if not exists sums (
    sender text not null, name text not null, owner text not null, requests integer not null, bytes integer not null,
    primary key (sender, name, owner)
  ) strict, without rowid;
  delete from sums;
  insert into sums select '', name, owner, count(*), sum(length(body) + length(head) + ${ROW_BYTES}) from webhooks
    group by name, owner;
  insert into sums select sender, name, owner, count(*), sum(length(body) + length(head) + ${ROW_BYTES}) from webhooks
    where sender <> '' group by sender, name, owner;
`
/** The maximum number of boxes of one owner: names are cheap, and each box stays for days after its client left. */
const MAX_BOXES_OF_OWNER = 1_000
/** The maximum number of ids of one owner. Above it, the oldest are forgotten, so that an owner cannot fill the disk. */
const MAX_KNOWN_OF_OWNER = 100_000

interface BoxRow {
  readonly name: string
  readonly owner: string
  readonly paths: string
  readonly status: number
  readonly seenMs: number
}

interface Sum {
  readonly requests: number
  readonly bytes: number
}

type Sender = Pick<NewWebhook, 'sender' | 'owner' | 'name'>

const NOTHING: Sum = { requests: 0, bytes: 0 }

/** The inbox in one file with mode 0600. Throws `OPTION_INVALID` if the file cannot be used. */
export class SqliteInbox implements InboxStore {
  readonly #database: Database
  readonly #maxKnown: number
  /** The number of new ids by owner since the oldest were last removed. */
  readonly #newKnown = new Map<string, number>()
  #version = 0

  constructor(path: string, maxKnown: number = MAX_KNOWN_OF_OWNER) {
    this.#maxKnown = maxKnown
    try {
      this.#database = openPrivateDatabase(path, { version: 1, schema: SCHEMA, synchronous: 'normal' })
      this.#database.transaction(() => this.#database.run(SUMS)).immediate()
      this.hasChanged()
    } catch (cause) {
      if (cause instanceof TunnelError) throw cause
      throw optionInvalid(`The inbox ${path} cannot be used: ${messageOf(cause)}.`, { cause })
    }
  }

  boxes(): readonly (Box & { readonly seenMs: number })[] {
    // The columns of the table.
    const rows = this.#database.query('select * from boxes').all() as BoxRow[]
    return rows.map(row => ({ ...row, paths: row.paths.split('\n') }))
  }

  box(name: string): Box | undefined {
    // The columns of the table.
    const row = this.#database.query('select * from boxes where name = ?').get(name) as BoxRow | null
    return row === null ? undefined : { ...row, paths: row.paths.split('\n') }
  }

  saveBox({ name, owner, paths, status }: Box, nowMs: number): readonly string[] {
    return this.#durably(() => {
      this.#database
        .query('insert or replace into boxes values (?, ?, ?, ?, ?)')
        .run(name, owner, paths.join('\n'), status, nowMs)
      const gone = `delete from boxes where name in (
        select name from boxes where owner = ? order by seenMs desc limit -1 offset ${MAX_BOXES_OF_OWNER}) returning name`
      // The selected column.
      return (this.#database.query(gone).all(owner) as { name: string }[]).map(row => row.name)
    })
  }

  removeBox(name: string): void {
    this.#database.query('delete from boxes where name = ?').run(name)
  }

  keep(webhooks: readonly NewWebhook[], bounds: BoxBounds): readonly Keeping[] {
    return this.#durably(() => {
      const byOwner = new Map<string, number>()
      const bySender = new Map<string, number>()
      let freeBytes = bounds.maxAllBytes
      for (const { owner, bytes } of this.#bytesByOwner()) {
        byOwner.set(owner, bytes)
        freeBytes -= bytes
      }
      return webhooks.map(one => {
        const bytes = one.body.length + one.head.length + ROW_BYTES
        const ownBytes = (byOwner.get(one.owner) ?? 0) + bytes
        const sentBytes = bySender.get(one.sender) ?? this.#bytesFrom(one.sender)
        // Acknowledged webhooks are never dropped for others, so there must be room for other owners and senders.
        const isFull = Math.max(ownBytes, sentBytes) > freeBytes - bytes
        const outcome = isFull ? 'full' : this.#keep(one, bytes, bounds)
        if (outcome === 'kept') {
          byOwner.set(one.owner, ownBytes)
          bySender.set(one.sender, one.sender === '' ? 0 : sentBytes + bytes)
          freeBytes -= bytes
        }
        return outcome
      })
    })
  }

  #bytesByOwner(): readonly { readonly owner: string; readonly bytes: number }[] {
    // The selected columns.
    return this.#database
      .query("select owner, sum(bytes) as bytes from sums where sender = '' group by owner")
      .all() as { owner: string; bytes: number }[]
  }

  #bytesFrom(sender: string): number {
    if (sender === '') return 0
    return this.#one<Sum>('select sum(bytes) as bytes from sums where sender = ?', sender)?.bytes ?? 0
  }

  /** Runs writes that survive a power cut. Without it, the last delivered webhooks could be delivered again after one. */
  #durably<Outcome>(write: () => Outcome): Outcome {
    this.#database.run('pragma synchronous = full')
    try {
      return this.#database.transaction(write).immediate()
    } finally {
      this.#database.run('pragma synchronous = normal')
    }
  }

  #keep(webhook: NewWebhook, bytes: number, bounds: BoxBounds): Keeping {
    const { name, owner, path, key, head, body, address, sender, receivedMs } = webhook
    const all = this.#sumOf('', name, owner)
    const own = sender === '' ? NOTHING : this.#sumOf(sender, name, owner)
    const leftRequests = bounds.maxRequests - all.requests - 1
    const leftBytes = bounds.maxBytes - all.bytes - bytes
    if (leftRequests < own.requests || leftBytes < own.bytes) return 'full'
    if (key !== undefined) {
      const { changes } = this.#database
        .query('insert or ignore into known values (?, ?, ?, ?)')
        .run(owner, name, key, receivedMs)
      if (changes === 0) return 'known'
      this.#boundKnown(owner)
    }
    this.#database
      .query(
        'insert into webhooks (owner, name, path, head, body, address, sender, receivedMs, attempts) values (?, ?, ?, ?, ?, ?, ?, ?, 0)',
      )
      .run(owner, name, path, head, body, address, sender, receivedMs)
    this.#add(webhook, 1, bytes)
    return 'kept'
  }

  #boundKnown(owner: string): void {
    const count = (this.#newKnown.get(owner) ?? 0) + 1
    this.#newKnown.set(owner, count)
    if (count * 10 < this.#maxKnown) return
    this.#newKnown.delete(owner)
    const oldest = 'select receivedMs from known where owner = ? order by receivedMs desc limit 1 offset ?'
    this.#database
      .query(`delete from known where owner = ? and receivedMs <= (${oldest})`)
      .run(owner, owner, this.#maxKnown)
  }

  #sumOf(sender: string, name: string, owner: string): Sum {
    const query = 'select requests, bytes from sums where sender = ? and name = ? and owner = ?'
    return this.#one<Sum>(query, sender, name, owner) ?? NOTHING
  }

  next(owner: string, name: string, exceptPaths: readonly string[]): KeptWebhook | undefined {
    const others = exceptPaths.map(() => '?').join(', ')
    const row = this.#database
      .query(
        `select id, owner, name, path, head, body, address, sender, receivedMs, attempts from webhooks
         where owner = ? and name = ? and path not in (${others}) order by id limit 1`,
      )
      .get(owner, name, ...exceptPaths)
    // The selected columns.
    return row === null ? undefined : { ...(row as KeptWebhook), key: undefined }
  }

  tried(id: number): void {
    this.#database.query('update webhooks set attempts = attempts + 1 where id = ?').run(id)
  }

  remove(id: number): void {
    this.#database.transaction(() => {
      const gone = this.#one<Sender & { readonly bytes: number }>(
        `delete from webhooks where id = ? returning sender, owner, name, length(body) + length(head) + ${ROW_BYTES} as bytes`,
        id,
      )
      if (gone !== undefined) this.#add(gone, -1, -gone.bytes)
    })()
  }

  waiting(limit: number): readonly Waiting[] {
    const query = 'select name, owner from webhooks group by name, owner order by min(id) limit ?'
    // The selected columns.
    return this.#database.query(query).all(limit) as Waiting[]
  }

  ownersOf(name: string): readonly string[] {
    const query = "select owner from sums where sender = '' and name = ? and requests > 0"
    // The selected column.
    return (this.#database.query(query).all(name) as { owner: string }[]).map(({ owner }) => owner)
  }

  hasChanged(): boolean {
    const version = this.#one<{ data_version: number }>('pragma data_version')?.data_version ?? 0
    const hasChanged = version !== this.#version
    this.#version = version
    return hasChanged
  }

  counts(): ReadonlyMap<string, number> {
    const query =
      "select name, sum(requests) as requests from sums where sender = '' and requests > 0 group by name"
    // The selected columns.
    const rows = this.#database.query(query).all() as { name: string; requests: number }[]
    return new Map(rows.map(({ name, requests }) => [name, requests]))
  }

  touch(names: readonly string[], nowMs: number): void {
    const update = this.#database.query('update boxes set seenMs = ? where name = ?')
    this.#database.transaction(() => {
      for (const name of names) update.run(nowMs, name)
    })()
  }

  prune(beforeMs: number): number {
    return this.#database.transaction(() => {
      const gone = this.#database.query('delete from webhooks where receivedMs < ?').run(beforeMs).changes
      this.#database.query('delete from known where receivedMs < ?').run(beforeMs)
      this.#database.query('delete from boxes where seenMs < ?').run(beforeMs)
      if (gone > 0) this.#database.run(SUMS)
      return gone
    })()
  }

  close(): void {
    this.#database.close()
  }

  /** Returns the first row, with the selected columns. */
  #one<Row>(query: string, ...values: (string | number)[]): Row | undefined {
    return (this.#database.query(query).get(...values) as Row | null) ?? undefined
  }

  #add({ sender, owner, name }: Sender, requests: number, bytes: number): void {
    for (const whose of new Set(['', sender]))
      this.#database
        .query(
          `insert into sums values (?, ?, ?, ?, ?) on conflict do update
           set requests = requests + excluded.requests, bytes = bytes + excluded.bytes`,
        )
        .run(whose, name, owner, requests, bytes)
    // There are many senders, so empty rows are removed.
    const empty = 'delete from sums where sender = ? and name = ? and owner = ? and requests = 0'
    if (requests < 0) this.#database.query(empty).run(sender, name, owner)
  }
}
