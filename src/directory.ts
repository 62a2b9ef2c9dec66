// Contract: the directory, in which the servers of a cluster record which of them holds a name. Implementations:
// directories/memory.ts (servers of one process), directories/redis.ts (Redis or Valkey).
//
// A server holds a name for its client. The hold lasts while the server sends heartbeats, and some time longer. In
// that time only the client's proof gets the name: the hash of the secret that came with it. Each hold has an epoch;
// of two holds of one name, the one with the higher epoch is valid.

/** A server of the cluster, as the others reach it. */
export interface Node {
  /** The id of this start of the server. */
  readonly id: string
  /** The URL for requests from other servers, such as `http://10.0.0.2:8080`. Empty while it sends no heartbeats. */
  readonly url: string
}

/** A server that holds a name. */
export interface Place extends Node {
  /** Whether the TLS of visitors goes to the client unchanged. Default `false`. */
  readonly isTls?: boolean
}

/** The times of a directory, in milliseconds. All servers of a cluster use the same. */
export interface DirectoryTimes {
  /** The time without a heartbeat after which a server gets no requests. */
  readonly nodeMs: number
  /** The time for which the names of a lost server stay reserved for their clients. */
  readonly leaseMs: number
  /**
   * The time for which new names wait if the directory is new or has lost its data, so that servers can first restore
   * what they hold.
   */
  readonly earlyMs: number
  /** The time after which a hold that was not renewed is forgotten. */
  readonly holdMs: number
}

export interface NameWish {
  /** The name: a label, a whole host name, or a port as in `tcp-20000`. */
  readonly name: string
  /** The hash of the secret that the client shows. Empty if it shows none. */
  readonly shown: string
  /** The hash of the secret that the client gets if the one that it shows proves nothing. */
  readonly next: string
  /** Whether several clients share the name, possibly on several servers. */
  readonly isShared: boolean
  /** Whether the TLS of visitors goes to the client unchanged. */
  readonly isTls?: boolean
}

export type NameOutcome =
  | { readonly kind: 'granted'; readonly epoch: number; readonly isProved: boolean }
  | { readonly kind: 'taken' }
  /** The directory may have forgotten the owner of the name: ask again after `waitMs`. */
  | { readonly kind: 'early'; readonly waitMs: number }

export interface Hold {
  readonly name: string
  readonly epoch: number
  readonly proof: string
  readonly isShared: boolean
  /** Whether the TLS of visitors goes to the client unchanged. */
  readonly isTls?: boolean
}

/** A claim without a reply: it is unknown whether it was granted, and with which epoch. */
export interface LostClaim {
  /** The proof of a grant. Absent if the name is shared. */
  readonly proof: string
  readonly isShared: boolean
}

/** The reply of the directory to a heartbeat. */
export interface Beat {
  /** Whether the directory knew the server. If not, the server must `restore` its names. */
  readonly isKnown: boolean
  /** The epoch of the directory's last grant. */
  readonly highestEpoch: number
}

/** Events that a server gets from the directory. */
export interface DirectoryListener {
  /** Called when another server has the name. With an empty `node`, the name is free. */
  changed(name: string, node: string, epoch: number): void
  /** Called when changes may have been missed. */
  reconnected(): void
}

export interface TableEntry {
  readonly key: string
  /** The value. Empty if the entry was removed; it stays so that no server brings it back. */
  readonly value: string
  /** The version of the entry. Of two entries, the one with the higher version is valid. */
  readonly version: number
  /** The time in milliseconds since 1970 after which no server keeps the entry. 0: without limit. */
  readonly untilMs: number
}

/**
 * The result of a write: `older` if there is an entry with the same or a higher version. `full`: there is no room for another
 * key.
 */
export type PutOutcome = 'written' | 'older' | 'full'

/** The small tables that each server also has in memory. Every method rejects if the directory cannot be reached. */
export interface DirectoryTables {
  /** Calls `heard` with each entry that is written from now on, and with the number of entries written before it. */
  listen(heard: (table: string, entry: TableEntry, changes: number) => void): Promise<() => void>
  /**
   * Writes entries independently of each other, and notifies all servers. Returns an outcome for each. `maxKeys`: the
   * limit of the table.
   */
  put(table: string, entries: readonly TableEntry[], maxKeys: number): Promise<readonly PutOutcome[]>
  /** Returns all entries. Those written during the call may be missing; an event follows for them. */
  read(table: string): Promise<readonly TableEntry[]>
  /** Returns how many entries were written since the directory has had its data. */
  changes(): Promise<number>
}

/** Whether the name is a port, such as `tcp-20000`. No tunnel of another kind may have such a name. */
export function isPortName(name: string): boolean {
  return /^(?:tcp|udp)-\d{1,5}$/.test(name)
}

/** The operations of a directory. Every method rejects if the directory cannot be reached. */
export interface Directory {
  /** The tables. `undefined` if all servers are on one machine and share files instead. */
  readonly tables?: DirectoryTables
  /** Calls the listener from now on. Resolves once no event can be missed, with a function that ends this. */
  listen(listener: DirectoryListener): Promise<() => void>
  /**
   * Sends a heartbeat. `highestEpoch` is the highest one that the server knows, of any name. Later grants have higher
   * ones, so that epochs grow even if the directory has lost its data.
   */
  beat(node: Node, times: DirectoryTimes, highestEpoch: number): Promise<Beat>
  claim(node: string, wish: NameWish, times: DirectoryTimes): Promise<NameOutcome>
  /** Records again the holds of this server. Returns the names that another server has by now. */
  restore(node: string, holds: readonly Hold[], times: DirectoryTimes): Promise<readonly string[]>
  /** Releases a name, unless it is held with another epoch. `lost`: also if that claim granted it to this server. */
  release(node: string, name: string, epoch: number, lost?: LostClaim): Promise<void>
  /**
   * Returns the servers that hold the name: none, one, or those of a shared name. A server without a URL may come back. A place
   * without an id means that the directory is new or has lost its data, and a server with the name may not have reported it yet.
   */
  find(name: string): Promise<readonly Place[]>
  /** Returns the ports that any server holds, as names: `tcp-20000`. */
  ports(): Promise<readonly string[]>
  /** Called when the server stops: its names stay reserved for their clients. */
  leave(node: string): Promise<void>
  /** Returns the servers that send heartbeats. */
  nodes(): Promise<readonly Node[]>
  /** Returns the secret with which servers prove themselves: `fresh`, if there is none yet. */
  secret(fresh: string): Promise<string>
  close(): Promise<void>
  /**
   * Returns why a method rejected with `error`, for messages: the place of the directory, and the cause. Default: the message
   * of the error.
   */
  explain?(error: unknown): string
  /** Returns the next step if waiting does not help. Default: try again. */
  adviceFor?(error: unknown): string | undefined
}

/**
 * Returns the object in an entry of a table, which is JSON. `undefined` if it is not an object. A newer server or a
 * stranger with the same Redis may write anything, so check its fields.
 */
export function objectIn(text: string | undefined): Readonly<Record<string, unknown>> | undefined {
  if (text === undefined) return undefined
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? { ...value } : undefined
  } catch {
    return undefined
  }
}
