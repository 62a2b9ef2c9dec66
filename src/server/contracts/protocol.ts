// Contract between the server and a version of HTTP besides 1.1: a part takes connections, and has each request on them visited.

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
  /** Whether visitors may use it now. */
  readonly isSpoken: boolean
  /** The first bytes of a connection without ALPN. No head of HTTP/1.1 begins with these bytes. */
  readonly beginning: Uint8Array
  /** Takes a connection, TLS taken away. */
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
  /** Whether each response that begins now is the last on its connection. */
  readonly isShut: boolean
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
  left(connection: Visitor): void
}

/** The place of a connection among those that the server counts. */
export interface AdmittedVisitor {
  /** The user of the connection, once the server knows it. */
  occupant: { giveWay(): boolean } | undefined
  isRefused(): boolean
  /** A proxy names the visitor. `false`: the address has too many, and the connection is to be cut. */
  moveTo(address: string): boolean
  mayGiveUp(): boolean
  gaveUp(count: number): void
  takesRequest(): (() => void) | undefined
  left(): void
}

/** An entrance for visitors besides the ports of the server. */
export interface PartListener {
  /** The server shows this certificate for `name` on its own ports. */
  show(name: string, certificate: Certificate): void
  /** The certificate for names without one of their own. */
  showDefault(certificate: Certificate): void
  /** Accepts no more connections. `closeActive`: cuts the open ones. */
  close(closeActive: boolean): void
}

export interface ListenerTerms {
  readonly settings: ServerSettings
  readonly port: number
  readonly share: HttpShare
  readonly entrance: Entrance
  /** Returns `undefined` for a connection that has to be cut at once. */
  readonly admit: (visitor: {
    readonly remoteAddress: string
    terminate(): void
  }) => AdmittedVisitor | undefined
  /** Adds this header line, with its CRLF, to all responses over TLS. */
  readonly announce: (line: Uint8Array) => void
}

/** The way that a connection came in. */
export interface Entrance {
  /** The scheme between the visitor and this server. */
  readonly proto: 'http' | 'https'
  /** Whether forwarding headers from this address are believed. */
  isTrusted(address: string): boolean
  /** A header line for responses of the app that have none of its kind; see `Visit.hstsLine`. */
  hstsLine(): Uint8Array | undefined
  /** The same: another way to the server (RFC 7838). Default: none. */
  altSvcLine?(): Uint8Array | undefined
  /** The server that sent all requests of this connection. Default: they are of visitors. */
  readonly from?: PeerNote
  /** Whether requests get ids. Default: not. */
  isTraced?(): boolean
  /** The visitor's address, on the connection of another server. `undefined` if the request has none. */
  visitorOf?(head: RequestHead): VisitorHop | undefined
}

export interface Visitor {
  /** The server trusts others now. */
  forgetHop(): void
  /** The server stops: the next response is the last one here. */
  drain(): void
  /** The time to leave is over. */
  letGo(): void
}

/** The state that the inputs of all connections share. */
export interface InputShare {
  readonly turns: Turns
  /** Counts the bytes kept of requests: incomplete heads, and data that came before its turn. */
  readonly heldInput: HeldBytes
  readonly limits: { readonly maxPipelinedBytes: number; readonly maxAllInputBytes: number }
}
