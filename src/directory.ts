// Contract: where the servers of a cluster keep who holds which name. Implementations: directories/memory.ts (servers of one
// process), directories/redis.ts (Redis or Valkey).
//
// A name is held by a server for its client. The hold lasts as long as the server gives signs of life, and some time longer,
// in which it can only be had with the client's proof: the hash of the secret that the client was given with the name. Each
// hold has an epoch; of two holds of one name the one with the higher epoch is valid.

/** A server of the cluster, as the others reach it. */
export interface Node {
  /** Unique for each start of a server. */
  readonly id: string
  /** Where it takes requests from other servers: `http://10.0.0.2:8080`. `''`: it gives no sign of life just now. */
  readonly url: string
}

/** A server that holds a name. */
export interface Place extends Node {
  /** TLS of visitors goes to the client as it is. Default `false`. */
  readonly isTls?: boolean
}

/** How long things last in a directory, in ms. All servers of a cluster use the same. */
export interface DirectoryTimes {
  /** Without a sign of life for so long a server gets no requests. */
  readonly nodeMs: number
  /** Its names stay reserved for their clients for so long. */
  readonly leaseMs: number
  /** A directory that is new, or has lost its data, first takes back what servers hold: new names have to wait for so long. */
  readonly earlyMs: number
  /** A hold that is not renewed is forgotten. */
  readonly holdMs: number
}

export interface NameWish {
  /** A label, a whole host name, or a port: `tcp-20000`. */
  readonly name: string
  /** Hash of the secret that the client shows; `''`: none. */
  readonly shown: string
  /** Hash of the secret that it gets if the one shown does not prove anything. */
  readonly next: string
  /** Several clients share the name, and several servers may hold it. */
  readonly isShared: boolean
  /** As `Place.isTls`. */
  readonly isTls?: boolean
}

export type NameOutcome =
  | { readonly kind: 'granted'; readonly epoch: number; readonly isProved: boolean }
  | { readonly kind: 'taken' }
  /** Ask again after this time: the directory may have forgotten who holds the name. */
  | { readonly kind: 'early'; readonly waitMs: number }

export interface Hold {
  readonly name: string
  readonly epoch: number
  readonly proof: string
  readonly isShared: boolean
  /** As `Place.isTls`. */
  readonly isTls?: boolean
}

/** A claim whose answer never came: whether it was granted is not known, nor its epoch. */
export interface LostClaim {
  /** Of a grant, unless the name is shared. */
  readonly proof: string
  readonly isShared: boolean
}

/** What the directory says to a sign of life. */
export interface Beat {
  /** `false`: it did not know the server, which must `restore` what it holds. */
  readonly isKnown: boolean
  /** The epoch of its last grant. */
  readonly highestEpoch: number
}

/** Events that a server gets from the directory. */
export interface DirectoryListener {
  /** This server holds the name now; `node` `''`: it is free. */
  changed(name: string, node: string, epoch: number): void
  /** Changes may have been missed. */
  reconnected(): void
}

/** What is kept under one key of a table. */
export interface TableEntry {
  readonly key: string
  /** `''`: it was removed, and this is kept so that no server brings it back. */
  readonly value: string
  /** Of two entries of one key the one with the higher number is valid. */
  readonly version: number
  /** Milliseconds since 1970: no server keeps it for longer. 0: for ever. */
  readonly untilMs: number
}

/** `older`: there is one of the same version already, or of a higher one. `full`: there is no room for another key. */
export type PutOutcome = 'written' | 'older' | 'full'

/** Small tables that each server has in memory as well. Every method rejects when the directory cannot be reached. */
export interface DirectoryTables {
  /** Calls `heard` with each entry that is written from now on, and with the number of entries that were written before it. */
  listen(heard: (table: string, entry: TableEntry, changes: number) => void): Promise<() => void>
  /** Writes entries, each for itself, and tells all servers. One outcome for each. `maxKeys`: of the table. */
  put(table: string, entries: readonly TableEntry[], maxKeys: number): Promise<readonly PutOutcome[]>
  /** All entries. Those that are written meanwhile may be missing; they are heard of. */
  read(table: string): Promise<readonly TableEntry[]>
  /** How many entries were written since the directory has its data. */
  changes(): Promise<number>
}

/** Whether the name is a port, such as `tcp-20000`: no tunnel of another kind may be called so. */
export function isPortName(name: string): boolean {
  return /^(?:tcp|udp)-\d{1,5}$/.test(name)
}

/** Every method rejects when the directory cannot be reached. */
export interface Directory {
  /** `undefined`: its servers are of one machine, and share files instead. */
  readonly tables?: DirectoryTables
  /** Calls the listener from now on, and resolves once nothing is missed, with what ends that. */
  listen(listener: DirectoryListener): Promise<() => void>
  /**
   * A sign of life. `highestEpoch`: the highest one that the server has heard of, of any name. Grants that follow have higher
   * ones, so that epochs go on where they were when the directory has lost its data.
   */
  beat(node: Node, times: DirectoryTimes, highestEpoch: number): Promise<Beat>
  claim(node: string, wish: NameWish, times: DirectoryTimes): Promise<NameOutcome>
  /** Holds that this server has, and renews. Returns the names that are another server's by now. */
  restore(node: string, holds: readonly Hold[], times: DirectoryTimes): Promise<readonly string[]>
  /** The name is free, unless it is held by another epoch. `lost`: or it was granted to this server by that claim. */
  release(node: string, name: string, epoch: number, lost?: LostClaim): Promise<void>
  /**
   * The servers that hold the name: none, one, or those of a shared name. One without a URL may come back. One without an id: the directory is
   * new, or has lost its data, and a server that holds the name may not have said so yet.
   */
  find(name: string): Promise<readonly Place[]>
  /** The ports that any server holds, as names: `tcp-20000`. */
  ports(): Promise<readonly string[]>
  /** The server stops: its names stay reserved for their clients. */
  leave(node: string): Promise<void>
  /** Those that give signs of life. */
  nodes(): Promise<readonly Node[]>
  /** The secret that servers know each other by: `fresh`, if there is none yet. */
  secret(fresh: string): Promise<string>
  close(): Promise<void>
  /** Why a method rejected with this, for messages: where the directory is, and what is wrong. Default: the message of the error. */
  explain?(error: unknown): string
  /** Returns the next step if waiting does not help. Default: try again. */
  adviceFor?(error: unknown): string | undefined
}

/**
 * What an entry of a table holds: an object as JSON. A newer server may write others, and a stranger with the same Redis anything.
 * `undefined`: it is no object. Its fields are still to be looked at.
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
