// Tokens in a SQLite file, which the server reads while a command writes.

import type { Database } from 'bun:sqlite'
import { messageOf, optionInvalid } from '../errors.ts'
import type { KeptToken, TokenScope, TokenStore } from '../tokens.ts'
import { openPrivateDatabase } from './private-database.ts'

const SCHEMA = `
  create table token (
    name text primary key, hash text not null unique, createdAtMs integer not null, expiresAtMs integer,
    lastUsedAtMs integer, scope text not null
  ) strict, without rowid;
`

interface Row {
  readonly name: string
  readonly hash: string
  readonly createdAtMs: number
  readonly expiresAtMs: number | null
  readonly lastUsedAtMs: number | null
  readonly scope: string
}

/** The tokens in one file with mode 0600. Throws `OPTION_INVALID` if the file cannot be used. */
export class SqliteTokens implements TokenStore {
  readonly #path: string
  readonly #database: Database

  constructor(path: string) {
    this.#path = path
    // A power cut undoes neither a token that was shown nor a revocation.
    this.#database = this.#attempt(() =>
      openPrivateDatabase(path, { version: 1, schema: SCHEMA, synchronous: 'full' }),
    )
  }

  list(): readonly KeptToken[] {
    const rows = this.#attempt(() => this.#database.query<Row, []>('select * from token order by name').all())
    return rows.map(({ expiresAtMs, lastUsedAtMs, scope, ...row }) => ({
      ...row,
      ...(expiresAtMs !== null && { expiresAtMs }),
      ...(lastUsedAtMs !== null && { lastUsedAtMs }),
      // Written by add(). The policy checks its content.
      scope: JSON.parse(scope) as TokenScope,
    }))
  }

  add({ name, hash, createdAtMs, expiresAtMs, scope }: KeptToken): boolean {
    return this.#change('insert or ignore into token values (?, ?, ?, ?, null, ?)', [
      name,
      hash,
      createdAtMs,
      expiresAtMs ?? null,
      JSON.stringify(scope),
    ])
  }

  rehash(name: string, hash: string): boolean {
    return this.#change('update token set hash = ? where name = ?', [hash, name])
  }

  remove(name: string): boolean {
    return this.#change('delete from token where name = ?', [name])
  }

  used(times: ReadonlyMap<string, number>): void {
    this.#attempt(() =>
      this.#database.transaction(() => {
        const update = this.#database.query('update token set lastUsedAtMs = ? where name = ?')
        for (const [name, atMs] of times) update.run(atMs, name)
      })(),
    )
  }

  version(): number {
    // SQLite's number for this connection, which counts the commits of others.
    const row = this.#attempt(() =>
      this.#database.query<{ data_version: number }, []>('pragma data_version').get(),
    )
    return row?.data_version ?? 0
  }

  /** Whether another connection has the file open, such as a server that follows it. The last call before `close`. */
  isShared(): boolean {
    this.#database.run('pragma busy_timeout = 0')
    try {
      // SQLite refuses to turn off the write-ahead log while another connection is open. The next `open` turns it on.
      this.#database.run('pragma journal_mode = delete')
      return false
    } catch {
      return true
    }
  }

  close(): void {
    this.#database.close()
  }

  #change(sql: string, values: (string | number | null)[]): boolean {
    return this.#attempt(() => this.#database.query(sql).run(...values).changes > 0)
  }

  #attempt<Value>(work: () => Value): Value {
    try {
      return work()
    } catch (cause) {
      throw optionInvalid(`The file of tokens ${this.#path} cannot be used: ${messageOf(cause)}.`, {
        cause,
      })
    }
  }
}
