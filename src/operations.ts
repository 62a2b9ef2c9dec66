// Contracts: what an operator's view of a server keeps across restarts, and where admin actions are written down.

/** The length of a row of traffic. */
export type Span = 'minute' | 'hour' | 'day'

/** The traffic of a tunnel in one span. */
export interface Traffic {
  readonly tunnel: string
  /** The beginning of the span, in milliseconds since 1970. */
  readonly atMs: number
  /** Requests that are over. */
  readonly requests: number
  /** The number of requests with a status of 500 or above, or without a response. */
  readonly errors: number
  readonly bytesIn: number
  readonly bytesOut: number
  /** Requests by bucket of their duration, as `/metrics` has them, up to the last that has any. Left out: not measured. */
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

/** Keeps traffic and bans. A method that has returned has written. */
export interface OperationsStore {
  /** Adds to the minute, hour and day that `atMs` is in, in one transaction. */
  add(atMs: number, traffic: readonly Omit<Traffic, 'atMs'>[]): void
  /** Rows of one span from `fromMs` on, the newest first, at most `limit`; of one tunnel, or of all together (`tunnel` is then `''`). */
  traffic(span: Span, fromMs: number, limit: number, tunnel?: string): readonly Traffic[]
  /** Forgets minutes older than a day, hours older than 60 days and days older than three years. */
  prune(nowMs: number): void
  bans(): readonly Ban[]
  /** Returns a number that changes when another program has written to the store: its bans may have changed. */
  version(): number
  /** Returns its id: the one it has, or a new one. A ban with an id that is there already is left unchanged. */
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
  /** The newest first, those before `beforeMs`, at most `limit`. */
  entries(beforeMs: number, limit: number): readonly AuditEntry[]
}

/** The bans of a server. Implementation: parts/bans. */
export interface BanList {
  readonly all: readonly Ban[]
  /** Takes over what other programs with the same store have changed. */
  refresh(): void
  /** Throws `OPTION_INVALID` for what cannot be banned. */
  add(ban: Omit<Ban, 'id'>): Ban
  /** Removes a ban. Returns `false` if there is none with this id. */
  remove(id: number): boolean
}
