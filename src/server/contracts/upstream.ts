// Contract: anything that can carry a visitor's exchange to an app. Implementations: upstreams/streams.ts (pooled
// byte streams to our own clients, with HTTP/2 on them if the app speaks it; also to another server of a cluster,
// parts/cluster/peer.ts) and parts/json-wire/upstream.ts (one message per request and response).

import type { ErrorCode } from '../../errors.ts'
import type { Hop } from '../../http/forward.ts'
import type { RequestHead } from '../../http/head.ts'
import type { ByteStream, StreamHandler } from '../../session/byte-stream.ts'
import type { Endpoints, Socket, Splice, SpliceDone } from '../../socket.ts'
import type { ConnectionLogins } from '../limits/connection-logins.ts'
import type { Reserved } from './lane.ts'
import type { PeerNote } from './peer-note.ts'

/** The Host and Origin that a client wants in place of the visitor's. */
export interface Rewrite {
  readonly host: string
}

/** Whether a lane can serve such exchanges. `long`: a few of them, between small ones. */
export type Ease = 'easy' | 'long' | 'none'

/**
 * The visitor's side of one exchange: the calls that an upstream may make, only between `begin` and the end.
 *
 * `fronts/http-visit.ts` implements it for every version of HTTP, on a `VisitChannel`. Head and response are HTTP/1.1
 * text, framing included: a channel with another version translates them (`src/http2/`).
 */
export interface Visit {
  /** The validated request head. Its bytes do not change before the exchange has ended. */
  readonly head: RequestHead
  /** Returns the visitor's address and scheme for forwarding headers. The same object while nothing in it changes. */
  hop(rewrite: Rewrite | undefined): Hop
  /** The header lines for the head of the final response, each with its CRLF. `undefined` for none. */
  readonly answerLines: Uint8Array | undefined
  /** The header line for a response without Strict-Transport-Security. */
  readonly hstsLine: Uint8Array | undefined
  /** The header line for a response without Alt-Svc. Default: none. */
  readonly altSvcLine?: Uint8Array | undefined
  /** Whether the visitor showed a verified certificate. Default: false. */
  readonly isCertified?: boolean
  /** Whether the server itself sends the request, for no visitor. Default: false. */
  readonly isProbe?: boolean
  /** The facts that another server of the cluster reported about the request. Default: a visitor of this server sent it. */
  readonly from?: PeerNote | undefined
  /**
   * The logins of the connection (NTLM, Negotiate), if the connection has one visitor only. Default: none; a login
   * that the app ties to its connection then ends with the exchange.
   */
  readonly logins?: ConnectionLogins | undefined
  /** The time limit for the head of the response, in milliseconds. Default: that of the limits. */
  readonly originTimeoutMs?: number | undefined
  /** Whether the visitor allows another request on the connection after this exchange. */
  readonly keepsAlive: boolean
  /**
   * Writes bytes[start, end) of the response, framing included, and copies what the kernel does not take yet.
   * Returns `false` to ask for no more until `Exchange.drained` is called.
   */
  write(bytes: Uint8Array, start?: number, end?: number): boolean
  /** Moves up to `limitBytes` from a socket to the visitor without reading them, if that is possible now (`Socket.spliceTo`). */
  writeFrom?(from: Socket, limitBytes: number, done: SpliceDone): Splice | undefined
  /** Called before the final head of the response is sent, with its status, for reports and statistics. */
  answered(status: number): void
  /** Called after a response with 101: from now on bytes go both ways until either side ends. */
  switched(): void
  /** Ends the response after a switch of protocols: the origin sends no more, but the visitor may. */
  endAnswer(): void
  /**
   * Ends the exchange: the response is complete. If `keepAlive` is false, the visitor's connection closes after it.
   * `ease` of the response: default `none`.
   */
  done(keepAlive: boolean, ease?: Ease): void
  /**
   * Ends the exchange: the response failed. If no byte was written, the visitor gets the page of `code`; otherwise
   * its connection is cut, so that a truncated response never looks complete.
   *
   * `again`: the request can be sent to another upstream without harm; these are the pieces of its body so far.
   * `reason`: more than the code says, for the logs of operator and owner. The visitor does not get it.
   */
  fail(code: ErrorCode, again?: readonly Uint8Array[], reason?: string): void
  /** Called when the request is sent again, on a new stream to the same app. */
  retried?(): void
  /** Stops taking the request body from the visitor. */
  pause(): void
  /** Takes the request body from the visitor again after `pause`. */
  resume(): void
}

export interface Exchange {
  /** Takes a piece of the request body, framing included. After a switch of protocols: any bytes. */
  body(bytes: Uint8Array): void
  /**
   * Moves up to `limitBytes` of the request body from a socket without reading them, if that is possible now (`Socket.spliceTo`).
   */
  bodyFrom?(from: Socket, limitBytes: number, done: SpliceDone): Splice | undefined
  /** Called when the request is complete; after a switch of protocols, when the visitor sent FIN. */
  bodyEnded(): void
  /** Called when `Visit.write` may be called again. */
  drained(): void
  /** Called when the visitor left. Ends the exchange and cancels the work of the origin. */
  abandoned(): void
}

/** An exchange that ignores all calls: the result of `begin` if that failed the visit at once. */
export const DEAD_EXCHANGE: Exchange = { body() {}, bodyEnded() {}, drained() {}, abandoned() {} }

/** A destination of a tunnel's exchanges. Many run at once. */
export interface Upstream {
  readonly wire: 'streams' | 'json'
  /** Exchanges in progress. */
  readonly inFlight: number
  /** Starts an exchange. If it fails the visit before it returns, the result ignores all calls. */
  begin(visit: Visit): Exchange
  /** Reserves a stream to the origin for one visitor. `undefined` if none is free. */
  reserve?(visit: Visit): Reserved | undefined
}

/** The way to one client's app for exchanges and raw connections, on either wire. */
export interface TunnelUpstream extends Upstream {
  /**
   * Opens a stream to the origin for a raw visitor from this address. Returns a code if it cannot. `endpoints`: the
   * addresses for a PROXY header, which is sent first if the client wants one.
   */
  open(handler: StreamHandler, address: string, endpoints: Endpoints | undefined): ByteStream | ErrorCode
  /** Stops: cuts open exchanges and takes no more. */
  stop?(): void
}
