// A SQLite file that only this user may read, and that several processes of the machine may share.

import type { Database } from 'bun:sqlite'
import { chmodSync, closeSync, mkdirSync, openSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import { TunnelError } from '../errors.ts'

/** The time to wait for another process: a write takes less than a millisecond, on a stalled disk seconds. */
const BUSY_MS = 5_000
/** Between two attempts at what SQLite itself does not wait for. */
const PAUSE_MS = 5

export interface Layout {
  /** Of `schema`; from 1. */
  readonly version: number
  /** Makes the tables of a new file. */
  readonly schema: string
  /**
   * `full`: what was written is there after a power cut. `normal`: after the end of the process only, unless the caller
   * asks for more.
   */
  readonly synchronous: 'full' | 'normal'
}

/** With mode 0600, in a folder of mode 0700 that is made; `:memory:` keeps nothing. Throws what SQLite says, and `RUNTIME_UNSUPPORTED` on Node. */
export function openPrivateDatabase(path: string, { version, schema, synchronous }: Layout): Database {
  if (typeof Bun === 'undefined') throw new TunnelError('RUNTIME_UNSUPPORTED')
  // Not an import: `localtunnels/tls` can be imported on Node, which has no such module.
  const { Database } = createRequire(import.meta.url)('bun:sqlite') as typeof import('bun:sqlite') // Bun's own, and its types
  if (path !== ':memory:') makePrivate(path)
  const database = new Database(path, { strict: true })
  try {
    database.run(`pragma busy_timeout = ${BUSY_MS}`)
    useWriteAheadLog(database)
    database.run(`pragma synchronous = ${synchronous}`)
    const prepare = database.transaction(() => {
      const found = versionOf(database)
      if (found > version) throw new Error('it was written by a newer version of localtunnels')
      if (found === 0) database.run(`${schema}; pragma user_version = ${version}`)
    })
    // Several workers may open a new file at once: one of them makes the tables.
    prepare.immediate()
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

/** SQLite gives its other two files (-wal, -shm) the mode of this one. */
function makePrivate(path: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  closeSync(openSync(path, 'a', 0o600))
  chmodSync(path, 0o600)
}

/** If two processes do this with a new file at the same time, SQLite refuses one at once, whatever `busy_timeout` is. */
function useWriteAheadLog(database: Database): void {
  const deadline = performance.now() + BUSY_MS
  for (;;)
    try {
      database.run('pragma journal_mode = wal')
      return
    } catch (error) {
      const isBusy = error instanceof Error && 'code' in error && error.code === 'SQLITE_BUSY'
      if (!isBusy || performance.now() > deadline) throw error
      Bun.sleepSync(PAUSE_MS)
    }
}

function versionOf(database: Database): number {
  // The pragma always responds with one row.
  const row = database.query('pragma user_version').get() as { user_version: number }
  return row.user_version
}
