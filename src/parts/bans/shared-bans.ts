// The bans of all servers of a cluster, as entries of a shared table.

import { createHash } from 'node:crypto'
import { objectIn } from '../../directory.ts'
import { isNetwork } from '../../networks.ts'
import type { Ban } from '../../operations.ts'
import type { Table } from '../../server/contracts/tables.ts'

/** The range of ids: 12 digits, which an operator can read aloud. */
const IDS = 1_000_000_000_000

export class SharedBans {
  readonly #table: Table

  constructor(table: Table) {
    this.#table = table
  }

  onChange(changed: () => void): void {
    this.#table.onChange(changed)
  }

  all(): readonly Ban[] {
    return this.#table.all().flatMap(({ key, value, untilMs }) => banOf(Number(key), value, untilMs) ?? [])
  }

  /** Adds a ban. All servers give it the same id. */
  add(ban: Omit<Ban, 'id'>): number {
    const id = idOf(ban)
    this.#table.set(String(id), textOf(ban), ban.untilMs ?? 0)
    return id
  }

  /** Adds a ban of this server's last run, unless the other servers know it and may have removed it since. */
  bring(ban: Omit<Ban, 'id'>): void {
    this.#table.bring(String(idOf(ban)), textOf(ban), ban.sinceMs, ban.untilMs ?? 0)
  }

  remove(id: number): void {
    this.#table.remove(String(id))
  }
}

function idOf(ban: Omit<Ban, 'id'>): number {
  const hash = createHash('sha256').update(`${textOf(ban)} ${ban.untilMs ?? 0}`)
  return 1 + (hash.digest().readUIntBE(0, 6) % IDS)
}

function textOf({ kind, value, reason, sinceMs }: Omit<Ban, 'id'>): string {
  return JSON.stringify({ kind, value, reason, sinceMs })
}

/** Reads a ban. `undefined` if this server does not know its kind. */
function banOf(id: number, text: string, untilMs: number): Ban | undefined {
  const { kind, value, reason, sinceMs } = objectIn(text) ?? {}
  if (typeof value !== 'string' || typeof reason !== 'string' || typeof sinceMs !== 'number') return undefined
  if (!Number.isSafeInteger(id) || (kind !== 'tunnel' && (kind !== 'address' || !isNetwork(value))))
    return undefined
  return { id, kind, value, reason, sinceMs, ...(untilMs !== 0 && { untilMs }) }
}
