// Contract: where the servers of a cluster keep who holds which name. Implementations: directories/memory.ts (servers of one
// process), directories/redis.ts (Redis or Valkey).
//
// A name is held by a server for its client. The hold lasts as long as the server gives signs of life, and some time longer,
// in which it can only be had with the client's proof: the hash of the secret that the client was given with the name. Each
// hold has an epoch; of two holds of one name the one with the higher epoch is valid.

/** A server of the cluster, as the others reach it. */
export interface Node {
  /** The id of this start of the server. */
  readonly id: string
  /** The URL for requests from other servers, such as `http://10.0.0.2:8080`. `''`: it gives no sign of life just now. */
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
  /** A directory that is new, or has lost its data, first revokes what servers hold: new names have to wait for this long. */
  readonly earlyMs: number
  /** A hold that is not renewed is forgotten. */
  readonly holdMs: number
}

export interface NameWish {
  /** A label, a whole host name, or a port: `tcp-20000`. */
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

/** A claim whose response never came: whether it was granted is not known, nor its epoch. */
export interface LostClaim {
  /** The proof of a grant. Absent if the name is shared. */
  readonly proof: string
  readonly isShared: boolean
}

/** The reply of the directory to a heartbeat. */
export interface Beat {
  /** Whether the directory knew the server. If not, the server must `restore` its names. */
  readonly isKnown: boolean
  /** The epoch of its last grant. */
  readonly highestEpoch: number
}

/** Events that a server gets from the directory. */
export interface DirectoryListener {
  /** Called when another server has the name. An empty `node` means that the name is free. */
  changed(name: string, node: string, epoch: number): void
  /** Changes may have been missed. */
  reconnected(): void
}

export interface TableEntry {
  readonly key: string
  /** The value. Empty if the entry was removed; it stays so that no server brings it back. */
  readonly value: string
  /** The version of the entry. The entry with the highest version is valid. */
  readonly version: number
  /** Milliseconds since 1970: no server keeps it for longer. 0: without limit. */
  readonly untilMs: number
}

/**
 * The result of a write: `older` if there is an entry with the same or a higher version. `full`: there is no room for another
 * key.
 */
export type PutOutcome = 'written' | 'older' | 'full'

/** The small tables that each server also has in memory. Every method rejects when the directory cannot be reached. */
export interface DirectoryTables {
  /** Calls `heard` with each entry that is written from now on, and with the number of entries that were written before it. */
  listen(heard: (table: string, entry: TableEntry, changes: number) => void): Promise<() => void>
  /** Writes entries, each for itself, and tells all servers. One outcome for each. `maxKeys`: of the table. */
  put(table: string, entries: readonly TableEntry[], maxKeys: number): Promise<readonly PutOutcome[]>
  /** All entries. Entries that are written in the meantime may be missing; an event follows. */
  read(table: string): Promise<readonly TableEntry[]>
  /** Returns how many entries were written since the directory has its data. */
  changes(): Promise<number>
}

/** Whether the name is a port, such as `tcp-20000`: no tunnel of another kind may be called so. */
export function isPortName(name: string): boolean {
  return /^(?:tcp|udp)-\d{1,5}$/.test(name)
}

/** Every method rejects when the directory cannot be reached. */
export interface Directory {
  /** The tables. `undefined` if all servers are on one machine and share files instead. */
  readonly tables?: DirectoryTables
  /** Calls the listener from now on, and resolves once nothing is missed, with what ends that. */
  listen(listener: DirectoryListener): Promise<() => void>
  /**
   * A sign of life. `highestEpoch`: the highest one that the server has heard of, of any name. Later grants have higher
   * ones, so that epochs continue even if the directory has lost its data.
   */
  beat(node: Node, times: DirectoryTimes, highestEpoch: number): Promise<Beat>
  claim(node: string, wish: NameWish, times: DirectoryTimes): Promise<NameOutcome>
  /** Holds that this server has, and renews. Returns the names that are another server's by now. */
  restore(node: string, holds: readonly Hold[], times: DirectoryTimes): Promise<readonly string[]>
  /** The name is free, unless it is held by another epoch. `lost`: or it was granted to this server by that claim. */
  release(node: string, name: string, epoch: number, lost?: LostClaim): Promise<void>
  /**
   * The servers that hold the name: none, one, or those of a shared name. A server without a URL may come back. A place without
   * an id: the directory is new, or has lost its data, and a server that holds the name may not have reported it yet.
   */
  find(name: string): Promise<readonly Place[]>
  /** The ports that any server holds, as names: `tcp-20000`. */
  ports(): Promise<readonly string[]>
  /** The server stops: its names stay reserved for their clients. */
  leave(node: string): Promise<void>
  /** Lists the servers whose heartbeat arrives. */
  nodes(): Promise<readonly Node[]>
  /** The secret that servers know each other by: `fresh`, if there is none yet. */
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
 * Returns the object that an entry of a table contains as JSON. A newer server may write others, and a stranger with the same
 * Redis anything. `undefined`: it is not an object. Its fields are still to be looked at.
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
