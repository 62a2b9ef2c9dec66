// Tokens in memory: those of one process, gone with it.

import type { KeptToken, TokenStore } from '../tokens.ts'

export class MemoryTokens implements TokenStore {
  readonly #tokens = new Map<string, KeptToken>()

  list(): readonly KeptToken[] {
    return [...this.#tokens.values()].sort((one, other) => (one.name < other.name ? -1 : 1))
  }

  add(token: KeptToken): boolean {
    const isTaken = this.list().some(({ name, hash }) => name === token.name || hash === token.hash)
    if (!isTaken) this.#tokens.set(token.name, token)
    return !isTaken
  }

  rehash(name: string, hash: string): boolean {
    return this.#change(name, { hash })
  }

  remove(name: string): boolean {
    return this.#tokens.delete(name)
  }

  used(times: ReadonlyMap<string, number>): void {
    for (const [name, lastUsedAtMs] of times) this.#change(name, { lastUsedAtMs })
  }

  /** No other process can change it. */
  version(): number {
    return 0
  }

  close(): void {}

  #change(name: string, change: Partial<KeptToken>): boolean {
    const token = this.#tokens.get(name)
    if (token !== undefined) this.#tokens.set(name, { ...token, ...change })
    return token !== undefined
  }
}
