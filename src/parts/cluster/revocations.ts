// Tokens that were revoked at one server open nothing at all of them. They are kept by their hashes: a secret is never used again.

import { objectIn } from '../../directory.ts'
import type { KeptToken, TokenStore } from '../../tokens.ts'
import type { SharedTable } from './shared-table.ts'

/** The time in milliseconds between looks at the store: another process may have revoked a token. */
const LOOK_MS = 500

export interface RevocationsHost {
  /** Tokens that are kept; `undefined`: this server keeps none. */
  readonly store: TokenStore | undefined
  /** Called when tokens were revoked: their clients are cut. */
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
  /** The tokens of the store at the last look, by hash. */
  #kept = new Map<string, KeptToken>()
  #version: number | undefined
  #timer: ReturnType<typeof setInterval> | undefined
  #isFailing = false

  constructor(table: SharedTable, host: RevocationsHost) {
    this.#table = table
    this.#host = host
  }

  /** The table has what the others have. */
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
   * Tells the other servers which tokens are no longer in the store. `isOwn`: this server changed the store, so its version is
   * the same.
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

  /** Removes tokens from the store that others have revoked, and replaces secrets that others have replaced. */
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

  /** The secret that is in place of this one by now; `''`: none. */
  #lastOf(hash: string): string {
    const seen = new Set<string>()
    let last = hash
    for (let text = this.#table.get(last); text !== undefined; text = this.#table.get(last)) {
      // That it is there means that the token is revoked, whatever it says.
      const { next } = objectIn(text) ?? {}
      if (typeof next !== 'string' || next === '' || seen.has(next)) return ''
      seen.add(next)
      last = next
    }
    return last
  }

  /** A file that is gone or locked is said once. */
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
