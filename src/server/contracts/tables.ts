// Contract: a table that every server of a cluster has in memory. Implementation: parts/cluster/shared-table.ts.

import type { TableEntry } from '../../directory.ts'

/** Opens a table, before the tables are read. `maxKeys` is for all servers together and includes removed entries. */
export type OpenTable = (name: string, maxKeys: number) => Table

export interface Table {
  /** Returns a value. `undefined` if there is none, or its time is over. */
  get(key: string): string | undefined
  /** Whether the key exists, or existed on any server as far as this one knows. */
  knows(key: string): boolean
  all(): readonly TableEntry[]
  /** Calls `changed` after changes by other servers. Returns a function that ends this. */
  onChange(changed: () => void): () => void
  /** Sets a value, which applies here at once. `untilMs`: milliseconds since 1970; 0: until it is removed. */
  set(key: string, value: string, untilMs: number): void
  /** Removes an entry as if its time were over. The servers do not remember it as removed. */
  end(key: string): void
  remove(key: string): void
  /** Adds an entry from before this server joined the cluster. Later changes by other servers win over it. */
  bring(key: string, value: string, sinceMs: number, untilMs: number): void
}
