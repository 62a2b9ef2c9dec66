// Contracts: the store for an operator's view of a server, and the log of admin actions.

/** The length of the time that a row of traffic covers. */
export type Span = 'minute' | 'hour' | 'day'

/** The traffic of a tunnel in one span. */
export interface Traffic {
  readonly tunnel: string
  /** The beginning of the span, in milliseconds since 1970. */
  readonly atMs: number
  /** The number of requests that have ended. */
  readonly requests: number
  /** The number of requests with a status of 500 or above, or without a response. */
  readonly errors: number
  readonly bytesIn: number
  readonly bytesOut: number
  /**
   * The number of requests by bucket of their duration, as in `/metrics`, up to the last bucket that has any. Left
   * out if not measured.
   */
  readonly durations?: readonly number[]
}

/** A ban: of visitors and clients of an address or network, or of clients that ask for a tunnel of this name. */
export interface Ban {
  readonly id: number
  readonly kind: 'address' | 'tunnel'
  /** An address, a network such as `192.0.2.0/24` (`::/0` has no IPv4 addresses), or the name of a tunnel. */
  readonly value: string
  readonly reason: string
  readonly sinceMs: number
  /** The end of the ban. `undefined` if it lasts until the operator removes it. */
  readonly untilMs?: number
}

/** Stores traffic and bans. When a method returns, its data is written. */
export interface OperationsStore {
  /** Adds to the minute, hour and day that `atMs` is in, in one transaction. */
  add(atMs: number, traffic: readonly Omit<Traffic, 'atMs'>[]): void
  /**
   * Returns rows of one span from `fromMs` on, the newest first, at most `limit`: those of one tunnel, or of all
   * together (`tunnel` is then `''`).
   */
  traffic(span: Span, fromMs: number, limit: number, tunnel?: string): readonly Traffic[]
  /** Forgets minutes older than a day, hours older than 60 days and days older than three years. */
  prune(nowMs: number): void
  bans(): readonly Ban[]
  /** Returns a number that changes when another program has written to the store: its bans may have changed. */
  version(): number
  /** Stores a ban and returns its id: the given one, or a new one. If a ban with this id exists, it is not changed. */
  saveBan(ban: Omit<Ban, 'id'> & Partial<Pick<Ban, 'id'>>): number
  removeBan(id: number): void
  close(): void
}

/** A line of the audit log. */
export interface AuditEntry {
  readonly atMs: number
  /** The action, such as `tunnel.close`. */
  readonly action: string
  /** The actor: `admin`, or the name of a token. */
  readonly actor: string
  /** The object of the action. */
  readonly subject: string
  readonly detail?: string
}

/** A log of the operator's actions. */
export interface AuditLog {
  note(entry: AuditEntry): void
  /** Returns the entries before `beforeMs`, the newest first, at most `limit`. */
  entries(beforeMs: number, limit: number): readonly AuditEntry[]
}

/** The bans of a server. Implementation: parts/bans. */
export interface BanList {
  readonly all: readonly Ban[]
  /** Reads what other programs with the same store have changed. */
  refresh(): void
  /** Adds a ban. Throws `OPTION_INVALID` for a value that cannot be banned. */
  add(ban: Omit<Ban, 'id'>): Ban
  /** Removes a ban. Returns `false` if there is none with this id. */
  remove(id: number): boolean
}
