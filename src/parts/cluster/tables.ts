// The directory's tables in this server's memory. A change applies here at once, and at other servers when they
// receive it. While the directory is away, changes wait; missed ones are found by reading it again.

import type { DirectoryTables } from '../../directory.ts'
import { SharedTable } from './shared-table.ts'

/** The time in milliseconds between searches for expired entries. */
const FORGET_MS = 60_000

export class Tables {
  readonly #directory: DirectoryTables
  readonly #failed: (error: Error) => void
  readonly #tables = new Map<string, SharedTable>()
  /** The number of writes to the directory that this server knows of. */
  #heard = 0
  /** The number of writes in the directory at the last check. */
  #said = 0
  #isStale = false
  #forgotAt = performance.now()
  #stopListening: (() => void) | undefined

  constructor(directory: DirectoryTables, failed: (error: Error) => void) {
    this.#directory = directory
    this.#failed = failed
  }

  /** Opens a table, before `start`. `maxKeys` is for all servers together, including removed entries. */
  open(name: string, maxKeys: number): SharedTable {
    const table = new SharedTable(name, maxKeys, this.#directory, this.#failed)
    this.#tables.set(name, table)
    return table
  }

  /** Resolves when every table has the directory's entries. */
  async start(): Promise<void> {
    this.#stopListening = await this.#directory.listen((name, entry, changes) => {
      if (changes > this.#heard + 1) this.#isStale = true
      this.#heard = Math.max(this.#heard, changes)
      this.#tables.get(name)?.hear([entry])
    })
    await this.#read()
  }

  /** Called when changes may have been missed. */
  doubt(): void {
    this.#isStale = true
  }

  /**
   * Called with each heartbeat. Changes that the directory had counted at the last check and that did not arrive
   * since were missed. A directory with a lower count has lost its data.
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
