// Links that work once and were used, in a SQLite file: they stay used when the server starts again.

import type { Database } from 'bun:sqlite'
import { TunnelError } from '../errors.ts'
import type { UsedLinks } from '../store.ts'
import { openPrivateDatabase } from './private-database.ts'

const SCHEMA = `
  create table if not exists used (id text primary key, untilMs integer not null) strict, without rowid;
  create index if not exists usedUntil on used (untilMs);
`
/** Above: links that work once are refused, until some of these would have expired. About 100 MB. */
const MAX_ROWS = 1_000_000

/** In one file, with mode 0600. Throws `OPTION_INVALID` when the file cannot be used. */
export class SqliteUsedLinks implements UsedLinks {
  readonly #database: Database
  readonly #maxRows: number

  constructor(path: string, maxRows: number = MAX_ROWS) {
    this.#maxRows = maxRows
    try {
      // A link that was used stays so after a power cut.
      this.#database = openPrivateDatabase(path, { version: 1, schema: SCHEMA, synchronous: 'full' })
    } catch (cause) {
      if (cause instanceof TunnelError) throw cause
      const reason = cause instanceof Error ? cause.message : String(cause)
      throw new TunnelError('OPTION_INVALID', `The file of used links ${path} cannot be used: ${reason}.`, {
        cause,
      })
    }
  }

  has(id: string): boolean {
    return (
      this.#database.query('select 1 from used where id = ? and untilMs > ?').get(id, Date.now()) !== null
    )
  }

  use(id: string, untilMs: number): boolean {
    return this.#database
      .transaction(() => {
        this.#database.query('delete from used where untilMs <= ?').run(Date.now())
        // The query always answers with one row.
        const { count } = this.#database.query('select count(*) as count from used').get() as {
          count: number
        }
        if (count >= this.#maxRows) return false
        return this.#database.query('insert or ignore into used values (?, ?)').run(id, untilMs).changes > 0
      })
      .immediate()
  }

  close(): void {
    this.#database.close()
  }
}
