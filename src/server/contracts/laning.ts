// Contract: lanes, the quicker way for easy requests of one visitor. Implementation: parts/lanes/. Without it: NO_LANES of tunnels/tunnels.ts.

import type {
  ExchangeCounts,
  LaneCounts,
  LaneEnd,
  LaneExchange,
  LaneTerms,
  RequestLimits,
} from '../../accelerator.ts'
import type { Hop } from '../../http/forward.ts'
import type { RequestHead } from '../../http/head.ts'
import type { Tracing } from '../../http/tracing.ts'
import type { LendableStream } from '../../session/byte-stream.ts'
import type { Link } from '../../session/link.ts'
import type { Session } from '../../session/session.ts'
import type { Socket } from '../../socket.ts'
import type { Arrival } from './front.ts'
import type { LaneEvents } from './lane.ts'
import type { LayeredTunnel, ServedBy } from './layer.ts'
import type { Ease, Exchange, Rewrite, Upstream, Visit } from './upstream.ts'

export interface Laning {
  readonly count: number
  /**
   * Requests to these tunnels may have to go somewhere else: those that a lane takes from now on, or one that was granted and
   * is about to begin, come back to the main thread. Sent requests still get their responses.
   */
  recall(tunnels: readonly LayeredTunnel[]): void
  /** Passes on what lanes have served and not reported. */
  harvest(): void
  /** The total, with the requests that open lanes have served so far. */
  addedTo(served: LaneServed): LaneServed
  /** Makes a shortcut for a visitor whose requests are small. `undefined` if there is none. */
  forVisitor<Request>(site: LaneSite<Request>): VisitorShortcut<Request> | undefined
  /** Makes the lanes of a client on the streams wire. `undefined` if there are none. */
  forSession(session: Session): SessionLanes | undefined
}

/** A visitor's connection. `Request`: a routed request, of which lanes know nothing. */
export interface LaneSite<Request> {
  readonly socket: Socket
  /** Offers a lane for the host of the visitor's last request. `undefined` if none may begin. */
  offer(): LaneOffer<Request> | undefined
  /** Returns what origins learn about the visitor. */
  hop(rewrite: Rewrite | undefined): Hop
  /** Returns the generator of request ids. */
  tracing(): Tracing | undefined
  /** Returns the Host of the visitor's last request. */
  hostWithPort(): string
  limits(): RequestLimits
  /** Whether nothing has arrived since the lane was entered. */
  isUndisturbed(): boolean
  /** The connection is no longer the lane's, later; `undefined`: it never was. */
  left(end: LaneEnd | undefined): void
}

/** A lane may begin, on these terms. */
export interface LaneOffer<Request> {
  readonly tunnel: LayeredTunnel
  readonly clauses: readonly LaneClause[]
  /** The lane left the visitor's exchange to the main thread, in the middle: a request like any other. */
  resume(arrival: Arrival, upstream: Upstream): Request
}

export interface VisitorShortcut<Request> {
  /** A request that went this way already, in part; `undefined`: it did not. */
  resumed(arrival: Arrival): Request | undefined
  /** Begins the exchange on the visitor's own way to the upstream, or as the upstream does where there is none. */
  begin(upstream: Upstream, visit: Visit): Exchange
  /** An exchange is over, and the connection stays open. */
  exchanged(ease: Ease): void
  readonly isReady: boolean
  /** Whether a lane may begin now. Without one, what was reserved for it is given up. */
  isGranted(): boolean
  /** Begins a lane, in a moment. To be called behind `isGranted`. */
  enter(): void
  /** The visitor is gone, or its stream is not what it needs. */
  giveUp(): void
}

export interface SessionLanes {
  /** Whether a lane can begin now. If not, asks the client for a link now and then. */
  isReady(): boolean
  /** The client opens no link for lanes; it may be asked again after `retryMs`, or never. */
  refused(retryMs: number | undefined): void
  /** The client opened a link for lanes, which has carried nothing. `false`: it cannot be used. */
  take(link: Link): boolean
  /**
   * Begins a lane that serves the visitor on the stream, in a moment. `left`: the stream is its handler's again, before
   * `events.ended`; `undefined`: it never was the lane's.
   */
  lend(
    stream: LendableStream,
    visitor: Socket,
    terms: LaneTerms,
    events: LaneEvents,
    left: (end: LaneEnd | undefined) => void,
  ): { stop(): void }
}

/** The visitor for whom a lane is requested. */
export interface LaneAsking {
  readonly tunnel: LayeredTunnel
  readonly head: RequestHead
  /** The address of the connection: a trusted proxy's, if `isProxy`. */
  readonly address: string
  readonly isProxy: boolean
  readonly served: ServedBy
}

export type LaneServed = Pick<LaneCounts, 'requests' | 'bytesIn' | 'bytesOut'>

/** The terms of one part for a lane. The lane keeps to the clauses of all parts. */
export interface LaneClause {
  readonly terms?: Partial<Pick<LaneTerms, 'isForGets' | 'isMeasured' | 'isReported' | 'allotted' | 'log'>>
  /** The number of exchanges per second that it wants reported one by one. Default 0. */
  reportRate?(): number
  began?(): void
  ended?(served: LaneServed): void
  /** Exchanges that are over and were not reported one by one. */
  tally?(counts: ExchangeCounts): void
  exchanged?(exchange: LaneExchange): void
  /** Called with the measures since the last call. Only with `isMeasured`. */
  measured?(measures: Float64Array, bytesIn: number, bytesOut: number): void
  /** Called with log lines. Only with a `log`. */
  logged?(lines: Uint8Array, count: number): void
}
