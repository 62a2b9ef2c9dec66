// Contract between the server and a version of HTTP besides 1.1: a part takes connections, and has each request on them visited.

import type { Certificate } from '../../certificates.ts'
import type { ErrorCode } from '../../errors.ts'
import type { HeadLimits, RequestHead } from '../../http/head.ts'
import type { Socket, SocketHandler } from '../../socket.ts'
import type { Deadlines } from '../deadlines.ts'
import type { ChannelVisit, VisitChannel } from '../fronts/channel.ts'
import type { InputShare } from '../fronts/http-input.ts'
import type { Entrance } from '../fronts/visitor-hop.ts'
import type { ServerLimits } from '../options.ts'
import type { ServerSettings } from '../settings.ts'
import type { Visitor } from '../visitors.ts'

/** A version that visitors choose on a port of the server. */
export interface Protocol {
  /** As ALPN calls it. */
  readonly name: string
  /** Visitors may speak it now. */
  readonly isSpoken: boolean
  /** How a connection begins whose visitor knows that the server speaks it. No head of HTTP/1.1 begins like that. */
  readonly beginning: Uint8Array
  /** Takes a connection, TLS taken away. */
  accept(share: HttpShare, socket: Socket, entrance: Entrance, seat: VisitorSeat | undefined): SocketHandler
}

/** What connections of visitors share. */
export interface HttpShare extends InputShare {
  readonly deadlines: Deadlines
  readonly limits: ServerLimits & HeadLimits
  /** Each answer that begins now says that it is the last on its connection. */
  readonly isDraining: boolean
  /** What one request after the other is parsed into; it comes back by `keepHead`. */
  takeHead(): RequestHead
  keepHead(head: RequestHead): void
  /** For requests of this channel, one after the other. */
  visit(head: RequestHead, channel: VisitChannel): ChannelVisit
  /** A head is answered with the page of `code`, and begins no visit. */
  refused(code: ErrorCode): void
  entered(connection: Visitor): void
  /** The connection takes no more requests. Called at most once. */
  settled(connection: Visitor): void
  /** The connection is gone. */
  left(connection: Visitor): void
}

/** Where a connection is counted. */
export interface VisitorSeat {
  /** Who uses the connection, once it is known. */
  occupant: { giveWay(): boolean } | undefined
  isRefused(): boolean
  mayGiveUp(): boolean
  gaveUp(count: number): void
  takesRequest(): (() => void) | undefined
  left(): void
}

/** A way in for visitors besides the ports of the server. */
export interface Door {
  /** Visitors who come by TCP get this certificate for `name`. */
  show(name: string, certificate: Certificate): void
  /** For names that have no other. */
  showDefault(certificate: Certificate): void
  /** Takes no more connections. `closeActive`: those that are open are cut. */
  close(closeActive: boolean): void
}

export interface DoorTerms {
  readonly settings: ServerSettings
  /** Where the server listens. */
  readonly port: number
  readonly share: HttpShare
  readonly entrance: Entrance
  /** `undefined`: the connection is to be cut at once. */
  readonly admit: (visitor: { readonly remoteAddress: string; terminate(): void }) => VisitorSeat | undefined
  /** Answers over TLS name the door from now on, by this header line with its CRLF. */
  readonly announce: (line: Uint8Array) => void
}
