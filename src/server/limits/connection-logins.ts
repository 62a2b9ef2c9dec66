// The parts of an app that belong to one visitor's connection, because the app reads a login as one of the connection (RFC 4559
// section 6).

/** Ways to apps that one connection keeps, each to another app. Of more, the one used longest ago is closed. */
const MAX_KEPT = 8

/** A way to an app, between two requests of the connection. */
export interface Kept {
  /** The visitor wants it no more. */
  leave(): void
}

/** The logins of all connections of this process. */
let lastNumber = 0

export class ConnectionLogins {
  /** The visitor then stays with its client. */
  hasBegun = false
  /** The client of a pool that served it last, as the pool knows it. */
  member: object | undefined
  readonly #kept = new Set<Kept>()
  #number = 0
  #isClosed = false

  /** Names the connection to a client of the JSON wire. */
  get number(): number {
    if (this.#number === 0) this.#number = ++lastNumber
    return this.#number
  }

  /** The login waits for the next request of this connection. `false`: there will be none. */
  keep(one: Kept): boolean {
    if (this.#isClosed) return false
    this.#kept.add(one)
    const [oldest] = this.#kept
    if (this.#kept.size > MAX_KEPT) oldest?.leave()
    return true
  }

  /** The login no longer waits. */
  forget(one: Kept): void {
    this.#kept.delete(one)
  }

  close(): void {
    this.#isClosed = true
    for (const one of [...this.#kept]) one.leave()
  }
}
