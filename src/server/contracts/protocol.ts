// Contract between the server and a version of HTTP besides 1.1: a part takes connections, and has each request on them visited.

import type { Certificate } from '../../certificates.ts'
import type { ErrorCode } from '../../errors.ts'
import type { HeadLimits, RequestHead } from '../../http/head.ts'
import type { Socket, SocketHandler } from '../../socket.ts'
import type { InputShare } from '../fronts/http-input.ts'
import type { Entrance } from '../fronts/visitor-hop.ts'
import type { Visitor } from '../fronts/visitors.ts'
import type { Deadlines } from '../limits/deadlines.ts'
import type { Bounds } from '../settings/bounds.ts'
import type { ServerSettings } from '../settings/settings.ts'
import type { ChannelVisit, VisitChannel } from './channel.ts'

/** A version that visitors choose on a port of the server. */
export interface Protocol {
  /** The name in ALPN. */
  readonly name: string
  /** Whether visitors may use it now. */
  readonly isSpoken: boolean
  /** The first bytes of a connection without ALPN. No head of HTTP/1.1 begins with these bytes. */
  readonly beginning: Uint8Array
  /** Takes a connection, TLS taken away. */
  accept(share: HttpShare, socket: Socket, entrance: Entrance, seat: VisitorSeat | undefined): SocketHandler
}

/** The state that all connections of visitors share. */
export interface HttpShare extends InputShare {
  readonly deadlines: Deadlines
  readonly limits: Bounds & HeadLimits
  /** Whether each response that begins now is the last on its connection. */
  readonly isDraining: boolean
  /** Returns an object to parse requests into. The connection returns it with `keepHead`. */
  takeHead(): RequestHead
  keepHead(head: RequestHead): void
  /** Makes the visit for this channel, which may have one request after the other. */
  visit(head: RequestHead, channel: VisitChannel): ChannelVisit
  /** A head gets the page of `code`, and begins no visit. */
  refused(code: ErrorCode): void
  entered(connection: Visitor): void
  /** The connection takes no more requests. Called at most once. */
  settled(connection: Visitor): void
  /** The connection is gone. */
  left(connection: Visitor): void
}

/** The place of a connection among those that the server counts. */
export interface VisitorSeat {
  /** The user of the connection, once the server knows it. */
  occupant: { giveWay(): boolean } | undefined
  isRefused(): boolean
  mayGiveUp(): boolean
  gaveUp(count: number): void
  takesRequest(): (() => void) | undefined
  left(): void
}

/** An entrance for visitors besides the ports of the server. */
export interface Door {
  /** The server shows this certificate for `name` on its own ports. */
  show(name: string, certificate: Certificate): void
  /** The certificate for names without one of their own. */
  showDefault(certificate: Certificate): void
  /** Accepts no more connections. `closeActive`: cuts the open ones. */
  close(closeActive: boolean): void
}

export interface DoorTerms {
  readonly settings: ServerSettings
  /** The port of the server. */
  readonly port: number
  readonly share: HttpShare
  readonly entrance: Entrance
  /** Returns `undefined` for a connection that has to be cut at once. */
  readonly admit: (visitor: { readonly remoteAddress: string; terminate(): void }) => VisitorSeat | undefined
  /** Adds this header line, with its CRLF, to all responses over TLS. */
  readonly announce: (line: Uint8Array) => void
}
