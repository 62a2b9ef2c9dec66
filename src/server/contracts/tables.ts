// Contract: a table that all servers of a cluster have in memory. Implementation: parts/cluster/shared-table.ts.

import type { TableEntry } from '../../directory.ts'

/** Opens a table, before the tables are read. `maxKeys`: of all servers together, with those that were removed. */
export type OpenTable = (name: string, maxKeys: number) => Table

export interface Table {
  /** Returns a value. `undefined` if there is none, or no longer. */
  get(key: string): string | undefined
  /** Whether a server is known to have had the key. */
  knows(key: string): boolean
  all(): readonly TableEntry[]
  /** Calls `changed` after other servers have changed something. Returns what stops that. */
  onChange(changed: () => void): () => void
  /** Sets a value, in force here at once. `untilMs`: milliseconds since 1970; 0: until it is removed. */
  set(key: string, value: string, untilMs: number): void
  /** Ends an entry as if its time had come. No server remembers it. */
  end(key: string): void
  remove(key: string): void
  /** An entry of before this server was in the cluster: it stands back behind all that others have done since. */
  bring(key: string, value: string, sinceMs: number, untilMs: number): void
}
