// The tables of a directory in memory, and the model with which the script of `redis-tables.ts` is compared.

import type { DirectoryTables, PutOutcome, TableEntry } from '../directory.ts'

type Heard = (table: string, entry: TableEntry, changes: number) => void

export class MemoryTables implements DirectoryTables {
  readonly #now: () => number
  readonly #heard = new Set<Heard>()
  readonly #tables = new Map<string, Map<string, TableEntry>>()
  #changes = 0

  /** Makes the tables. `now`: milliseconds since 1970. */
  constructor(now: () => number = Date.now) {
    this.#now = now
  }

  listen(heard: Heard): Promise<() => void> {
    this.#heard.add(heard)
    return Promise.resolve(() => void this.#heard.delete(heard))
  }

  put(name: string, entries: readonly TableEntry[], maxKeys: number): Promise<readonly PutOutcome[]> {
    const table = this.#tables.get(name) ?? new Map<string, TableEntry>()
    this.#tables.set(name, table)
    this.#forgetExpired(table)
    return Promise.resolve(
      entries.map(entry => {
        const before = table.get(entry.key)
        if (before !== undefined && before.version >= entry.version) return 'older'
        if (before === undefined && table.size >= maxKeys) return 'full'
        table.set(entry.key, entry)
        this.#changes++
        for (const heard of this.#heard) heard(name, entry, this.#changes)
        return 'written'
      }),
    )
  }

  read(name: string): Promise<readonly TableEntry[]> {
    return Promise.resolve([...(this.#tables.get(name)?.values() ?? [])])
  }

  changes(): Promise<number> {
    return Promise.resolve(this.#changes)
  }

  #forgetExpired(table: Map<string, TableEntry>): void {
    const now = this.#now()
    for (const { key, untilMs } of table.values()) if (untilMs !== 0 && untilMs <= now) table.delete(key)
  }
}
