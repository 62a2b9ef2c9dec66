// Tokens that were revoked at one server are refused by all. They are stored by their hashes, because a secret is
// never used again.

import { objectIn } from '../../directory.ts'
import type { KeptToken, TokenStore } from '../../tokens.ts'
import type { SharedTable } from './shared-table.ts'

/** The time in milliseconds between searches for tokens that another process revoked in the store. */
const LOOK_MS = 500

export interface RevocationsHost {
  /** The token store. `undefined` if this server has none. */
  readonly store: TokenStore | undefined
  /** Called when tokens were revoked, whose clients must be cut. */
  changed(): void
  failed(error: Error): void
}

/** The record of a revoked token. */
interface Revocation {
  readonly name: string
  /** The hash of the secret that replaced it. Empty for none. */
  readonly next: string
}

export class Revocations {
  readonly #table: SharedTable
  readonly #host: RevocationsHost
  /** The tokens in the store at the last check, by hash. */
  #kept = new Map<string, KeptToken>()
  #version: number | undefined
  #timer: ReturnType<typeof setInterval> | undefined
  #isFailing = false

  constructor(table: SharedTable, host: RevocationsHost) {
    this.#table = table
    this.#host = host
  }

  /** Called when the table has the entries of the other servers. */
  begin(): void {
    this.#attempt(() => {
      this.#takeOver()
      this.#remember()
    })
    this.#table.onChange(() => {
      this.#attempt(() => this.#takeOver())
      this.#host.changed()
    })
    if (this.#host.store === undefined) return
    this.#timer = setInterval(() => this.look(false), LOOK_MS)
    this.#timer.unref()
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  /** Whether a token is revoked. `hash`: its SHA-256, in hexadecimal. */
  isRevoked(hash: string): boolean {
    return this.#table.get(hash) !== undefined
  }

  /**
   * Reports tokens that were removed from the store to the other servers. `isOwn`: this server changed the store, so
   * its version is the same.
   */
  look(isOwn: boolean): void {
    const { store } = this.#host
    if (store === undefined) return
    this.#attempt(() => {
      const version = store.version()
      if (version === this.#version && !isOwn) return
      const before = this.#kept
      this.#remember()
      const hashes = new Map([...this.#kept.values()].map(({ name, hash }) => [name, hash]))
      const gone = [...before.values()].filter(({ hash }) => !this.#kept.has(hash) && !this.isRevoked(hash))
      for (const { hash, name } of gone) {
        const revocation: Revocation = { name, next: hashes.get(name) ?? '' }
        this.#table.set(hash, JSON.stringify(revocation), 0)
      }
      if (gone.length > 0) this.#host.changed()
    })
  }

  #remember(): void {
    const { store } = this.#host
    if (store === undefined) return
    this.#version = store.version()
    this.#kept = new Map(store.list().map(token => [token.hash, token]))
  }

  /** Removes tokens from the store that others revoked, and replaces secrets that others replaced. */
  #takeOver(): void {
    const { store } = this.#host
    for (const token of store?.list() ?? []) {
      const { name, hash } = token
      const last = this.#lastOf(hash)
      if (last === hash) continue
      this.#kept.delete(hash)
      if (last === '') store?.remove(name)
      else if (store?.rehash(name, last)) this.#kept.set(last, { ...token, hash: last })
    }
  }

  /** Returns the hash of the latest replacement of a secret; `''` for none. */
  #lastOf(hash: string): string {
    const seen = new Set<string>()
    let last = hash
    for (let text = this.#table.get(last); text !== undefined; text = this.#table.get(last)) {
      // The existence of the entry means that the token is revoked, whatever its content.
      const { next } = objectIn(text) ?? {}
      if (typeof next !== 'string' || next === '' || seen.has(next)) return ''
      seen.add(next)
      last = next
    }
    return last
  }

  /** Runs `work`. An error of a missing or locked file is reported once. */
  #attempt(work: () => void): void {
    try {
      work()
      this.#isFailing = false
    } catch (error) {
      if (!this.#isFailing) this.#host.failed(error as Error)
      this.#isFailing = true
    }
  }
}
