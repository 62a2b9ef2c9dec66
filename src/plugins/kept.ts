// Open connections and responses that a guard admitted: they end with their permission.

import type { Admittance } from '../plugin.ts'
import type { Way } from './way.ts'

/** The reason why a visitor was admitted, so that another guard of the tunnel can decide whether it may stay. */
export interface Permission {
  /** The visitor, for the access rules. Without the head, which is valid only while the guard is asked. */
  readonly visitor: Admittance
  /** The path of a request. `undefined` for raw bytes. */
  readonly path: string | undefined
  /** The sign-in method. `undefined` if the path needs none. */
  readonly way: Pick<Way, 'kind' | 'mark'> | undefined
  /** The ids of the session and the link: if one of them ends, the permission ends. */
  readonly ids: readonly string[]
  /** The time when it ends, in milliseconds since 1970. `undefined` for never. */
  readonly endsAt: number | undefined
}

/** Sessions and links that may end on another server. */
export interface EndsElsewhere {
  hasEnded(id: string): boolean
  /** Calls `changed` after such an end. Returns a function that stops this. */
  onEnd(changed: () => void): () => void
}

interface Entry {
  permission: Permission
  readonly cut: () => void
  kept: Kept
}

/** The longest time of a timer in JavaScript. */
const MAX_TIMER_MS = 2_147_483_647

/** The open requests and connections that a guard admitted, whose number the server limits. */
export class Kept {
  readonly #all = new Set<Entry>()
  /** The entries by id of their session or link. */
  readonly #byId = new Map<string, Set<Entry>>()
  /** The timer of the entry that ends first: one timer serves all. */
  #timer: ReturnType<typeof setTimeout> | undefined
  #nextAt = Number.POSITIVE_INFINITY
  readonly #elsewhere: EndsElsewhere | undefined
  /** Ends the subscription that lasts while an entry may end on another server. */
  #stopListening: (() => void) | undefined

  /** Makes a collection. `elsewhere` reports sessions that ended on other servers. `undefined` if there are none. */
  constructor(elsewhere?: EndsElsewhere) {
    this.#elsewhere = elsewhere
  }

  get size(): number {
    return this.#all.size
  }

  /** Calls `cut` when the permission ends. Returns the function to call at the end of the connection. */
  keep(permission: Permission, cut: () => void): () => void {
    const entry: Entry = { permission, cut, kept: this }
    this.#add(entry)
    return () => entry.kept.#remove(entry)
  }

  /** Cuts the visits of this session or link. */
  end(id: string): void {
    this.#cut(this.#byId.get(id) ?? [])
  }

  /** Moves the entries to another guard's collection. Entries that `renew` accepts stay; the others are cut. */
  handTo(next: Kept | undefined, renew: (permission: Permission) => Permission | undefined): void {
    const leaving: Entry[] = []
    for (const entry of [...this.#all]) {
      const renewed = next && renew(entry.permission)
      if (next === undefined || renewed === undefined) {
        leaving.push(entry)
        continue
      }
      this.#remove(entry)
      entry.permission = renewed
      entry.kept = next
      next.#add(entry)
    }
    this.#cut(leaving)
    clearTimeout(this.#timer)
  }

  #add(entry: Entry): void {
    this.#all.add(entry)
    const { ids, endsAt } = entry.permission
    for (const id of ids) {
      const entries = this.#byId.get(id) ?? new Set()
      entries.add(entry)
      this.#byId.set(id, entries)
      this.#stopListening ??= this.#elsewhere?.onEnd(() => this.#look())
    }
    if (endsAt !== undefined && endsAt < this.#nextAt) this.#arm(endsAt)
  }

  #remove(entry: Entry): void {
    this.#all.delete(entry)
    for (const id of entry.permission.ids) {
      const entries = this.#byId.get(id)
      entries?.delete(entry)
      if (entries?.size === 0) this.#byId.delete(id)
    }
    if (this.#byId.size > 0) return
    this.#stopListening?.()
    this.#stopListening = undefined
  }

  #look(): void {
    for (const id of [...this.#byId.keys()]) if (this.#elsewhere?.hasEnded(id)) this.end(id)
  }

  #cut(entries: Iterable<Entry>): void {
    // An entry that is cut removes itself.
    for (const { cut } of [...entries]) cut()
  }

  #arm(at: number): void {
    clearTimeout(this.#timer)
    this.#nextAt = at
    this.#timer = setTimeout(() => this.#expire(), Math.min(MAX_TIMER_MS, Math.max(0, at - Date.now())))
    this.#timer.unref()
  }

  #expire(): void {
    const now = Date.now()
    const over: Entry[] = []
    let next = Number.POSITIVE_INFINITY
    for (const entry of this.#all) {
      const { endsAt = Number.POSITIVE_INFINITY } = entry.permission
      if (endsAt <= now) over.push(entry)
      else next = Math.min(next, endsAt)
    }
    this.#nextAt = Number.POSITIVE_INFINITY
    if (next !== Number.POSITIVE_INFINITY) this.#arm(next)
    this.#cut(over)
  }
}
