// Contract between the server and its optional parts. The server knows no part by name: who makes it installs them, in the order in
// which requests pass their layers.

import type { ErrorCode } from '../../errors.ts'
import type { RequestHead } from '../../http/head.ts'
import type { RecentRow } from '../../measures.ts'
import type { BanList } from '../../operations.ts'
import type { Turns } from '../../session/turns.ts'
import type { Socket, SocketHandler } from '../../socket.ts'
import type { InboxWish, Wishes } from '../../wire/control.ts'
import type { Counts } from '../limits/quotas.ts'
import type { Bounds } from '../settings/bounds.ts'
import type { TunnelServerEvents } from '../settings/options.ts'
import type { Rule } from '../settings/policy.ts'
import type { ServerSettings } from '../settings/settings.ts'
import type { Counters, ServerStats } from '../settings/stats.ts'
import type { Connecting, Tunnel, TunnelRegistry } from '../tunnels/tunnel.ts'
import type { ClientConnection } from './clients.ts'
import type { Clock } from './clock.ts'
import type { Arrival, RequestRouter, Route } from './front.ts'
import type { Guarding } from './guarding.ts'
import type { LaneAsking, LaneClause, Laning } from './laning.ts'
import type { Ending, Layer, LayeredTunnel, NameLayer, ServedBy } from './layer.ts'
import type { AdmittedVisitor, Entrance, ListenerTerms, PartListener, Protocol } from './protocol.ts'
import type { RawWish } from './raw-visit.ts'
import type { RawTaker, Servers } from './servers.ts'
import type { AppsTerms, StreamsApps } from './streams-context.ts'
import type { OpenTable } from './tables.ts'
import type { TunnelUpstream, Upstream } from './upstream.ts'
import type { Adopt } from './wire.ts'

/** Makes a part of a server. Called while the server is made: no tunnel exists, and nothing is loaded that is not needed. */
export type Install = (server: PartServer) => Part

/** The parts of the server that a part may use. */
export interface PartServer {
  readonly settings: ServerSettings
  readonly limits: Bounds
  readonly deadlines: Clock
  readonly turns: Turns
  /** The faults of guards, middlewares and observers. */
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
  /** Revokes the tunnel of this name: its clients get `BLOCKED`. Returns whether there was a tunnel, or something that a part keeps. */
  closeTunnel(name: string): boolean
  /** The others of its cluster, set by the part that has joined them; `undefined`: there are none. */
  servers: Servers | undefined
  /** The operator's bans, set by the part that keeps them; `undefined`: there is none, or no operator. */
  bans: BanList | undefined
  readonly tunnels: Pick<TunnelRegistry, 'deadlines' | 'hostNames' | 'isDraining'> & {
    guards: Guarding
    lanes: Laning
    find(name: string): Tunnel | undefined
    all(): readonly Tunnel[]
    /** Makes the layers of all tunnels again. */
    routesChanged(): void
  }
  readonly counters: Readonly<Counters>
  readonly quotas: { readonly counts: Readonly<Counts> }
  emit<Event extends keyof TunnelServerEvents>(event: Event, payload: TunnelServerEvents[Event]): void
  isBlocked(name: string): boolean
  isServedHere(name: string): boolean
  lost(name: string): void
  failed(error: Error): void
}

/** The further operations of a server that is complete. */
export interface WholeServer {
  /** The port on which it listens, or will listen. */
  readonly port: number
  readonly clients: ReadonlySet<ClientConnection>
  /** Takes requests that come from no visitor's connection. */
  readonly router: RequestRouter
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
  /** Makes the entrance for those who speak this protocol to the server itself. */
  entranceOf(proto: Entrance['proto']): Entrance
  readonly raw: RawTaker
  /** The tunnel that a raw visitor wants, if it is here; see `RawWish`. */
  tunnelFor(kind: RawWish['kind'], wanted: string): Tunnel | undefined
  /** The public ports of other servers' tunnels. Rejects with `PORT_TAKEN` or `NOT_ALLOWED`. */
  readonly ports: {
    openElsewhere(kind: 'tcp' | 'udp', port: number): Promise<void>
    closeElsewhere(kind: 'tcp' | 'udp', port: number): void
  }
  claimedElsewhere(name: string): void
  /** Checks every visitor, client and token again, and revokes what is no longer allowed. */
  allowanceChanged(): void
}

export interface Faults {
  /** Reports a fault of `plugin`; `text` is a sentence with its name and the error. */
  report(plugin: object, code: ErrorCode, text: string, cause: unknown): void
}

