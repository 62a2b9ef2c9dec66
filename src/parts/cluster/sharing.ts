// The data that this server shares with the others of its cluster: one table for each kind.

import type { PartServer, WholeServer } from '../../server/contracts/part.ts'
import type { ServerReport, Shared, SharedTexts } from '../../server/contracts/servers.ts'
import type { TokenStore } from '../../tokens.ts'
import { Revocations } from './revocations.ts'
import { Roster } from './roster.ts'
import type { SharedTable } from './shared-table.ts'
import type { Tables } from './tables.ts'
import { SharedMarks } from './used-marks.ts'

/**
 * The maximum number of tokens ever revoked, of about 150 bytes. If exceeded: an `error` event, and each server only
 * knows its own.
 */
const MAX_REVOCATIONS = 100_000
/**
 * The maximum number of used links that worked once, until they would have expired, of about 200 bytes in each
 * server. If exceeded: such links are refused until some have expired.
 */
const MAX_MARKS = 100_000
/**
 * The maximum number of sessions that visitors have ended, until they would have expired, of about 150 bytes in each
 * server. If exceeded: an `error` event, and only the server where a visitor signs out knows.
 */
const MAX_SIGN_OUTS = 100_000

/** The maximum number of servers that report, including those that ended in the last minute. */
const MAX_SERVERS = 10_000

/** The maximum number of responses to checks of certificate authorities: one for each name being certified. */
const MAX_ANSWERS = 10_000

export class Sharing implements Shared {
  readonly #server: PartServer
  readonly #whole: WholeServer
  readonly #tables: Tables
  readonly #beginParts: () => void
  readonly #revocations: Revocations
  readonly #marks: SharedMarks
  readonly #roster: Roster
  readonly answers: Answers

  /** Shares the data of a server, before the tables are read. `node`: this server. `store`: of its tokens, if it keeps any. */
  constructor(
    node: string,
    tables: Tables,
    store: TokenStore | undefined,
    server: PartServer,
    whole: WholeServer,
  ) {
    this.#server = server
    this.#whole = whole
    this.#tables = tables
    this.#beginParts = server.parts.share((name, maxKeys) => tables.open(name, maxKeys))
    this.#revocations = new Revocations(tables.open('revocations', MAX_REVOCATIONS), {
      store,
      changed: () => whole.allowanceChanged(),
      failed: error => server.failed(error),
    })
    this.#marks = new SharedMarks(tables.open('used', MAX_MARKS), tables.open('ended', MAX_SIGN_OUTS))
    this.answers = new Answers(tables.open('answers', MAX_ANSWERS))
    this.#roster = new Roster(
      tables.open('servers', MAX_SERVERS),
      node,
      () => whole.stats(),
      () => server.parts.recent(),
    )
  }

  /** Called when the tables have the entries of the other servers. */
  begin(): void {
    this.#beginParts()
    this.#server.tunnels.guards.marks = this.#marks
    this.useInPolicy()
    this.#revocations.begin()
    this.#roster.begin()
    this.#whole.allowanceChanged()
  }

  /** Applies revocations to the policy of changed settings. */
  useInPolicy(): void {
    this.#server.settings.policy.revocations = this.#revocations
  }

  stop(): void {
    this.#revocations.stop()
    this.#roster.stop()
  }

  get count(): number {
    return this.#roster.count
  }

  get sizes(): ReadonlyMap<string, number> {
    return this.#tables.sizes()
  }

  reportOf(server: string): ServerReport | undefined {
    return this.#roster.reportOf(server)
  }

  tokensChanged(): void {
    this.#revocations.look(true)
  }
}

class Answers implements SharedTexts {
  readonly #table: SharedTable

  constructor(table: SharedTable) {
    this.#table = table
  }

  get(key: string): string | undefined {
    return this.#table.get(key)
  }

  async put(key: string, text: string, untilMs: number): Promise<void> {
    this.#table.set(key, text, untilMs)
    await this.#table.send()
  }

  remove(key: string): void {
    this.#table.end(key)
  }
}
