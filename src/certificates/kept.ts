// A cache of certificates for handshakes. The least used are removed first.

import type { Certificate } from '../certificates.ts'

export interface Kept {
  readonly certificate: Certificate
  readonly notAfterMs: number
  /** The time from which the store may have a newer one, from this process or another. */
  rereadAtMs: number
}

export class KeptCertificates {
  readonly #max: number
  readonly #pinned: ReadonlySet<string>
  readonly #byId = new Map<string, Kept>()

  /** Makes the cache. `pinned`: the ids that always stay, and do not count. */
  constructor(max: number, pinned: ReadonlySet<string>) {
    this.#max = max + pinned.size
    this.#pinned = pinned
  }

  get(id: string): Kept | undefined {
    const kept = this.#byId.get(id)
    if (kept !== undefined) {
      this.#byId.delete(id)
      this.#byId.set(id, kept)
    }
    return kept
  }

  set(id: string, kept: Kept): void {
    this.#byId.delete(id)
    this.#byId.set(id, kept)
    if (this.#byId.size <= this.#max) return
    for (const oldest of this.#byId.keys()) {
      if (this.#pinned.has(oldest)) continue
      this.#byId.delete(oldest)
      return
    }
  }

  /** Returns all entries. */
  entries(): readonly (readonly [id: string, kept: Kept])[] {
    return [...this.#byId]
  }

  delete(id: string): void {
    this.#byId.delete(id)
  }
}
