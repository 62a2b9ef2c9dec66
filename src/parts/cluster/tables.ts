// The tables of the directory as this server has them in memory. A change is in force here at once, and at the other servers when
// they hear of it; what the directory could not be notified waits until it responds. Whatever was missed is found by reading again.

import type { DirectoryTables } from '../../directory.ts'
import { SharedTable } from './shared-table.ts'

/** The time in milliseconds between searches for expired entries. */
const FORGET_MS = 60_000

export class Tables {
  readonly #directory: DirectoryTables
  readonly #failed: (error: Error) => void
  readonly #tables = new Map<string, SharedTable>()
  /** The number of entries that the directory has written, as far as this server knows. */
  #heard = 0
  /** The same, as the directory said at the last look. */
  #said = 0
  #isStale = false
  #forgotAt = performance.now()
  #stopListening: (() => void) | undefined

  constructor(directory: DirectoryTables, failed: (error: Error) => void) {
    this.#directory = directory
    this.#failed = failed
  }

  /** Opens a table, before `start`. `maxKeys`: of all servers together, with those that were removed. */
  open(name: string, maxKeys: number): SharedTable {
    const table = new SharedTable(name, maxKeys, this.#directory, this.#failed)
    this.#tables.set(name, table)
    return table
  }

  /** Resolves when every table has what the directory has. */
  async start(): Promise<void> {
    this.#stopListening = await this.#directory.listen((name, entry, changes) => {
      if (changes > this.#heard + 1) this.#isStale = true
      this.#heard = Math.max(this.#heard, changes)
      this.#tables.get(name)?.hear([entry])
    })
    await this.#read()
  }

  /** Changes may have been missed. */
  doubt(): void {
    this.#isStale = true
  }

  /**
   * Called with each sign of life. Changes that the directory had counted at the last look, and that were not heard of since, were
   * missed. A directory that has counted fewer has lost its data.
   */
  async look(): Promise<void> {
    const heard = this.#heard
    const said = await this.#directory.changes()
    if (this.#isStale || said < heard || this.#heard < this.#said) await this.#read()
    this.#said = said
    for (const table of this.#tables.values()) await table.send()
    if (performance.now() - this.#forgotAt < FORGET_MS) return
    this.#forgotAt = performance.now()
    for (const table of this.#tables.values()) table.forgetExpired()
  }

  sizes(): ReadonlyMap<string, number> {
    return new Map([...this.#tables].map(([name, { size }]) => [name, size]))
  }

  stop(): void {
    this.#stopListening?.()
  }

  async #read(): Promise<void> {
    this.#isStale = false
    try {
      const said = await this.#directory.changes()
      this.#heard = said
      this.#said = said
      for (const table of this.#tables.values()) await table.read()
    } catch (error) {
      this.#isStale = true
      throw error
    }
  }
}
