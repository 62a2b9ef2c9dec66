// Stores completed entries in a SQLite file, so that they outlive the process. Only one process may have the file.

import { chmodSync, closeSync, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { messageOf, TunnelError } from '../../errors.ts'
import { Entry, KeptBytes } from './entry.ts'
import type { ExchangeStore } from './store.ts'

/** The time in milliseconds for which changes are collected before one transaction. A crash loses at most that much. */
const GATHER_MS = 200
/** The version of the table: a file with another version is not read. */
const VERSION = 1

/** The fields of an entry that are neither bytes nor marks. */
const PLAIN = [
  'kind',
  'state',
  'method',
  'path',
  'host',
  'status',
  'reason',
  'code',
  'fault',
  'isRefused',
  'isProbe',
  'visitor',
  'waitingMs',
  'droppedFrames',
  'framesTotalBytes',
  'framesKeptBytes',
  'websocket',
  'bytesIn',
  'bytesOut',
  'replayOf',
  'isPinned',
  'note',
  'verified',
  'event',
  'isIncomplete',
  'startedAt',
] as const
const MARKS = ['requestEndMark', 'responseStartMark', 'endMark'] as const
const BYTES = ['requestHead', 'responseHead', 'requestTrailers', 'responseTrailers'] as const
const BODIES = ['requestBody', 'responseBody'] as const

/** The used part of a statement of `node:sqlite`. */
interface Statement {
  run(...values: readonly (string | number | Uint8Array)[]): unknown
  all(): unknown[]
}
interface Database {
  exec(sql: string): void
  prepare(sql: string): Statement
  close(): void
}

export class StoreFile {
  readonly #database: Database
  readonly #failed: (error: TunnelError) => void
  readonly #changed = new Set<Entry>()
  readonly #removed = new Set<number>()
  readonly #stops: readonly (() => void)[]
  #timer: ReturnType<typeof setTimeout> | undefined
  #isOver = false

  private constructor(database: Database, store: ExchangeStore, failed: (error: TunnelError) => void) {
    this.#database = database
    this.#failed = failed
    this.#stops = [
      store.on('changed', entry => {
        if (entry.state !== 'open') this.#plan(() => this.#changed.add(entry))
      }),
      store.on('removed', entries =>
        this.#plan(() => {
          for (const entry of entries) {
            this.#changed.delete(entry)
            this.#removed.add(entry.id)
          }
        }),
      ),
    ]
  }

  /** Opens the file and adds its entries to the store. Rejects with `STORE_FAILED`. */
  static async open(
    path: string,
    store: ExchangeStore,
    failed: (error: TunnelError) => void,
  ): Promise<StoreFile> {
    const sqlite = await import('node:sqlite').catch((cause: unknown) => {
      const text = 'inspect.store needs the SQLite of the runtime, which Node has from 22.13 on.'
      throw new TunnelError('STORE_FAILED', text, { cause })
    })
    let database: Database | undefined
    try {
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
      closeSync(openSync(path, 'a', 0o600))
      chmodSync(path, 0o600)
      // The interface above is the used part; the original types name more kinds of values.
      database = new sqlite.DatabaseSync(path) as unknown as Database
      // Only this process uses the file, and no other file is left next to it.
      database.exec(
        'pragma locking_mode = exclusive; pragma journal_mode = delete; pragma auto_vacuum = full',
      )
      database.exec('begin exclusive')
      read(database, store)
      database.exec('commit')
      return new StoreFile(database, store, failed)
    } catch (cause) {
      database?.close()
      throw fault(path, cause)
    }
  }

  #plan(note: () => void): void {
    note()
    this.#timer ??= setTimeout(() => this.#write(), GATHER_MS)
  }

  #write(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#isOver || this.#changed.size + this.#removed.size === 0) return
    try {
      this.#database.exec('begin')
      const remove = this.#database.prepare('delete from exchange where id = ?')
      for (const id of this.#removed) remove.run(id)
      const names = ['id', 'about', 'frames', ...BYTES, 'interim', ...BODIES]
      const put = this.#database.prepare(
        `insert or replace into exchange (${names.join()}) values (${names.map(() => '?').join()})`,
      )
      for (const entry of this.#changed) put.run(...rowOf(entry))
      // Ids are never reused, even if their entries are gone.
      const last = Math.max(0, ...[...this.#changed].map(({ id }) => id), ...this.#removed)
      this.#database.prepare('update counter set last = max(last, ?)').run(last)
      this.#database.exec('commit')
      this.#changed.clear()
      this.#removed.clear()
    } catch (cause) {
      this.#stop()
      this.#failed(fault('', cause))
    }
  }

  close(): void {
    this.#write()
    this.#stop()
  }

  #stop(): void {
    if (this.#isOver) return
    this.#isOver = true
    for (const stop of this.#stops) stop()
    clearTimeout(this.#timer)
    this.#timer = undefined
    try {
      this.#database.close()
    } catch {
      // The file is closed or cannot be closed: nothing more is written.
    }
  }
}

function fault(path: string, cause: unknown): TunnelError {
  const why = messageOf(cause)
  const isLocked = /locked|busy/i.test(why)
  const text = isLocked
    ? `${path} is in use by another session: give each a file of its own.`
    : `${path} ${why}`
  return new TunnelError('STORE_FAILED', text.trim(), { cause })
}

function read(database: Database, store: ExchangeStore): void {
  const [{ user_version: version } = { user_version: 0 }] = database.prepare('pragma user_version').all() as {
    user_version: number
  }[] // the form of SQLite's rows
  if (version !== 0 && version !== VERSION) throw new Error('was written by another version of localtunnels')
  if (version === 0 && database.prepare('select name from sqlite_master').all().length > 0)
    throw new Error('holds something else')
  database.exec(`
    create table if not exists exchange (
      id integer primary key, about text, frames text, ${BYTES.map(name => `${name} blob`).join()}, interim text,
      ${BODIES.map(name => `${name} blob`).join()});
    create table if not exists counter (last integer);
    insert into counter select 0 where not exists (select 1 from counter);
    pragma user_version = ${VERSION}
  `)
  const [{ last } = { last: 0 }] = database.prepare('select last from counter').all() as { last: number }[] // one row
  // The store drops entries above its limits, the oldest first; then they are removed here.
  const dropped: number[] = []
  const stop = store.on('removed', entries => dropped.push(...entries.map(({ id }) => id)))
  // The rows have the form in which this file writes them.
  for (const row of database.prepare('select * from exchange order by id').all() as Row[])
    store.restore(entryOf(row))
  stop()
  const remove = database.prepare('delete from exchange where id = ?')
  for (const id of dropped) remove.run(id)
  store.skipIds(last)
}

type Row = Readonly<
  Record<'about' | 'frames' | 'interim', string> &
    Record<(typeof BYTES)[number] | (typeof BODIES)[number], Uint8Array> &
    Record<'id', number>
>

function rowOf(entry: Entry): (string | number | Uint8Array)[] {
  const about = {
    place: {
      tunnel: entry.place.tunnel,
      service: entry.place.service,
      ...(entry.place.isHttp2 === true && { isHttp2: true }),
    },
    plain: Object.fromEntries(PLAIN.map(name => [name, entry[name]])),
    // These times are on a clock that begins again with each process.
    marks: MARKS.map(name => (entry[name] === undefined ? null : entry[name] - entry.startMark)),
    bodies: BODIES.map(name => [entry[name].totalBytes, entry[name].isComplete]),
    memoryBytes: entry.memoryBytes,
  }
  return [
    entry.id,
    JSON.stringify(about),
    JSON.stringify(entry.frames),
    ...BYTES.map(name => entry[name]),
    JSON.stringify(entry.interim.map(head => Buffer.from(head).toString('base64'))),
    ...BODIES.map(name => entry[name].bytes),
  ]
}

function entryOf(row: Row): Entry {
  const { place, plain, marks, bodies, memoryBytes } = JSON.parse(row.about) as {
    place: Entry['place']
    plain: Partial<Entry>
    marks: (number | null)[]
    bodies: [number, boolean][]
    memoryBytes: number
  } // the form that rowOf writes
  const startMark = performance.now() - (Date.now() - (plain.startedAt ?? 0))
  const entry = new Entry(row.id, plain.kind ?? 'http', place, startMark)
  Object.assign(entry, plain)
  for (const [index, name] of MARKS.entries()) {
    const mark = marks[index]
    if (typeof mark === 'number') entry[name] = startMark + mark
  }
  for (const name of BYTES) entry[name] = new Uint8Array(row[name])
  for (const [index, name] of BODIES.entries()) {
    const [totalBytes = 0, isComplete = false] = bodies[index] ?? []
    entry[name] = KeptBytes.of(new Uint8Array(row[name]), totalBytes, isComplete)
  }
  entry.interim.push(
    ...(JSON.parse(row.interim) as string[]).map(text => new Uint8Array(Buffer.from(text, 'base64'))),
  ) // the form that rowOf writes
  entry.frames = JSON.parse(row.frames)
  entry.memoryBytes = memoryBytes
  return entry
}
