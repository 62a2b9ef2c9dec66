// The HTTP/1.1 front of a server: accepts connections, and has the state that they share.

import { HeldBytes } from '../../bytes.ts'
import type { ErrorCode } from '../../errors.ts'
import { type HeadLimits, RequestHead } from '../../http/head.ts'
import type { Turns } from '../../session/turns.ts'
import type { Socket, SocketHandler } from '../../socket.ts'
import type { ServerContext } from '../context/server-context.ts'
import type { VisitChannel } from '../contracts/channel.ts'
import type { LaneSite, VisitorShortcut } from '../contracts/laning.ts'
import type { Entrance, HttpShare, Protocol, Visitor } from '../contracts/protocol.ts'
import type { AdmittedConnection } from '../limits/admission.ts'
import type { Deadlines } from '../limits/deadlines.ts'
import type { LaneOffers } from '../routing/lane-offers.ts'
import type { RoutedRequest, VisitorRouter } from '../routing/routed-request.ts'
import type { Bounds } from '../settings/bounds.ts'
import { HttpConnection } from './http-connection.ts'
import { HttpVisit } from './http-visit.ts'
import type { Visitors } from './visitors.ts'

/** The number of unused head objects that are kept for the next connections. */
const MAX_SPARE_HEADS = 256

export class HttpFront implements HttpShare {
  readonly deadlines: Deadlines
  readonly turns: Turns
  readonly heldInput: HeldBytes = new HeldBytes()
  readonly router: VisitorRouter
  readonly context: ServerContext
  readonly lanes: LaneOffers
  readonly #visitors: Visitors
  /** Head objects that are not in use. A connection needs one only while it is open, and each is large. */
  readonly #heads: RequestHead[] = []

  constructor(context: ServerContext, router: VisitorRouter, lanes: LaneOffers, visitors: Visitors) {
    this.deadlines = context.deadlines
    this.turns = context.turns
    this.router = router
    this.context = context
    this.lanes = lanes
    this.#visitors = visitors
  }

  /** Takes a connection after TLS: HTTP/1.1, or the protocol that ALPN chose. */
  accept(socket: Socket, entrance: Entrance, admitted: AdmittedConnection | undefined): SocketHandler {
    const protocol = socket.protocol && this.context.parts.protocol(({ name }) => name === socket.protocol)
    if (protocol) return protocol.accept(this, socket, entrance, admitted)
    const connection = new HttpConnection(socket, this, entrance, this.takeHead(), admitted)
    this.entered(connection)
    return connection
  }

  takeHead(): RequestHead {
    return this.#heads.pop() ?? new RequestHead()
  }

  keepHead(head: RequestHead): void {
    // A head that was left in the middle of parsing (408, for example) refers to bytes of this connection.
    head.reset()
    if (this.#heads.length < MAX_SPARE_HEADS) this.#heads.push(head)
  }

  entered(connection: Visitor): void {
    this.#visitors.add(connection)
  }

  get limits(): Bounds & HeadLimits {
    return this.context.limits
  }

  /** Returns the protocol that begins with these first bytes. `undefined`: HTTP/1.1. */
  protocolOf(first: Uint8Array): Protocol | undefined {
    return this.context.parts.protocol(({ beginning }) => beginning.every((byte, at) => first[at] === byte))
  }

  visit(head: RequestHead, channel: VisitChannel): HttpVisit {
    return new HttpVisit(head, channel, this.router)
  }

  get isShut(): boolean {
    return this.context.isShut
  }

  laneFor(site: LaneSite<RoutedRequest>): VisitorShortcut<RoutedRequest> | undefined {
    return this.context.tunnels.lanes.forVisitor(site)
  }

  refused(code: ErrorCode): void {
    this.context.parts.noted({ kind: 'refused', code })
  }

  settled(connection: Visitor): void {
    this.#visitors.settled(connection)
  }

  left(connection: Visitor): void {
    this.#visitors.left(connection)
  }
}
