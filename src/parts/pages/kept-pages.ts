// Clients' pages in memory, by the name of their tunnel. They stay when the client leaves, until another client has
// the name, or this one may not have it any more.

import type { AwayPage } from './away-page.ts'

/** The bytes that one token or address may use: 32 pages of the maximum size. If exceeded, its oldest page is removed. */
const MAX_OWNER_BYTES = 1_048_576
/** The bytes of all pages. If exceeded, the oldest page of the owner with the most is removed. */
const MAX_BYTES = 67_108_864
/** The cost of a page in addition to its text. */
const PAGE_COST_BYTES = 512
/** The time in milliseconds for which a page is shown for a name without a client. */
const AWAY_MS = 86_400_000

interface Kept {
  readonly owner: string
  readonly page: AwayPage
  readonly bytes: number
  /** Returns whether its client could still register the name. */
  readonly mayStay: () => boolean
  /** The time, on the clock, when the first visitor found the name without a client. */
  awayAt: number | undefined
}

export class KeptPages {
  readonly #now: () => number
  /** The pages, the oldest first. */
  readonly #all = new Map<string, Kept>()
  readonly #byOwner = new Map<string, number>()
  #bytes = 0

  constructor(now: () => number) {
    this.#now = now
  }

  of(name: string): AwayPage | undefined {
    const kept = this.#all.get(name)
    if (kept?.mayStay() === false) this.forget(name)
    return this.#all.get(name)?.page
  }

  /** Whether a visitor gets a page for this name, which no client of this server has. */
  missed(name: string): boolean {
    const kept = this.#all.get(name)
    if (kept === undefined) return false
    kept.awayAt ??= this.#now()
    if (this.#now() - kept.awayAt < AWAY_MS) return true
    this.forget(name)
    return false
  }

  keep(name: string, owner: string, page: AwayPage, mayStay: () => boolean): void {
    this.forget(name)
    const bytes = Buffer.byteLength(page.text) + PAGE_COST_BYTES
    this.#all.set(name, { owner, page, bytes, mayStay, awayAt: undefined })
    this.#count(owner, bytes)
    if ((this.#byOwner.get(owner) ?? 0) > MAX_OWNER_BYTES) this.#forgetOldestOf(owner)
    if (this.#bytes > MAX_BYTES) this.#forgetOldestOf(this.#ownerWithMost())
  }

  forget(name: string): boolean {
    const kept = this.#all.get(name)
    if (kept === undefined) return false
    this.#all.delete(name)
    this.#count(kept.owner, -kept.bytes)
    return true
  }

  #count(owner: string, bytes: number): void {
    this.#bytes += bytes
    const all = (this.#byOwner.get(owner) ?? 0) + bytes
    if (all > 0) this.#byOwner.set(owner, all)
    else this.#byOwner.delete(owner)
  }

  #forgetOldestOf(owner: string): void {
    for (const [name, kept] of this.#all) if (kept.owner === owner) return void this.forget(name)
  }

  #ownerWithMost(): string {
    let most = ''
    for (const [owner, bytes] of this.#byOwner) if (bytes > (this.#byOwner.get(most) ?? 0)) most = owner
    return most
  }
}
