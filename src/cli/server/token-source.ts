// The tokens of a server in a file, which is read at the start, and again when another process changes it.

import { randomBytes } from 'node:crypto'
import type { TokenRule, TunnelServerOptions } from '../../server/settings/options.ts'
import type { KeptToken, TokenStore } from '../../tokens.ts'

/**
 * The time in milliseconds between checks of the file, so that a new token works before its owner's next command has
 * started. A check takes microseconds.
 */
const LOOK_MS = 50
/** The time in milliseconds between checks for expired tokens, and for uses to note. */
const EXPIRY_MS = 500
/** The time in milliseconds in which the uses of one token are noted once: the first one at once, so that no used token is "never used". */
const NOTED_MS = 30_000

export class TokenSource {
  /** The token file for the admin API. Its changes are noticed like those of another process. */
  readonly editable: TokenStore
  readonly #store: TokenStore
  readonly #failed: (error: Error) => void
  readonly #used = new Map<string, number>()
  readonly #noted = new Map<string, number>()
  #version: number
  #timers: ReturnType<typeof setInterval>[] = []
  #isFailing = false

  private constructor(store: TokenStore, editable: TokenStore, failed: (error: Error) => void) {
    this.#store = store
    this.editable = editable
    this.#failed = failed
    this.#version = store.version()
  }

  /** Opens the file. Throws `OPTION_INVALID` if it cannot be used. */
  static async open(path: string, failed: (error: Error) => void): Promise<TokenSource> {
    const { SqliteTokens } = await import('../../stores/sqlite-tokens.ts')
    return new TokenSource(new SqliteTokens(path), new SqliteTokens(path), failed)
  }

  tokens({ tokens = [] }: TunnelServerOptions): readonly (string | TokenRule)[] {
    this.#version = this.#store.version()
    const now = Date.now()
    const kept = this.#store.list().filter(token => !isOver(token, now))
    // A server without tokens is open to everybody, so this adds one whose hash no token has.
    const nothing: TokenRule = { tokenHash: randomBytes(32).toString('hex') }
    return [...tokens, ...kept.map(ruleOf), ...(tokens.length + kept.length === 0 ? [nothing] : [])]
  }

  /** Calls `changed` when the tokens differ from the last result of `tokens()`. */
  follow(changed: () => void): void {
    let wasOver = this.#countOver()
    const hasExpired = () => {
      const over = this.#countOver()
      const is = over !== wasOver
      wasOver = over
      return is
    }
    const look = (isOther: () => boolean) => {
      try {
        const is = isOther()
        this.#isFailing = false
        if (is) changed()
      } catch (error) {
        // A missing or locked file is reported once, and the tokens stay unchanged.
        if (!this.#isFailing) this.#failed(error as Error)
        this.#isFailing = true
      }
    }
    this.#timers = [
      setInterval(() => look(() => this.#store.version() !== this.#version), LOOK_MS),
      setInterval(() => look(hasExpired), EXPIRY_MS),
      setInterval(() => this.#write(Date.now() - NOTED_MS), EXPIRY_MS),
    ]
    for (const timer of this.#timers) timer.unref()
  }

  used(name: string): void {
    this.#used.set(name, Date.now())
  }

  close(): void {
    for (const timer of this.#timers) clearInterval(timer)
    this.#write(Number.POSITIVE_INFINITY)
    this.#store.close()
    this.editable.close()
  }

  #countOver(): number {
    const now = Date.now()
    return this.#store.list().filter(token => isOver(token, now)).length
  }

  /** Notes the uses of tokens that were noted before this time, or never. */
  #write(beforeMs: number): void {
    const due = new Map([...this.#used].filter(([name]) => (this.#noted.get(name) ?? 0) < beforeMs))
    if (due.size === 0) return
    try {
      this.#store.used(due)
      for (const [name, atMs] of due) {
        this.#used.delete(name)
        this.#noted.set(name, atMs)
      }
    } catch (error) {
      this.#failed(error as Error)
    }
  }
}

function isOver({ expiresAtMs = Number.POSITIVE_INFINITY }: KeptToken, now: number): boolean {
  return expiresAtMs <= now
}

function ruleOf({ name, hash, scope }: KeptToken): TokenRule {
  return { ...scope, name, tokenHash: hash }
}
