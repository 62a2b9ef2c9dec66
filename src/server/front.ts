// Contract between a public front and the rest of the server: what a visitor's connection may ask for.

import type { ErrorCode } from '../errors.ts'
import type { RequestHead } from '../http/head.ts'
import type { Socket, SocketHandler } from '../socket.ts'
import type { ClientConnection } from './clients.ts'
import type { Deadlines } from './deadlines.ts'
import type { ServerLimits } from './options.ts'
import type { Tunnel } from './tunnels.ts'
import type { Upstream } from './upstream.ts'
import type { VisitorConnection } from './visitor.ts'

/** A tunnel whose client is reconnecting: see `Tunnel.hold`. */
export interface Holding {
  hold(held: (upstream: Upstream | ErrorCode) => void): (() => void) | ErrorCode
}

/** The connection changes hands: a control connection. */
export interface Takeover {
  takeOver(socket: Socket): SocketHandler
}

/** Where a request goes: an upstream, a wait, another protocol, or an error page. */
export type Route = Upstream | Holding | Takeover | ErrorCode

/** The server's notes on the exchange under way. */
export interface VisitRecord {
  tunnel: Tunnel | undefined
  /** Who is told about it. */
  client: ClientConnection | undefined
  /** Its number there; 0 when nobody wants to know. */
  report: number
  startedAt: number
}

/** What all visitor connections of a server share. */
export interface VisitorHost {
  readonly limits: ServerLimits
  readonly deadlines: Deadlines
  readonly proto: 'http' | 'https'
  /** Heads not in use: a connection needs one only while it is open, and they are not small. */
  readonly heads: RequestHead[]
  readonly isDraining: boolean
  isTrusted(address: string): boolean
  /** An exchange begins, before it is known where it goes. */
  begun(visitor: VisitorConnection): void
  route(visitor: VisitorConnection): Route
  /** An exchange ended; `code` says how, when it failed. */
  finished(visitor: VisitorConnection, code: ErrorCode | undefined): void
  /** The connection is gone. */
  left(visitor: VisitorConnection): void
}
