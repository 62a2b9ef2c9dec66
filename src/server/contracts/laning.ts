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
   * Ends the lanes of these tunnels, because their requests may have to go to another destination. Requests that a
   * lane takes from now on return to the main thread, and a lane that was granted does not begin. Requests that were
   * already sent still get their responses.
   */
  recall(tunnels: readonly LayeredTunnel[]): void
  /** Collects what lanes have served and not reported yet. */
  harvest(): void
  /** Returns `served` plus the requests that open lanes have served so far. */
  addedTo(served: LaneServed): LaneServed
  /** Makes a shortcut for a visitor with small requests. `undefined` if the server has no lanes. */
  forVisitor<Request>(site: LaneSite<Request>): VisitorShortcut<Request> | undefined
  /** Makes the lanes for a client on the streams wire. `undefined` if the server has no lanes. */
  forSession(session: Session): SessionLanes | undefined
}

/** A visitor's connection. `Request` is a routed request, which lanes pass through without looking at it. */
export interface LaneSite<Request> {
  readonly socket: Socket
  /** Offers a lane for the host of the visitor's last request. `undefined` if none may begin. */
  offer(): LaneOffer<Request> | undefined
  /** Returns the visitor's address and scheme for forwarding headers. */
  hop(rewrite: Rewrite | undefined): Hop
  /** Returns the generator of request ids. */
  tracing(): Tracing | undefined
  /** Returns the Host of the visitor's last request. */
  hostWithPort(): string
  limits(): RequestLimits
  /** Whether no bytes arrived since the lane started. */
  isUndisturbed(): boolean
  /** Called later, when the lane no longer has the connection. `undefined`: the lane never had it. */
  left(end: LaneEnd | undefined): void
}

/** The permission to begin a lane, with its terms. */
export interface LaneOffer<Request> {
  readonly tunnel: LayeredTunnel
  readonly clauses: readonly LaneClause[]
  /** Continues a request that the lane started and returned to the main thread. */
  resume(arrival: Arrival, upstream: Upstream): Request
}

export interface VisitorShortcut<Request> {
  /** Returns the request that the lane started. `undefined` if it started none. */
  resumed(arrival: Arrival): Request | undefined
  /** Begins the exchange on the stream that the visitor has reserved; without one, as the upstream does. */
  begin(upstream: Upstream, visit: Visit): Exchange
  /** Called when an exchange is over and the connection stays open. */
  exchanged(ease: Ease): void
  readonly isReady: boolean
  /** Whether a lane may begin now. If not, releases the stream that was reserved for it. */
  isGranted(): boolean
  /** Begins a lane later in this turn. Call it only after `isGranted` returned true. */
  enter(): void
  /** Releases the reserved stream: the visitor has left, or needs another stream. */
  giveUp(): void
}

export interface SessionLanes {
  /** Whether a lane can begin now. If not, asks the client for a link from time to time. */
  isReady(): boolean
  /** Called when the client opens no link for lanes. Asks again after `retryMs`; `undefined`: never. */
  refused(retryMs: number | undefined): void
  /** Takes a link that the client opened for lanes and that has carried nothing. Returns `false` if it cannot be used. */
  take(link: Link): boolean
  /**
   * Begins a lane that serves the visitor on the stream, later in this turn. `left` is called before `events.ended`,
   * when the stream belongs to its handler again; `undefined`: the lane never had it.
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
  /** The address of the connection. If `isProxy`, that of a trusted proxy. */
  readonly address: string
  readonly isProxy: boolean
  readonly served: ServedBy
}

export type LaneServed = Pick<LaneCounts, 'requests' | 'bytesIn' | 'bytesOut'>

/** The terms of one part for a lane. A lane follows the terms of all parts. */
export interface LaneClause {
  readonly terms?: Partial<Pick<LaneTerms, 'isForGets' | 'isMeasured' | 'isReported' | 'allotted' | 'log'>>
  /** The number of exchanges per second that the part wants reported one by one. Default 0. */
  reportRate?(): number
  began?(): void
  ended?(served: LaneServed): void
  /** Called with the number of finished exchanges that were not reported one by one. */
  tally?(counts: ExchangeCounts): void
  exchanged?(exchange: LaneExchange): void
  /** Called with the measurements since the last call, if `isMeasured`. */
  measured?(measures: Float64Array, bytesIn: number, bytesOut: number): void
  /** Called with log lines, if there is a `log`. */
  logged?(lines: Uint8Array, count: number): void
}
