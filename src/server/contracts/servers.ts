// Contract between a server and the others of its cluster. Implementation: parts/cluster/. Without it a server is alone.

import type { Place } from '../../directory.ts'
import type { ErrorCode } from '../../errors.ts'
import type { RecentRow } from '../../measures.ts'
import type { ByteStream, StreamHandler } from '../../session/byte-stream.ts'
import type { Endpoints, Socket, SocketHandler } from '../../socket.ts'
import type { Tunnel } from '../tunnels/tunnel.ts'
import type { RawWay, RawWish } from './raw-visit.ts'
import type { Upstream } from './upstream.ts'

/** Names that a client may have. */
export interface Claimed {
  readonly names: readonly string[]
  /** The resume secret of the client's tunnel. */
  readonly secret: string
}

/** Decides which server has a name. */
export interface Claims {
  /** All of the names, or none: then a code says why. `resume`: the secret that the client shows. */
  claim(
    names: readonly string[],
    resume: string | undefined,
    isShared: boolean,
    isTls?: boolean,
  ): Promise<Claimed | ErrorCode>
  /** No tunnel of this server has the name any more. */
  release(name: string): void
}

/** A raw visitor, as one server tells another of it. */
export interface RawPassenger extends Pick<RawWish, 'kind' | 'wanted'> {
  readonly endpoints: Endpoints
}

/** The opening of one raw visitor: it is joined to the tunnel's client after the other server has admitted it. */
export interface RawOpening {
  opened(): void
}

/** Takes raw visitors to tunnels of this server. */
export interface RawTaker {
  take(socket: Socket, tunnel: Tunnel, way: RawWay): RawTaken
  /** Takes the connection of a raw visitor to the tunnel that it wants, here or at another server. */
  accept(socket: Socket, wish: RawWish): SocketHandler
  /** Counts `count` more in flight to other servers; negative: fewer. */
  passing(count: number): void
}

export interface RawTaken {
  readonly socketHandler: SocketHandler
  /** Forwards it, lets it wait, or cuts it. */
  start(): void
}

export interface ClusterMember {
  readonly id: string
  readonly url: string
  /** Whether it is the server that was asked. */
  readonly isSelf: boolean
  /** The last connection to it could be made, if there was any. */
  readonly isReachable: boolean
  /** Requests and raw visitors that were sent on to it, and are in progress. */
  readonly inFlight: number
}

/** The last report of a server, at most 10 s old. */
export interface ServerReport {
  readonly version: string
  readonly uptimeSeconds: number
  readonly clients: number
  /** Names and ports that are held there. */
  readonly tunnels: number
  /** Requests since its start, and those that are in progress. */
  readonly requests: number
  readonly pending: number
  /** The recent traffic of its visitors. Left out: it has no admin listener, so it measures nothing. */
  readonly recent?: RecentRow
}

export interface SharedTexts {
  get(key: string): string | undefined
  /** Resolves once the other servers have it. */
  put(key: string, text: string, untilMs: number): Promise<void>
  remove(key: string): void
}

/** The data that all servers of a cluster have in memory. */
export interface Shared {
  /** Responses to checks of a certificate authority, which may come to any server. */
  readonly answers: SharedTexts
  readonly count: number
  /** Entries of each table, by its name. */
  readonly sizes: ReadonlyMap<string, number>
  /** Returns the report of a server. `undefined` if it has not reported, or its version does not. */
  reportOf(server: string): ServerReport | undefined
  tokensChanged(): void
}

export interface Servers extends Claims {
  /** The id of this server. */
  readonly node: string
  readonly isOneMachine: boolean
  /** The shared data. `undefined` if the servers share files instead. */
  readonly shared: Shared | undefined
  /** The servers that hold a name, but for this one. Rejects when that cannot be asked; `undefined`: too much is asked already. */
  find(name: string): readonly Place[] | Promise<readonly Place[]> | undefined
  /** Whether this server was the first of those that have the name. */
  isFirst(name: string): boolean | Promise<boolean>
  othersWith(name: string): readonly Upstream[] | Promise<readonly Upstream[]>
  /** Takes a raw visitor: to the tunnel here, or on to the server that has it. `first`: bytes of it that were read already. */
  accept(socket: Socket, wish: RawWish, raw: RawTaker, first: Uint8Array | undefined): SocketHandler
  /** Sends a raw visitor or a flow to one of these servers. `undefined`: none of them can be reached just now. */
  pass(
    places: readonly Place[],
    passenger: RawPassenger,
    handler: StreamHandler,
    opening: RawOpening,
  ): ByteStream | 'TUNNEL_BUSY' | undefined
  /** The servers that live, as this one sees them. Rejects with `CLUSTER_UNREACHABLE`. */
  members(): Promise<readonly ClusterMember[]>
  /** Whether other servers can be asked who has a name. */
  readonly isInTouch: boolean
  /** Requests and raw visitors that were sent on to others, and are in progress. */
  readonly inFlight: number
}
