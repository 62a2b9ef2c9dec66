// Contract between the server and its optional parts. The server names no part: its caller installs them, in the
// order in which requests pass their layers.

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
import type { ClientConnection, RawEnd } from './clients.ts'
import type { Clock } from './clock.ts'
import type { Arrival, RequestRouter, Route } from './front.ts'
import type { Guarding } from './guarding.ts'
import type { LaneAsking, LaneClause, Laning } from './laning.ts'
import type { Ending, Layer, LayeredTunnel, NameLayer, TunnelRequest } from './layer.ts'
import type { AdmittedVisitor, Entrance, ListenerTerms, PartListener, Protocol } from './protocol.ts'
import type { RawVisit, RawWish } from './raw-visit.ts'
import type { RawTaker, Servers } from './servers.ts'
import type { AppsTerms, StreamsApps } from './streams-context.ts'
import type { OpenTable } from './tables.ts'
import type { TunnelUpstream, Upstream } from './upstream.ts'
import type { Adopt } from './wire.ts'

/** Makes a part. Called while the server is made: no tunnel exists yet, and the part loads nothing that it may not need. */
export type Install = (server: PartServer) => Part

/** The operations of the server that a part may use. */
export interface PartServer {
  readonly settings: ServerSettings
  readonly limits: Bounds
  readonly deadlines: Clock
  readonly turns: Turns
  /** Reports errors of guards, middlewares and observers. */
  readonly faults: Faults
  readonly isSecure: boolean
  readonly isRunning: boolean
  /** Whether the program listens for `request` or `requests`. */
  readonly isHeard: boolean
  /** The combined members of all parts, as in `Part`. */
  readonly parts: {
    noted(note: Note): void
    judge(address: string): ErrorCode | undefined
    share(open: OpenTable): () => void
    recent(): RecentRow | undefined
    harvest(): void
  }
  /**
   * Revokes the tunnel of this name: its clients get `BLOCKED`. Returns whether there was a tunnel, or a part stored
   * something for the name.
   */
  closeTunnel(name: string): boolean
  /** The other servers of the cluster, set by the part that joins it. `undefined` if the server is alone. */
  servers: Servers | undefined
  /** The operator's bans, set by the part that stores them. `undefined` without that part, or without an operator. */
  bans: BanList | undefined
  readonly tunnels: Pick<TunnelRegistry, 'deadlines' | 'hostNames' | 'isDraining'> & {
    guards: Guarding
    lanes: Laning
    find(name: string): Tunnel | undefined
    all(): readonly Tunnel[]
    /** Builds the layers of all tunnels again. */
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

/** The operations of a server that is complete, in addition to those of `PartServer`. */
export interface WholeServer {
  /** The port on which the server listens, or will listen. */
  readonly port: number
  readonly clients: ReadonlySet<ClientConnection>
  /** Routes requests that do not come from a visitor's connection. */
  readonly router: RequestRouter
  readonly visitorCount: number
  stats(): ServerStats
  /** Returns the public URL of a tunnel; for `undefined`, of the control host. */
  urlOf(tunnel: Tunnel | undefined): string
  on<Event extends keyof TunnelServerEvents>(
    event: Event,
    listener: (payload: TunnelServerEvents[Event]) => void,
  ): void
  /** Takes a connection whose visitors come through `entrance`. */
  accept(socket: Socket, entrance: Entrance): SocketHandler
  /** Makes the entrance of visitors that use this scheme with the server itself. */
  entranceOf(proto: Entrance['proto']): Entrance
  readonly raw: RawTaker
  /** Returns the tunnel that a raw visitor wants, if it is on this server; see `RawWish`. */
  tunnelFor(kind: RawWish['kind'], wanted: string): Tunnel | undefined
  /** Opens and closes the public ports of tunnels on other servers. Rejects with `PORT_TAKEN` or `NOT_ALLOWED`. */
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

/** The members that a part may have. Each part has only those that it needs. */
export interface Part {
  readonly name: string
  /** The layer around the routing of each request to a tunnel. */
  readonly layer?: Layer
  /** Returns why this address may not connect, as visitor or client. `undefined` if it may. */
  judge?(address: string): ErrorCode | undefined
  /** Whether no client may have this name. Ports are names like `tcp-20000`. */
  isBlocked?(name: string): boolean
  /** The layer around the routing of each request to a name without a tunnel here. */
  readonly nameLayer?: NameLayer
  /**
   * Takes a connection of a public port before its first byte is read, and passes it to `accept`. Returns `undefined`
   * if it reads nothing.
   */
  enterPort?(socket: Socket, admitted: AdmittedVisitor | undefined, accept: Onward): SocketHandler | undefined
  /**
   * Called when a request on the control host asks to switch protocols. Returns `undefined` if the part does not know
   * the protocol.
   */
  enter?(arrival: Arrival): Route | undefined
  /**
   * Takes a request for a name whose client is away. `token` is the id of the token that holds the name, `''` if it
   * has none, and `undefined` if no client holds it. Returns `undefined` if the part does not take the request.
   */
  kept?(name: string, token: string | undefined, head: RequestHead, address: string): Upstream | undefined
  /** Called when a client got the tunnel. */
  registered?(tunnel: LayeredTunnel, by: Registrant): void
  /** The tunnel options of this part that clients may set. Each function returns a sentence why a value is refused. */
  readonly wishes?: Readonly<Record<string, (wish: unknown) => string | undefined>>
  claimedElsewhere?(name: string): void
  /** Called when the operator closes the tunnel of this name. Returns whether the part stored something for its visitors. */
  closed?(name: string): boolean
  /** Takes clients that agree on no WebSocket subprotocol. Without such a part they are refused. */
  readonly adopt?: Adopt
  /** A version of HTTP that visitors may choose. */
  readonly protocol?: Protocol
  /** Opens a listener of its own if the settings ask for one. If it rejects, the server does not start. */
  open?(terms: ListenerTerms): Promise<PartListener | undefined>
  /** Connects clients to private services. Without such a part, no private service can be offered or used. */
  readonly connecting?: Connecting
  /** Reaches apps that speak HTTP/2. Without such a part, tunnels to them are refused. */
  readonly appsOf?: (terms: AppsTerms) => StreamsApps
  /** Wraps the upstream of an app in the part's own, as the app's client asked. */
  before?(upstream: TunnelUpstream, wishes: Wishes): TunnelUpstream
  /** The URL on which the part listens. `undefined` if it does not listen, or not yet. */
  readonly url?: string | undefined
  /** Returns the recent traffic of this server, for the other servers of the cluster. `undefined` if it is not measured. */
  recent?(): RecentRow | undefined
  /** A request to a tunnel is over. Called while `isHeard` only: a follower learns it at any time, and costs an object. */
  ended?(tunnel: LayeredTunnel, request: TunnelRequest, ending: Ending): void
  /** Called after a request that belonged to no tunnel and failed with a code. */
  missed?(request: MissedRequest): void
  /** Called for an event without a request. */
  noted?(note: Note): void
  /** Called for a new raw visitor. Returns a follower for its events, or `undefined`. */
  followRaw?(visit: RawVisit): RawFollower | undefined
  /** Puts this part in front of a raw visitor's connection. `undefined`: leaves it unchanged. */
  wrap?(socket: Socket, tunnel: LayeredTunnel, address: string): WrappedSocket | undefined
  /**
   * Returns the terms for a lane that serves requests of this visitor without passing the layers: `undefined` for a
   * lane without terms, `'none'` for no lane. Default: a tunnel with this part's layer has no lanes.
   */
  lane?(asking: LaneAsking): LaneClause | 'none' | undefined
  /** Called about four times a second while there are lanes. */
  harvest?(): void
  /** Loads code that only these settings need. Called at the start, and before a reload takes effect. */
  load?(settings: ServerSettings): Promise<void>
  /** Called after a reload: the part makes again what depends on settings. */
  reloaded?(): void
  /** Called before the server listens. If it rejects, the server does not start. */
  start?(server: WholeServer): Promise<void>
  /**
   * Called before the server joins a cluster: opens the shared tables of the part. Returns a function that is called
   * once the entries of the other servers have arrived.
   */
  share?(open: OpenTable): () => void
  /** Called when the server listens. If it rejects, the server does not start. */
  listening?(): Promise<void>
  /**
   * Called when the server accepts no more visitors, before it ends. `SERVER_REPLACED`: another program continues
   * with its sockets.
   */
  drain?(code: 'SERVER_DRAINING' | 'SERVER_REPLACED'): void
  /** Called when the server has no open requests. Resolves when the other servers have none either, after `ms` at most. */
  idle?(ms: number): Promise<void>
  /**
   * Stops the part, after the server has ended or failed to start. Parts stop in reverse order, also those that did not start.
   */
  stop?(): void | Promise<void>
}

/** Takes the connection of a visitor. `way`: direct; with TLS that a proxy ended; or from a proxy that is not trusted. */
export type Onward = (socket: Socket, way: 'direct' | 'https' | 'untrusted') => SocketHandler

/** The client that got a tunnel. */
export interface Registrant {
  readonly rule: Rule
  readonly address: string
  /** The client's request to store webhooks while it is away. */
  readonly inbox: InboxWish | undefined
  readonly wishes: Wishes
}

export interface MissedRequest extends Ending {
  readonly head: RequestHead
  readonly address: string
  readonly code: ErrorCode
}

export type Note =
  /** A connection, or an invalid request head, was refused. */
  | { readonly kind: 'refused'; readonly code: ErrorCode }
  /** A request is sent again, to a client or to another server. */
  | { readonly kind: 'retried' }
  | { readonly kind: 'webhook'; readonly outcome: 'kept' | 'delivered' | 'dropped' | 'full' }

/** The events of a raw visitor, as those of `Follower` for a request. */
export interface RawFollower {
  sent?(): void
  ended?(end: RawEnd): void
}

export interface WrappedSocket {
  readonly socket: Socket
  /** Returns a handler for the events of the bare socket, which passes them to `handler`. */
  handlerFor(handler: SocketHandler): SocketHandler
}
