// Streams to apps that belong to one visitor's connection, because the app ties a login to its connection (RFC 4559 section 6).

/** The number of streams that one connection keeps, each to another app. If exceeded, the one used longest ago is closed. */
const MAX_KEPT = 8

/** An idle stream to an app, which only the next requests of this visitor's connection may use. */
export interface Kept {
  /** Called when the visitor no longer needs the stream. */
  leave(): void
}

/** The last number that this process gave to a connection with a login. */
let lastNumber = 0

export class ConnectionLogins {
  /** Whether a login has begun. The visitor then stays with its client. */
  hasBegun = false
  /** The client of a pool that served the connection last, as the pool's own object. */
  member: object | undefined
  readonly #kept = new Set<Kept>()
  #number = 0
  #isClosed = false

  /** The number that identifies the connection to a client on the JSON wire. */
  get number(): number {
    if (this.#number === 0) this.#number = ++lastNumber
    return this.#number
  }

  /** Keeps the stream for the next request of this connection. Returns `false` if there will be none. */
  keep(one: Kept): boolean {
    if (this.#isClosed) return false
    this.#kept.add(one)
    const [oldest] = this.#kept
    if (this.#kept.size > MAX_KEPT) oldest?.leave()
    return true
  }

  /** Forgets the stream, which is in use or gone. */
  forget(one: Kept): void {
    this.#kept.delete(one)
  }

  close(): void {
    this.#isClosed = true
    for (const one of [...this.#kept]) one.leave()
  }
}
