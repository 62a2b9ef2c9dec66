// Contract between the server and its optional parts. The server knows no part by name: who makes it installs them, in the order in
// which requests pass their layers.

import type { ErrorCode } from '../../errors.ts'
import type { RequestHead } from '../../http/head.ts'
import type { RecentRow } from '../../measures.ts'
import type { Turns } from '../../session/turns.ts'
import type { Socket, SocketHandler } from '../../socket.ts'
import type { InboxWish } from '../../wire/control.ts'
import type { Entrance } from '../fronts/visitor-hop.ts'
import type { Counts } from '../limits/holdings.ts'
import type { BookingDesk } from '../routing/booking.ts'
import type { Bounds } from '../settings/bounds.ts'
import type { TunnelServerEvents } from '../settings/options.ts'
import type { ServerSettings } from '../settings/settings.ts'
import type { Counters, ServerStats } from '../settings/stats.ts'
import type { Connecting, Tunnel, TunnelBook } from '../tunnels/tunnel.ts'
import type { ClientConnection } from './clients.ts'
import type { Clock } from './clock.ts'
import type { Arrival, Route } from './front.ts'
import type { Guarding } from './guarding.ts'
import type { LaneAsking, LaneClause, Laning } from './laning.ts'
import type { Ending, Layer, LayeredTunnel, NameLayer, ServedBy } from './layer.ts'
import type { Door, DoorTerms, Protocol } from './protocol.ts'
import type { RawWish } from './raw-visit.ts'
import type { RawTaker, Servers } from './servers.ts'
import type { AppsTerms, StreamsApps } from './streams-context.ts'
import type { OpenTable } from './tables.ts'
import type { Upstream } from './upstream.ts'
import type { Adopt } from './wire.ts'

/** Makes a part of a server. Called while the server is made: no tunnel exists, and nothing is loaded that is not needed. */
export type Install = (server: PartServer) => Part

/** What a part may use of its server. */
export interface PartServer {
  /** As they are now. */
  readonly settings: ServerSettings
  readonly limits: Bounds
  readonly deadlines: Clock
  readonly turns: Turns
  /** What guards, middlewares and observers throw. */
  readonly faults: Faults
  readonly isSecure: boolean
  readonly isRunning: boolean
  /** All of them: as those members of `Part`. */
  readonly parts: {
    noted(note: Note): void
    judge(address: string): ErrorCode | undefined
    share(open: OpenTable): () => void
    recent(): RecentRow | undefined
    harvest(): void
  }
  /** Takes a tunnel back, if there is one of this name: its clients get `BLOCKED`. */
  closeTunnel(name: string): void
  /** The others of its cluster, set by the part that has joined them; `undefined`: there are none. */
  servers: Servers | undefined
  /** `guards`, `lanes`: those of the parts that have them. */
  readonly tunnels: Pick<TunnelBook, 'deadlines' | 'hostNames'> & {
    guards: Guarding
    lanes: Laning
    find(name: string): Tunnel | undefined
    all(): readonly Tunnel[]
    /** Of all of them. */
    routesChanged(): void
  }
  readonly counters: Readonly<Counters>
  /** What clients hold, all together. */
  readonly holdings: { readonly counts: Readonly<Counts> }
  emit<Event extends keyof TunnelServerEvents>(event: Event, payload: TunnelServerEvents[Event]): void
  /** Whether a tunnel of this server has the name, with a client that is there. */
  isServedHere(name: string): boolean
  /** Another server holds the name: its tunnel here is over. */
  lost(name: string): void
  failed(error: Error): void
}

/** What a part may use of a server that is whole, besides. */
export interface WholeServer {
  /** Where it listens; until it does: where it is to. */
  readonly port: number
  /** Those that are connected. */
  readonly clients: ReadonlySet<ClientConnection>
  /** Takes requests that come from no visitor's connection. */
  readonly desk: BookingDesk
  /** Connections of visitors. */
  readonly visitorCount: number
  stats(): ServerStats
  /** The public URL of a tunnel; `undefined`: of the control host. */
  urlOf(tunnel: Tunnel | undefined): string
  on<Event extends keyof TunnelServerEvents>(
    event: Event,
    listener: (payload: TunnelServerEvents[Event]) => void,
  ): void
  /** Takes a connection whose requests come in so. */
  accept(socket: Socket, entrance: Entrance): SocketHandler
  /** How those come in that speak this to the server itself. */
  entranceOf(proto: Entrance['proto']): Entrance
  readonly raw: RawTaker
  /** The tunnel that a raw visitor wants, if it is here; see `RawWish`. */
  tunnelFor(kind: RawWish['kind'], wanted: string): Tunnel | undefined
  /** Public ports of other servers' tunnels. Rejects with `PORT_TAKEN` or `PORT_NOT_ALLOWED`. */
  readonly ports: {
    openElsewhere(kind: 'tcp' | 'udp', port: number): Promise<void>
    closeElsewhere(kind: 'tcp' | 'udp', port: number): void
  }
  /** Another server has claimed the name. */
  claimedElsewhere(name: string): void
  /** Some visitor, client or token may be another's by now: what is not allowed any more is taken back. */
  allowanceChanged(): void
}

