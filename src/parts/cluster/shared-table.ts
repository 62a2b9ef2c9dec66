// One table that all servers of a cluster have in memory.

import { randomBytes } from 'node:crypto'
import type { DirectoryTables, TableEntry } from '../../directory.ts'
import { errorOf } from '../../errors.ts'
import type { Table } from '../../server/contracts/tables.ts'

/** The time in milliseconds for which a removal is remembered. A server that was away for longer may bring the entry back. */
const REMOVED_MS = 90 * 86_400_000
/** The minimum time in milliseconds between counts of entries by owner. */
const COUNT_MS = 1_000

export class SharedTable implements Table {
  readonly #name: string
  readonly #maxKeys: number
  readonly #directory: DirectoryTables
  readonly #failed: (error: Error) => void
  readonly #entries = new Map<string, TableEntry>()
  /** The keys of entries that the directory may not have. */
  readonly #unsent = new Set<string>()
  readonly #listeners = new Set<() => void>()
  #sending: Promise<void> | undefined
  #highestVersion = 0
  /** The number of entries by owner, while there are many. */
  #owned: ReadonlyMap<string, number> = new Map()
  #countedAt = Number.NEGATIVE_INFINITY

  constructor(name: string, maxKeys: number, directory: DirectoryTables, failed: (error: Error) => void) {
    this.#name = name
    this.#maxKeys = maxKeys
    this.#directory = directory
    this.#failed = failed
  }

  onChange(changed: () => void): () => void {
    this.#listeners.add(changed)
    return () => this.#listeners.delete(changed)
  }

  // ── What is there ──────────────────────────────────────────────────────────────────────────────────────────

  get(key: string): string | undefined {
    const entry = this.#entries.get(key)
    return entry !== undefined && isValid(entry) ? entry.value : undefined
  }

  knows(key: string): boolean {
    return this.#entries.has(key)
  }

  all(): readonly TableEntry[] {
    return [...this.#entries.values()].filter(isValid)
  }

  // ── Changes of this server ─────────────────────────────────────────────────────────────────────────────────

  set(key: string, value: string, untilMs: number): void {
    this.#write({ key, value, version: this.#nextVersion(), untilMs })
  }

  end(key: string): void {
    const value = this.get(key)
    if (value !== undefined) this.set(key, value, Date.now())
  }

  remove(key: string): void {
    if (this.get(key) !== undefined)
      this.#write({ key, value: '', version: this.#nextVersion(), untilMs: Date.now() + REMOVED_MS })
  }

  /**
   * Takes a key that only one server may take: resolves with `true` for the first, until `untilMs`; with `false` for
   * others, and if there is no room. Rejects if the directory cannot be asked. `owner` is as for `hasRoomFor`.
   */
  async take(key: string, untilMs: number, owner: string): Promise<boolean> {
    if (this.knows(key)) return false
    // All attempts have the same version, so the directory writes only the first.
    const value = `${owner} ${randomBytes(6).toString('base64url')}`
    const entry = { key, value, version: 1, untilMs }
    const [outcome] = await this.#directory.put(this.#name, [entry], this.#maxKeys)
    if (outcome !== 'written') return false
    this.hear([entry])
    return true
  }

  /** Whether one more entry leaves as much room as this owner has. The first word of a value names the owner of the entry. */
  hasRoomFor(owner: string): boolean {
    const { size } = this.#entries
    if (2 * size < this.#maxKeys) return true
    const now = performance.now()
    if (now - this.#countedAt >= COUNT_MS) {
      this.#countedAt = now
      const owned = new Map<string, number>()
      for (const { value } of this.#entries.values()) {
        const [whose = ''] = value.split(' ', 1)
        owned.set(whose, (owned.get(whose) ?? 0) + 1)
      }
      this.#owned = owned
    }
    return (this.#owned.get(owner) ?? 0) < this.#maxKeys - size
  }

  bring(key: string, value: string, sinceMs: number, untilMs: number): void {
    if (!this.knows(key)) this.#write({ key, value, version: sinceMs, untilMs })
  }

  #write(entry: TableEntry): void {
    this.#entries.set(entry.key, entry)
    this.#unsent.add(entry.key)
    // A failed write is repeated with the next heartbeat.
    this.send().catch(() => {})
  }

  /** Returns a version that grows with the time, and is above all known ones, for a server whose clock is behind. */
  #nextVersion(): number {
    this.#highestVersion = Math.max(this.#highestVersion + 1, Date.now())
    return this.#highestVersion
  }

  // ── With the directory ─────────────────────────────────────────────────────────────────────────────────────

  /** Takes entries that another server has written. */
  hear(entries: readonly TableEntry[]): void {
    let hasChanged = false
    for (const entry of entries) {
      // Otherwise this version would be the base of all later ones.
      if (!Number.isSafeInteger(entry.version)) continue
      const own = this.#entries.get(entry.key)
      this.#highestVersion = Math.max(this.#highestVersion, entry.version)
      if (own !== undefined && own.version > entry.version) continue
      // If two entries have the same version, the directory accepted this one.
      this.#unsent.delete(entry.key)
      if (own !== undefined && own.version === entry.version && own.value === entry.value) continue
      this.#entries.set(entry.key, entry)
      hasChanged = true
    }
    if (hasChanged) this.#tell()
  }

  /** Calls the listeners. Their errors must not close the connection from which entries come. */
  #tell(): void {
    for (const changed of this.#listeners)
      try {
        changed()
      } catch (cause) {
        this.#failed(errorOf(cause))
      }
  }

  /** Reads the directory's entries, and writes those that it does not have. */
  async read(): Promise<void> {
    const there = await this.#directory.read(this.#name)
    this.hear(there)
    const versions = new Map(there.map(({ key, version }) => [key, version]))
    this.forgetExpired()
    for (const { key, version } of this.#entries.values())
      if (version > (versions.get(key) ?? -1)) this.#unsent.add(key)
    await this.send()
  }

  forgetExpired(): void {
    const now = Date.now()
    for (const { key, untilMs } of this.#entries.values())
      if (untilMs !== 0 && untilMs <= now && !this.#unsent.has(key)) this.#entries.delete(key)
  }

  /** The number of entries in memory, including removed ones. */
  get size(): number {
    return this.#entries.size
  }

  /** Resolves when the directory has all entries. Rejects if it cannot be reached; the entries are then sent later. */
  send(): Promise<void> {
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined
    })
    return this.#sending
  }

  async #sendAll(): Promise<void> {
    while (this.#unsent.size > 0) await this.#sendOnce()
  }

  async #sendOnce(): Promise<void> {
    const entries = [...this.#unsent].flatMap(key => this.#entries.get(key) ?? [])
    const outcomes = await this.#directory.put(this.#name, entries, this.#maxKeys)
    // The entry may have changed again since.
    for (const { key, version } of entries)
      if (this.#entries.get(key)?.version === version) this.#unsent.delete(key)
    for (const key of this.#unsent) if (!this.#entries.has(key)) this.#unsent.delete(key)
    if (outcomes.includes('full'))
      this.#failed(new Error(`The table ${this.#name} of the cluster has ${this.#maxKeys} entries already.`))
  }
}

function isValid({ value, untilMs }: TableEntry): boolean {
  return value !== '' && (untilMs === 0 || untilMs > Date.now())
}
