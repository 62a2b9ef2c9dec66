// Certificates in a SQLite file: the account, certificates, orders in progress, failures. It contains private keys.

import type { Database } from 'bun:sqlite'
import { messageOf, TunnelError } from '../errors.ts'
import type {
  CertificateStore,
  OrderLimits,
  StoredAccount,
  StoredCertificate,
  StoredOrder,
  StoredRefusal,
} from '../store.ts'
import { openPrivateDatabase } from './private-database.ts'

const SCHEMA = `
  create table account (authority text primary key, url text not null, key text not null) strict, without rowid;
  create table certificate (
    authority text not null, id text not null, names text not null, cert text not null, key text not null,
    notAfterMs integer not null, renewAtMs integer not null, lookAtMs integer not null,
    windowStartMs integer, windowEndMs integer, primary key (authority, id)
  ) strict, without rowid;
  create index certificateLookAt on certificate (authority, lookAtMs);
  create table "order" (
    authority text not null, id text not null, names text not null, url text not null, key text not null,
    startedAtMs integer not null, primary key (authority, id)
  ) strict, without rowid;
  create table refusal (
    authority text not null, id text not null, failures integer not null, untilMs integer not null,
    code text not null, message text not null, primary key (authority, id)
  ) strict, without rowid;
  create table admitted (authority text not null, id text not null, atMs integer not null) strict;
  create index admittedAt on admitted (authority, atMs);
  create table claim (
    authority text not null, id text not null, holder text not null, untilMs integer not null,
    primary key (authority, id)
  ) strict, without rowid;
`

type CertificateRow = Omit<StoredCertificate, 'names' | 'window'> & {
  readonly names: string
  readonly windowStartMs: number | null
  readonly windowEndMs: number | null
}
type OrderRow = Omit<StoredOrder, 'names'> & { readonly names: string }
type Value = string | number | null

/**
 * A `CertificateStore` in one SQLite file, which several processes of one machine may share.
 *
 * The file is made with mode 0600, its folder with 0700; a file that others may read is closed to them. Each write
 * waits for the disk (about 0.6 ms): a certificate that was counted by the authority must not be lost.
 */
export class SqliteCertificates implements CertificateStore {
  readonly #database: Database
  readonly #authority: string
  readonly #path: string