export interface Faults {
  /** `plugin`: which one; `text`: a sentence with its name and what it threw. */
  report(plugin: object, code: ErrorCode, text: string, cause: unknown): void
}

/** All that a part may do. A part has the members that it needs. */
export interface Part {
  /** For messages and tests. */
  readonly name: string
  /** Around the routing of each request to a tunnel. */
  readonly layer?: Layer
  /** Why no visitor and no client may come from this address; `undefined`: they may. */
  judge?(address: string): ErrorCode | undefined
  /** Whether no client may have this name, or `tcp-20000` and its like. */
  isBlocked?(name: string): boolean
  /** Around the routing of each request for a name that no tunnel here has. */
  readonly nameLayer?: NameLayer
  /** The control host is asked to switch to a protocol. `undefined`: it is not one of this part. */
  enter?(arrival: Arrival): Route | undefined
  /**
   * Takes a request for a name whose client is away. `token`: names the token of the client that holds it, `''` for none; `undefined`: no
   * client does. `undefined`: the part does not take it.
   */
  kept?(name: string, token: string | undefined, head: RequestHead, address: string): Upstream | undefined
  /** A client holds the tunnel now. `token` likewise; `inbox`: what is to be kept for it while it is away. */
  registered?(tunnel: LayeredTunnel, token: string, inbox: InboxWish | undefined): void
  /** Another server holds the name now. */
  claimedElsewhere?(name: string): void
  /** Makes the connections of clients that agree on no subprotocol. Without such a part they are refused. */
  readonly adopt?: Adopt
  /** A version of HTTP that visitors may choose. */
  readonly protocol?: Protocol
  /** Opens a door, if the settings ask for one. Where this rejects, the server does not start. */
  open?(terms: DoorTerms): Promise<Door | undefined>
  /** Connects clients to private services. Without such a part neither is granted. */
  readonly connecting?: Connecting
  /** Reaches apps that speak HTTP/2. Without such a part no tunnel is opened to them. */
  readonly appsOf?: (terms: AppsTerms) => StreamsApps
  /** Where it listens itself; `undefined`: nowhere, or not yet. */
  readonly url?: string | undefined
  /** What visitors of this server did lately, for the others of its cluster; `undefined`: it is not measured. */
  recent?(): RecentRow | undefined
  /** A request is over that was for no tunnel, and had a code. */
  missed?(request: MissedRequest): void
  /** Something happened that no request has a part in. */
  noted?(note: Note): void
  /** A raw visitor is there. What follows it; `undefined`: nothing does. */
  followRaw?(tunnel: LayeredTunnel, address: string): RawFollower | undefined
  /** The connection of a raw visitor with this part in front of it; `undefined`: as it is. */
  wrap?(socket: Socket, tunnel: LayeredTunnel, address: string): WrappedSocket | undefined
  /**
   * On what terms a lane may serve requests of this visitor, past the layers. `undefined`: on any. Default: a tunnel that has the
   * part's layer has no lanes.
   */
  lane?(asking: LaneAsking): LaneClause | 'none' | undefined
  /** While there are lanes, about four times a second. */
  harvest?(): void
  /** Loads code that only these settings need. At the start, and before other settings take effect. */
  load?(settings: ServerSettings): Promise<void>
  /** The settings are others: what was made of those before is made anew. */
  reloaded?(): void
  /** Before the server listens. Rejects: it does not start. */
  start?(server: WholeServer): Promise<void>
  /**
   * The server is about to join others, which have tables together: opens those of the part. Returns what is called once they have
   * what the others have.
   */
  share?(open: OpenTable): () => void
  /** It listens. Likewise. */
  listening?(): Promise<void>
  /** It takes no more visitors, and ends. `SERVER_REPLACED`: another program goes on with its sockets. */
  drain?(code: 'SERVER_DRAINING' | 'SERVER_REPLACED'): void
  /** Nothing is under way. Resolves when nothing is elsewhere, in so many milliseconds at most. */
  idle?(ms: number): Promise<void>
  /** It has ended, or did not start. Last first; also those that did not start. */
  stop?(): void | Promise<void>
}

export interface MissedRequest extends Ending {
  readonly head: RequestHead
  readonly address: string
  readonly code: ErrorCode
}

export type Note =
  /** A connection, or a head that is none, was refused. */
  | { readonly kind: 'refused'; readonly code: ErrorCode }
  /** A request is sent once more, to a client or to another server. */
  | { readonly kind: 'retried' }
  | { readonly kind: 'webhook'; readonly outcome: 'kept' | 'delivered' | 'dropped' | 'full' }

/** Of a raw visitor, as `Follower` of a request. */
export interface RawFollower {
  sent?(): void
  ended?(end: {
    readonly bytesIn: number
    readonly bytesOut: number
    readonly code: ErrorCode | undefined
    readonly served: ServedBy
  }): void
}

export interface WrappedSocket {
  readonly socket: Socket
  /** What the events of the bare socket go to, and from there to `handler`. */
  handlerFor(handler: SocketHandler): SocketHandler
}