/** All that a part may do. A part has the members that it needs. */
export interface Part {
  readonly name: string
  /** The layer around the routing of each request to a tunnel. */
  readonly layer?: Layer
  /** Returns why no visitor and no client may come from this address. `undefined` if they may. */
  judge?(address: string): ErrorCode | undefined
  /** Whether no client may have this name, or `tcp-20000` and similar ones. */
  isBlocked?(name: string): boolean
  /** The layer around the routing of each request for a name without a tunnel here. */
  readonly nameLayer?: NameLayer
  /**
   * Takes a connection of a public port before its first byte is read, and passes it to `accept`. `undefined`: nothing reads it before.
   */
  enterPort?(socket: Socket, admitted: AdmittedVisitor | undefined, accept: Onward): SocketHandler | undefined
  /** The control host is asked to switch to a protocol. `undefined`: it is not one of this part. */
  enter?(arrival: Arrival): Route | undefined
  /**
   * Takes a request for a name whose client is away. `token`: names the token of the client that holds it, `''` for none; `undefined`: no
   * client does. `undefined`: the part does not take it.
   */
  kept?(name: string, token: string | undefined, head: RequestHead, address: string): Upstream | undefined
  /** A client holds the tunnel now. */
  registered?(tunnel: LayeredTunnel, by: Registrant): void
  /** The options that clients may set for a tunnel, by name: returns why this one is refused, as a sentence. */
  readonly wishes?: Readonly<Record<string, (wish: unknown) => string | undefined>>
  claimedElsewhere?(name: string): void
  /** The operator closes the tunnel of this name. Returns whether the part kept something for its visitors. */
  closed?(name: string): boolean
  /** Makes the connections of clients that agree on no subprotocol. Without such a part they are refused. */
  readonly adopt?: Adopt
  /** A version of HTTP that visitors may choose. */
  readonly protocol?: Protocol
  /** Opens a door, if the settings ask for one. Where this rejects, the server does not start. */
  open?(terms: ListenerTerms): Promise<PartListener | undefined>
  /** Connects clients to private services. Without such a part neither is granted. */
  readonly connecting?: Connecting
  /** Reaches apps that speak HTTP/2. Without such a part no tunnel is opened to them. */
  readonly appsOf?: (terms: AppsTerms) => StreamsApps
  /** Puts the part in front of the upstream of an app, as its client wishes. */
  before?(upstream: TunnelUpstream, wishes: Wishes): TunnelUpstream
  /** The URL on which the part listens. `undefined` if it does not, or not yet. */
  readonly url?: string | undefined
  /** Returns the recent traffic of this server, for the others of its cluster. `undefined` if it is not measured. */
  recent?(): RecentRow | undefined
  /** A request is over that was for no tunnel, and had a code. */
  missed?(request: MissedRequest): void
  /** Called for an event without a request. */
  noted?(note: Note): void
  /** A raw visitor is there. Returns its follower; `undefined`: nothing does. */
  followRaw?(tunnel: LayeredTunnel, address: string): RawFollower | undefined
  /** The connection of a raw visitor with this part in front of it; `undefined`: unchanged. */
  wrap?(socket: Socket, tunnel: LayeredTunnel, address: string): WrappedSocket | undefined
  /**
   * Returns the terms for a lane that serves requests of this visitor without the layers. `undefined`: no terms. `undefined`:
   * on any. Default: a tunnel that has the part's layer has no lanes.
   */
  lane?(asking: LaneAsking): LaneClause | 'none' | undefined
  /** Called about four times a second while there are lanes. */
  harvest?(): void
  /** Loads code that only these settings need. At the start, and before other settings take effect. */
  load?(settings: ServerSettings): Promise<void>
  /** The settings are others: what was made of those before is made again. */
  reloaded?(): void
  /** Starts before the server listens. If it rejects, the server does not start. Rejects: it does not start. */
  start?(server: WholeServer): Promise<void>
  /**
   * The server is about to join others, which have tables together: opens those of the part. Returns what is called once they have
   * what the others have.
   */
  share?(open: OpenTable): () => void
  /** Called when the server listens. If it rejects, the server does not start. Also. */
  listening?(): Promise<void>
  /**
   * Called when the server accepts no more visitors and will end. `SERVER_REPLACED`: another program goes on with its sockets.
   */
  drain?(code: 'SERVER_DRAINING' | 'SERVER_REPLACED'): void
  /**
   * Called when the server has no open requests. Resolves when the other servers have none, after `ms` at most.
   */
  idle?(ms: number): Promise<void>
  /**
   * Stops, after the server has ended or failed to start. Parts stop in reverse order, also those that did not start.
   */
  stop?(): void | Promise<void>
}

/** Takes the connection of a visitor. `way`: its own; TLS up to the proxy; from a proxy that is not to be believed. */
export type Onward = (socket: Socket, way: 'direct' | 'https' | 'untrusted') => SocketHandler

/** The client that holds a tunnel now. */
export interface Registrant {
  readonly rule: Rule
  readonly address: string
  /** The webhooks that are kept for it while it is away. */
  readonly inbox: InboxWish | undefined
  readonly wishes: Wishes
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

/** The events of a raw visitor, as `Follower` of a request. */
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
  /** Returns a handler for the events of the bare socket, which passes them to `handler`. */
  handlerFor(handler: SocketHandler): SocketHandler
}
