// Contract between the server and a version of HTTP other than 1.1: a part takes connections, and begins a visit for
// each request on them.

import type { HeldBytes } from '../../bytes.ts'
import type { Certificate } from '../../certificates.ts'
import type { ErrorCode } from '../../errors.ts'
import type { HeadLimits, RequestHead } from '../../http/head.ts'
import type { Turns } from '../../session/turns.ts'
import type { Socket, SocketHandler } from '../../socket.ts'
import type { Deadlines } from '../limits/deadlines.ts'
import type { VisitorHop } from '../limits/visitor-hop.ts'
import type { Bounds } from '../settings/bounds.ts'
import type { ServerSettings } from '../settings/settings.ts'
import type { ChannelVisit, VisitChannel } from './channel.ts'
import type { PeerNote } from './peer-note.ts'

/** A version that visitors choose on a port of the server. */
export interface Protocol {
  readonly name: string
  /** Whether visitors may use this version now. */
  readonly isSpoken: boolean
  /** The first bytes of a connection that uses this version without ALPN. No HTTP/1.1 head begins with them. */
  readonly beginning: Uint8Array
  /** Takes a connection, with TLS removed. */
  accept(
    share: HttpShare,
    socket: Socket,
    entrance: Entrance,
    admitted: AdmittedVisitor | undefined,
  ): SocketHandler
}

/** The state that all connections of visitors share. */
export interface HttpShare extends InputShare {
  readonly deadlines: Deadlines
  readonly limits: Bounds & HeadLimits
  /** Whether each response that begins now is the last one on its connection. */
  readonly isShut: boolean
  /** Returns an unused object for a request head. The connection returns it with `keepHead`. */
  takeHead(): RequestHead
  keepHead(head: RequestHead): void
  /** Makes the visit for this channel, which may have one request after the other. */
  visit(head: RequestHead, channel: VisitChannel): ChannelVisit
  /** Called when a head is refused with the page of `code`, so that no visit begins. */
  refused(code: ErrorCode): void
  entered(connection: Visitor): void
  /** Called at most once, when the connection takes no more requests. */
  settled(connection: Visitor): void
  left(connection: Visitor): void
}

/** The place of a connection among those that the server counts. */
export interface AdmittedVisitor {
  /** The connection that has this place, once the server knows it. */
  occupant: { giveWay(): boolean } | undefined
  isRefused(): boolean
  /**
   * Called when a proxy names the visitor's address. Returns `false` if the address has too many connections: then cut this one.
   */
  moveTo(address: string): boolean
  mayGiveUp(): boolean
  gaveUp(count: number): void
  takesRequest(): (() => void) | undefined
  left(): void
}

/** A listener for visitors that a part opens, besides the ports of the server. */
export interface PartListener {
  /** Called when the server has a certificate for `name`. */
  show(name: string, certificate: Certificate): void
  /** Called with the certificate for names without one of their own. */
  showDefault(certificate: Certificate): void
  /** Accepts no more connections. `closeActive`: cuts the open ones. */
  close(closeActive: boolean): void
}

export interface ListenerTerms {
  readonly settings: ServerSettings
  readonly port: number
  readonly share: HttpShare
  readonly entrance: Entrance
  /** Admits a connection. Returns `undefined` if it must be cut at once. */
  readonly admit: (visitor: {
    readonly remoteAddress: string
    terminate(): void
  }) => AdmittedVisitor | undefined
  /** Adds this header line, with its CRLF, to all responses over TLS. */
  readonly announce: (line: Uint8Array) => void
}

/** How connections reach this server: the scheme, and whom to trust. */
export interface Entrance {
  /** The scheme between the visitor and this server. */
  readonly proto: 'http' | 'https'
  /** Whether to trust forwarding headers from this address. */
  isTrusted(address: string): boolean
  /** Returns a header line for app responses without Strict-Transport-Security; see `Visit.hstsLine`. */
  hstsLine(): Uint8Array | undefined
  /** Returns a header line for app responses without Alt-Svc (RFC 7838). Default: none. */
  altSvcLine?(): Uint8Array | undefined
  /** The server that sent all requests of this connection. Default: visitors sent them. */
  readonly from?: PeerNote
  /** Whether requests get ids. Default: false. */
  isTraced?(): boolean
  /** Returns the visitor's address and scheme, on a connection from another server. `undefined` if the request has none. */
  visitorOf?(head: RequestHead): VisitorHop | undefined
}

export interface Visitor {
  /** Called when the trusted proxies changed: the connection works out its visitor's address again. */
  forgetHop(): void
  /** Called when the server stops: the next response is the last one on this connection. */
  drain(): void
  /** Called when the time for draining is over. */
  letGo(): void
}

/** The state that the inputs of all connections share. */
export interface InputShare {
  readonly turns: Turns
  /** Counts the stored bytes of requests: incomplete heads, and data that waits for its turn. */
  readonly heldInput: HeldBytes
  readonly limits: { readonly maxPipelinedBytes: number; readonly maxAllInputBytes: number }
}
