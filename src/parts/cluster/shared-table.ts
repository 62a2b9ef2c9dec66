// One table that all servers of a cluster have in memory.

import { randomBytes } from 'node:crypto'
import type { DirectoryTables, TableEntry } from '../../directory.ts'
import { errorOf } from '../../errors.ts'
import type { Table } from '../../server/contracts/tables.ts'

/** The time in milliseconds for which a removal is remembered: a server that was away for longer may bring the entry back. */
const REMOVED_MS = 90 * 86_400_000
/** The minimum time in milliseconds between counts of entries by owner. */
const COUNT_MS = 1_000

export class SharedTable implements Table {
  readonly #name: string
  readonly #maxKeys: number
  readonly #directory: DirectoryTables
  readonly #failed: (error: Error) => void
  readonly #entries = new Map<string, TableEntry>()
  /** Keys of entries that the directory may not have. */
  readonly #unsent = new Set<string>()
  readonly #listeners = new Set<() => void>()
  #sending: Promise<void> | undefined
  #highestVersion = 0
  /** Entries by owner, while there are many. */
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
   * Takes a key that each server may have taken: `true` for the first alone, until then; `false` as well where there is no room.
   * Rejects when the directory cannot be asked. `owner`: as that of `hasRoomFor`.
   */
  async take(key: string, untilMs: number, owner: string): Promise<boolean> {
    if (this.knows(key)) return false
    // All of the same version: the directory writes the first, and no other.
    const value = `${owner} ${randomBytes(6).toString('base64url')}`
    const entry = { key, value, version: 1, untilMs }
    const [outcome] = await this.#directory.put(this.#name, [entry], this.#maxKeys)
    if (outcome !== 'written') return false
    this.hear([entry])
    return true
  }

  /** Whether one more leaves as much room as this owner has. The first word of a value names the owner of the entry. */
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
    // A write that fails is tried again with the next heartbeat.
    this.send().catch(() => {})
  }

  /** Versions grow with the time; a server whose clock is behind goes on from what it has heard of. */
  #nextVersion(): number {
    this.#highestVersion = Math.max(this.#highestVersion + 1, Date.now())
    return this.#highestVersion
  }

  // ── With the directory ─────────────────────────────────────────────────────────────────────────────────────

  /** Takes over what another server has written. */
  hear(entries: readonly TableEntry[]): void {
    let hasChanged = false
    for (const entry of entries) {
      // This version would apply to all later entries.
      if (!Number.isSafeInteger(entry.version)) continue
      const own = this.#entries.get(entry.key)
      this.#highestVersion = Math.max(this.#highestVersion, entry.version)
      if (own !== undefined && own.version > entry.version) continue
      // If two entries have the same version, the directory took this one.
      this.#unsent.delete(entry.key)
      if (own !== undefined && own.version === entry.version && own.value === entry.value) continue
      this.#entries.set(entry.key, entry)
      hasChanged = true
    }
    if (hasChanged) this.#tell()
  }

  /** Entries come from a connection, which stays open whatever they cause. */
  #tell(): void {
    for (const changed of this.#listeners)
      try {
        changed()
      } catch (cause) {
        this.#failed(errorOf(cause))
      }
  }

  /** Takes over what the directory has, and gives it what it does not have. */
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

  /** Entries in memory, with those that were removed. */
  get size(): number {
    return this.#entries.size
  }

  /** Resolves when the directory has all. Rejects when it cannot be notified: then it is still to be notified. */
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
    // The entry may have changed again in the meantime.
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
