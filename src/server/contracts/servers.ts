// Contract between a server and the others of its cluster. Implementation: parts/cluster/. Without that part, a server is alone.

import type { Place } from '../../directory.ts'
import type { ErrorCode } from '../../errors.ts'
import type { RecentRow } from '../../measures.ts'
import type { ByteStream, StreamHandler } from '../../session/byte-stream.ts'
import type { Endpoints, Socket, SocketHandler } from '../../socket.ts'
import type { Tunnel } from '../tunnels/tunnel.ts'
import type { RawWay, RawWish } from './raw-visit.ts'
import type { Upstream } from './upstream.ts'

/** The names that a client asks for. */
export interface Claimed {
  readonly names: readonly string[]
  /** The resume secret of the client's tunnel. */
  readonly secret: string
}

/** Decides which server of the cluster has a name. */
export interface Claims {
  /** Claims all of the names, or none: then the code says why. `resume` is the secret that the client shows. */
  claim(
    names: readonly string[],
    resume: string | undefined,
    isShared: boolean,
    isTls?: boolean,
  ): Promise<Claimed | ErrorCode>
  /** Releases a name that no tunnel of this server has any more. */
  release(name: string): void
}

/** A raw visitor, as one server describes it to another. */
export interface RawPassenger extends Pick<RawWish, 'kind' | 'wanted'> {
  readonly endpoints: Endpoints
}

/** A raw visitor that another server admitted: it is now joined to the tunnel's client here. */
export interface RawOpening {
  opened(): void
}

/** Takes raw visitors of tunnels on this server. */
export interface RawTaker {
  take(socket: Socket, tunnel: Tunnel, way: RawWay): RawTaken
  /** Takes the connection of a raw visitor to the tunnel that it wants, on this server or another one. */
  accept(socket: Socket, wish: RawWish): SocketHandler
  /** Counts `count` more raw visitors that are passed to other servers; fewer if negative. */
  passing(count: number): void
}

export interface RawTaken {
  readonly socketHandler: SocketHandler
  /** Sends the visitor to a client, makes it wait, or cuts it. */
  start(): void
}

export interface ClusterMember {
  readonly id: string
  readonly url: string
  /** Whether this is the server that gave the list. */
  readonly isSelf: boolean
  /** Whether the last attempt to connect to that server succeeded. True before the first. */
  readonly isReachable: boolean
  /** The number of requests and raw visitors in progress that were sent to that server. */
  readonly inFlight: number
}

/** The last report of a server, at most 10 s old. */
export interface ServerReport {
  readonly version: string
  readonly uptimeSeconds: number
  readonly clients: number
  /** The number of names and ports of tunnels on that server. */
  readonly tunnels: number
  /** The number of requests since its start, and of those in progress. */
  readonly requests: number
  readonly pending: number
  /** The recent traffic of its visitors. Left out if it has no admin listener and so measures nothing. */
  readonly recent?: RecentRow
}

export interface SharedTexts {
  get(key: string): string | undefined
  /** Stores a text under `key` until `untilMs`. Resolves once the other servers have it. */
  put(key: string, text: string, untilMs: number): Promise<void>
  remove(key: string): void
}

/** The data that all servers of a cluster have in memory. */
export interface Shared {
  /** Responses to checks of a certificate authority, which may reach any server. */
  readonly answers: SharedTexts
  readonly count: number
  /** The number of entries of each table, by its name. */
  readonly sizes: ReadonlyMap<string, number>
  /** Returns the report of a server. `undefined` if none has arrived, or its version sends none. */
  reportOf(server: string): ServerReport | undefined
  tokensChanged(): void
}

export interface Servers extends Claims {
  /** The id of this server. */
  readonly node: string
  readonly isOneMachine: boolean
  /** The shared data. `undefined` if the servers share files instead. */
  readonly shared: Shared | undefined
  /**
   * Finds the other servers that hold a name. Rejects if the directory cannot be asked; returns `undefined` if too
   * many searches are in progress.
   */
  find(name: string): readonly Place[] | Promise<readonly Place[]> | undefined
  /** Whether this server is the first of those that have the name. */
  isFirst(name: string): boolean | Promise<boolean>
  othersWith(name: string): readonly Upstream[] | Promise<readonly Upstream[]>
  /**
   * Takes a raw visitor to the tunnel here, or passes it to the server that has it. `first`: bytes of it that were already read.
   */
  accept(socket: Socket, wish: RawWish, raw: RawTaker, first: Uint8Array | undefined): SocketHandler
  /** Sends a raw visitor or a flow to one of these servers. `undefined` if none of them can be reached now. */
  pass(
    places: readonly Place[],
    passenger: RawPassenger,
    handler: StreamHandler,
    opening: RawOpening,
  ): ByteStream | 'TUNNEL_BUSY' | undefined
  /** Returns the servers that are alive, as far as this one knows. Rejects with `CLUSTER_UNREACHABLE`. */
  members(): Promise<readonly ClusterMember[]>
  /** Whether the directory can be asked for the server of a name. */
  readonly isInTouch: boolean
  /** The number of requests and raw visitors in progress that were sent to other servers. */
  readonly inFlight: number
}