  /**
   * Opens the file. `authority`: the URL of its directory. Certificates of other authorities stay in the file and are ignored.
   */
  constructor(path: string, authority: string) {
    this.#path = path
    this.#authority = authority
    this.#database = this.#attempt(() =>
      openPrivateDatabase(path, { version: 1, schema: SCHEMA, synchronous: 'full' }),
    )
  }

  async account(): Promise<StoredAccount | undefined> {
    return this.#row<StoredAccount>('select url, key from account where authority = ?')
  }

  async saveAccount({ url, key }: StoredAccount): Promise<void> {
    this.#run('insert or replace into account values (?, ?, ?)', url, key)
  }

  async removeAccount(): Promise<void> {
    this.#run('delete from account where authority = ?')
  }

  async certificate(id: string): Promise<StoredCertificate | undefined> {
    const row = this.#row<CertificateRow>('select * from certificate where authority = ? and id = ?', id)
    return row && certificateOf(row)
  }

  async saveCertificate(certificate: StoredCertificate): Promise<void> {
    const { id, names, cert, key, notAfterMs, renewAtMs, lookAtMs, window } = certificate
    const times = [notAfterMs, renewAtMs, lookAtMs, window?.startMs ?? null, window?.endMs ?? null]
    this.#transaction(() => {
      const list = JSON.stringify(names)
      this.#run(
        'insert or replace into certificate values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
        id,
        list,
        cert,
        key,
        ...times,
      )
      this.#run('delete from "order" where authority = ? and id = ?', id)
      this.#run('delete from refusal where authority = ? and id = ?', id)
    })
  }

  async reschedule(
    id: string,
    { renewAtMs, lookAtMs, window }: Pick<StoredCertificate, 'renewAtMs' | 'lookAtMs' | 'window'>,
  ): Promise<void> {
    const sql = `update certificate set renewAtMs = ?3, lookAtMs = ?4, windowStartMs = ?5, windowEndMs = ?6
      where authority = ?1 and id = ?2`
    this.#run(sql, id, renewAtMs, lookAtMs, window?.startMs ?? null, window?.endMs ?? null)
  }

  async removeCertificate(id: string): Promise<void> {
    this.#run('delete from certificate where authority = ? and id = ?', id)
  }

  async dueCertificates(nowMs: number, limit: number): Promise<readonly string[]> {
    const sql = 'select id from certificate where authority = ? and lookAtMs <= ? order by lookAtMs limit ?'
    return this.#rows<{ id: string }>(sql, nowMs, limit).map(({ id }) => id)
  }

  async nextLookAtMs(): Promise<number | undefined> {
    const sql = 'select min(lookAtMs) as next from certificate where authority = ?'
    return this.#row<{ next: number | null }>(sql)?.next ?? undefined
  }

  async order(id: string): Promise<StoredOrder | undefined> {
    const row = this.#row<OrderRow>('select * from "order" where authority = ? and id = ?', id)
    return row && orderOf(row)
  }

  async orders(limit: number): Promise<readonly StoredOrder[]> {
    const sql = 'select * from "order" where authority = ? order by startedAtMs limit ?'
    return this.#rows<OrderRow>(sql, limit).map(orderOf)
  }

  async saveOrder({ id, names, url, key, startedAtMs }: StoredOrder): Promise<void> {
    const sql = 'insert or replace into "order" values (?, ?, ?, ?, ?, ?)'
    this.#run(sql, id, JSON.stringify(names), url, key, startedAtMs)
  }

  async removeOrder(id: string): Promise<void> {
    this.#run('delete from "order" where authority = ? and id = ?', id)
  }

  async refusal(id: string): Promise<StoredRefusal | undefined> {
    const sql = 'select id, failures, untilMs, code, message from refusal where authority = ? and id = ?'
    return this.#row<StoredRefusal>(sql, id)
  }

  async saveRefusal({ id, failures, untilMs, code, message }: StoredRefusal): Promise<void> {
    const sql = 'insert or replace into refusal values (?, ?, ?, ?, ?, ?)'
    this.#run(sql, id, failures, untilMs, code, message)
  }

  async removeRefusal(id: string): Promise<void> {
    this.#run('delete from refusal where authority = ? and id = ?', id)
  }

  async prune(beforeMs: number): Promise<void> {
    this.#transaction(() => {
      this.#run('delete from "order" where authority = ? and startedAtMs < ?', beforeMs)
      this.#run('delete from refusal where authority = ? and untilMs < ?', beforeMs)
      this.#run('delete from claim where authority = ? and untilMs < ?', beforeMs)
    })
  }

  async admitOrder(id: string, nowMs: number, limits: OrderLimits): Promise<number | undefined> {
    return this.#transaction(() => {
      const oldest = nowMs - Math.max(limits.perNameMs, limits.totalMs)
      this.#run('delete from admitted where authority = ? and atMs <= ?', oldest)
      const times = [
        this.#freeAt('and id = ?3', limits.perName, limits.perNameMs, nowMs, id),
        this.#freeAt('', limits.total, limits.totalMs, nowMs),
      ].filter(time => time !== undefined)
      if (times.length > 0) return Math.max(...times)
      this.#run('insert into admitted values (?, ?, ?)', id, nowMs)
      return undefined
    })
  }

  async claim(id: string, holder: string, nowMs: number, untilMs: number): Promise<boolean> {
    const sql = `insert into claim values (?1, ?2, ?3, ?5)
      on conflict do update set holder = ?3, untilMs = ?5 where holder = ?3 or untilMs <= ?4
      returning holder`
    return this.#row(sql, id, holder, nowMs, untilMs) !== undefined
  }

  async release(id: string, holder: string): Promise<void> {
    this.#run('delete from claim where authority = ? and id = ? and holder = ?', id, holder)
  }

  async close(): Promise<void> {
    this.#attempt(() => this.#database.close())
  }

  /** Returns when one more is allowed; `undefined` for now. All but `limit` - 1 of the last ones must have left the window. */
  #freeAt(
    condition: string,
    limit: number,
    windowMs: number,
    nowMs: number,
    ...id: string[]
  ): number | undefined {
    if (limit === 0) return undefined
    const sql = `select atMs from admitted where authority = ?1 and atMs > ?2 ${condition}
      order by atMs desc limit 1 offset ${limit - 1}`
    const row = this.#row<{ atMs: number }>(sql, nowMs - windowMs, ...id)
    return row && row.atMs + windowMs
  }

  #run(sql: string, ...values: Value[]): void {
    this.#attempt(() => this.#database.query(sql).run(this.#authority, ...values))
  }

  // The caller names the columns that its SQL selects.
  #row<Row>(sql: string, ...values: Value[]): Row | undefined {
    return (
      this.#attempt(() => this.#database.query(sql).get(this.#authority, ...values) as Row | null) ??
      undefined
    )
  }

  #rows<Row>(sql: string, ...values: Value[]): readonly Row[] {
    return this.#attempt(() => this.#database.query(sql).all(this.#authority, ...values) as Row[])
  }

  /** Runs an immediate transaction: one that reads first and writes later would fail if another process wrote in between. */
  #transaction<Result>(body: () => Result): Result {
    return this.#attempt(() => this.#database.transaction(body).immediate())
  }

  #attempt<Result>(body: () => Result): Result {
    try {
      return body()
    } catch (cause) {
      if (cause instanceof TunnelError) throw cause
      throw new TunnelError('STORE_FAILED', `${this.#path} cannot be used: ${messageOf(cause)}.`, { cause })
    }
  }
}

// Written by saveCertificate and saveOrder: lists of strings.
const namesOf = (json: string): readonly string[] => JSON.parse(json) as string[]

function certificateOf(row: CertificateRow): StoredCertificate {
  const { id, cert, key, notAfterMs, renewAtMs, lookAtMs, windowStartMs, windowEndMs } = row
  const certificate = { id, names: namesOf(row.names), cert, key, notAfterMs, renewAtMs, lookAtMs }
  if (windowStartMs === null || windowEndMs === null) return certificate
  return { ...certificate, window: { startMs: windowStartMs, endMs: windowEndMs } }
}

function orderOf({ id, names, url, key, startedAtMs }: OrderRow): StoredOrder {
  return { id, names: namesOf(names), url, key, startedAtMs }
}
