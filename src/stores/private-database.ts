// A SQLite file that only this user may read, and that several processes of the machine may share.

import type { Database } from 'bun:sqlite'
import { chmodSync, closeSync, mkdirSync, openSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import { TunnelError } from '../errors.ts'

/** The longest wait in milliseconds for another process: a write takes less than a millisecond, and seconds on a stalled disk. */
const BUSY_MS = 5_000
/** The pause in milliseconds between attempts, where SQLite itself does not wait. */
const PAUSE_MS = 5

export interface Layout {
  /** The version of `schema`, from 1. */
  readonly version: number
  /** The SQL that makes the tables of a new file. */
  readonly schema: string
  /**
   * `full`: written data survives a power cut. `normal`: it only survives the end of the process, unless the caller
   * asks for more.
   */
  readonly synchronous: 'full' | 'normal'
}

/**
 * Opens a file with mode 0600, in a folder of mode 0700 that it makes; `:memory:` stores nothing. Throws SQLite's
 * error, and `RUNTIME_UNSUPPORTED` on Node.
 */
export function openPrivateDatabase(path: string, { version, schema, synchronous }: Layout): Database {
  if (typeof Bun === 'undefined') throw new TunnelError('RUNTIME_UNSUPPORTED')
  // An import would not do: `localtunnels/tls` can be imported on Node, which has no such module.
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
    // Several workers may open a new file at once; only one makes the tables.
    prepare.immediate()
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

/** Sets the mode, which SQLite also gives its other two files (-wal, -shm). */
function makePrivate(path: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  closeSync(openSync(path, 'a', 0o600))
  chmodSync(path, 0o600)
}

/**
 * Turns on the write-ahead log. If two processes do this with a new file at the same time, SQLite refuses one at
 * once, whatever `busy_timeout` is.
 */
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
  // The pragma always returns one row.
  const row = database.query('pragma user_version').get() as { user_version: number }
  return row.user_version
}
