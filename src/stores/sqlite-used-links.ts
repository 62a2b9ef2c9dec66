// The used links that work once, in a SQLite file: they stay used when the server starts again.

import type { Database } from 'bun:sqlite'
import { messageOf, optionInvalid, TunnelError } from '../errors.ts'
import type { UsedLinks } from '../store.ts'
import { openPrivateDatabase } from './private-database.ts'

const SCHEMA = `
  create table if not exists used (
    id text primary key, untilMs integer not null, owner text not null default ''
  ) strict, without rowid;
  create index if not exists usedUntil on used (untilMs);
  create index if not exists usedBy on used (owner);
`
/** The maximum number of rows, about 100 MB. If exceeded, links that work once are refused until some have expired. */
const MAX_ROWS = 1_000_000

/** The links in one file with mode 0600. Throws `OPTION_INVALID` if the file cannot be used. */
export class SqliteUsedLinks implements UsedLinks {
  readonly #database: Database
  readonly #maxRows: number

  constructor(path: string, maxRows: number = MAX_ROWS) {
    this.#maxRows = maxRows
    try {
      // A used link stays used after a power cut.
      this.#database = openPrivateDatabase(path, { version: 1, schema: SCHEMA, synchronous: 'full' })
    } catch (cause) {
      if (cause instanceof TunnelError) throw cause
      throw optionInvalid(`The file of used links ${path} cannot be used: ${messageOf(cause)}.`, { cause })
    }
  }

  has(id: string): boolean {
    return (
      this.#database.query('select 1 from used where id = ? and untilMs > ?').get(id, Date.now()) !== null
    )
  }

  use(id: string, untilMs: number, owner = ''): boolean {
    return this.#database
      .transaction(() => {
        this.#database.query('delete from used where untilMs <= ?').run(Date.now())
        const left = this.#maxRows - this.#count('select count(*) as count from used')
        const isCounted = owner !== '' && 2 * left <= this.#maxRows
        const own = isCounted ? this.#count('select count(*) as count from used where owner = ?', owner) : 0
        if (left - 1 < own) return false
        const insert = 'insert or ignore into used (id, untilMs, owner) values (?, ?, ?)'
        return this.#database.query(insert).run(id, untilMs, owner).changes > 0
      })
      .immediate()
  }

  #count(query: string, ...values: string[]): number {
    // The query always returns one row.
    return (this.#database.query(query).get(...values) as { count: number }).count
  }

  close(): void {
    this.#database.close()
  }
}
