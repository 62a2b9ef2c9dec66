// Contract between a public front and the rest of the server: what a visitor's connection may ask for.

import type { ErrorCode } from '../errors.ts'
import type { RequestHead } from '../http/head.ts'
import type { Turns } from '../session/turns.ts'
import type { Lane, LaneEnd, LaneExchange, LaneTerms, Socket, SocketHandler } from '../socket.ts'
import type { ClientConnection } from './clients.ts'
import type { Deadlines } from './deadlines.ts'
import type { HeldBytes } from './head-buffer.ts'
import type { Member } from './member.ts'
import type { ServerLimits } from './options.ts'
import type { Tunnel } from './tunnels.ts'
import type { Upstream } from './upstream.ts'
import type { VisitorConnection } from './visitor.ts'

/** The connection changes hands: a control connection. */
export interface Takeover {
  /** Answers on the socket, and takes its events from now on. */
  takeOver(socket: Socket): SocketHandler
}

/** Where the request goes is known later: its tunnel's client is reconnecting, or its token is not looked at yet. */
export interface Holding {
  /** `held` is called once, unless the function returned is called before. A code: nothing more may wait. */
  hold(held: (route: Upstream | Takeover | ErrorCode) => void): (() => void) | ErrorCode
}

/** Where a request goes: an upstream, a wait, another protocol, or an error page. */
export type Route = TunnelRoute | Takeover

/** Where a request for a tunnel goes. */
export type TunnelRoute = Upstream | Holding | ErrorCode

/** The server's notes on the exchange under way. */
export interface VisitRecord {
  tunnel: Tunnel | undefined
  /** It is for a host below the tunnel's own. */
  isBelow: boolean
  /** Who serves it. */
  member: Member | undefined
  /** Who was asked in vain. */
  tried: Set<Member> | undefined
  /** Who is told about it. */
  client: ClientConnection | undefined
  /** Its number there; 0 when nobody wants to know. */
  report: number
  /** When its head was complete, on the clock of `performance.now()`. */
  startedAt: number
}

/** A lane may begin. */
export interface LaneGrant extends Pick<LaneTerms, 'era' | 'since' | 'isTold'> {
  /** It did. */
  began(lane: Lane): void
  /** It served one; only if `isTold`. */
  exchanged(exchange: LaneExchange): void
  ended(lane: Lane, end: LaneEnd): void
  /** It left the visitor's exchange to the program, in the middle: to be noted as any other. */
  goesOn(visitor: VisitorConnection): void
}

/** What all visitor connections of a server share. */
export interface VisitorHost {
  readonly limits: ServerLimits
  readonly deadlines: Deadlines
  /** Who may do more than one portion in this turn of the event loop. */
  readonly turns: Turns
  /** What visitors speak to this server. */
  readonly proto: 'http' | 'https'
  /** A header line for answers over TLS, unless the app has it. */
  hstsLine(): Uint8Array | undefined
  /** What is kept of requests: heads that are not complete, and what came ahead of its turn. */
  readonly heldInput: HeldBytes
  /** Heads not in use: a connection needs one only while it is open, and they are not small. */
  readonly heads: RequestHead[]
  /** The server stops: each answer that begins now says that it is the last on its connection. */
  isDraining(): boolean
  /** Whether forwarding headers from this address are believed. */
  isTrusted(address: string): boolean
  /** An exchange begins, before it is known where it goes. */
  begun(visitor: VisitorConnection): void
  /** Where the request whose head the visitor holds goes. */
  route(visitor: VisitorConnection): Route
  /** The request failed with a code where it was and may go elsewhere: to this upstream, if any. */
  elsewhere(visitor: VisitorConnection, code: ErrorCode): Upstream | undefined
  /** The exchange became a WebSocket. */
  switched(visitor: VisitorConnection): void
  /** An exchange ended; `code` says how, when it failed. */
  finished(visitor: VisitorConnection, code: ErrorCode | undefined): void
  /** What a lane for the host that the visitor asked last has to keep to; `undefined`: there is to be none. */
  laneTerms(visitor: VisitorConnection): LaneGrant | undefined
  /** The connection takes no more requests: its last answer has left, or another protocol has it. Called at most once. */
  settled(visitor: VisitorConnection): void
  /** The connection is gone. */
  left(visitor: VisitorConnection): void
}
