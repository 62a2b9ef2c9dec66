// Contract: anything the server can put a visitor's exchange on. Implementations: upstreams/streams.ts (pooled byte
// streams to our own clients, with HTTP/2 on them where the app speaks it), parts/json-wire/upstream.ts (one message per request and response). Another server of a cluster
// takes the first as well (parts/cluster/peer.ts).

import type { ErrorCode } from '../../errors.ts'
import type { Hop } from '../../http/forward.ts'
import type { RequestHead } from '../../http/head.ts'
import type { ByteStream, StreamHandler } from '../../session/byte-stream.ts'
import type { Endpoints, Socket, Splice, SpliceDone } from '../../socket.ts'
import type { ConnectionLogins } from '../limits/connection-logins.ts'
import type { Reserved } from './lane.ts'
import type { PeerNote } from './peer-note.ts'

/** The value that a tunnel's client wants instead of the visitor's Host. */
export interface Rewrite {
  readonly host: string
}

/** Whether a lane can serve such exchanges. `long`: a few of them, between easy ones. */
export type Ease = 'easy' | 'long' | 'none'

/**
 * The visitor's side of one exchange: what an upstream may ask and do. Called only between `begin` and its end.
 *
 * `fronts/http-visit.ts` implements it for every version of HTTP, on a `VisitChannel`. Head and response are HTTP/1.1 text, framing
 * included: a channel that speaks another version translates them (`src/http2/`).
 */
export interface Visit {
  /** The validated request head. Its bytes stay untouched until the exchange ended. */
  readonly head: RequestHead
  /** Returns what the origin learns about the visitor's way; the same object as long as nothing of it changes. */
  hop(rewrite: Rewrite | undefined): Hop
  /** The header lines for the head of the final response, each with its CRLF. `undefined` for none. */
  readonly answerLines: Uint8Array | undefined
  /** The same, for a response that has no Strict-Transport-Security. */
  readonly hstsLine: Uint8Array | undefined
  /** The same, for a response that has no Alt-Svc. Default: none. */
  readonly altSvcLine?: Uint8Array | undefined
  /** Whether the connection showed a client's certificate, and it was verified. Default: it did not. */
  readonly isCertified?: boolean
  /** The server itself asks, for no visitor. Default: it does not. */
  readonly isProbe?: boolean
  /**
   * The facts about it that servers of a cluster tell each other. Default: it is a visitor's of this server, and nothing else.
   */
  readonly from?: PeerNote | undefined
  /**
   * The logins of its connection, if that is one visitor's alone. Default: what an app takes for a login is lost behind the
   * exchange.
   */
  readonly logins?: ConnectionLogins | undefined
  /** The time limit for the head of the response. Default: that of the limits. */
  readonly originTimeoutMs?: number | undefined
  /** Whether the connection may go on after this exchange, as far as the visitor is concerned. */
  readonly keepsAlive: boolean
  /**
   * Writes bytes[start, end) of the response, framing included, and keeps a copy of what the kernel does not take yet.
   * `false`: stop until `Exchange.drained` is called.
   */
  write(bytes: Uint8Array, start?: number, end?: number): boolean
  /** Sends up to `limitBytes` of a socket unseen, like `write`, if that is possible now (`Socket.spliceTo`). */
  writeFrom?(from: Socket, limitBytes: number, done: SpliceDone): Splice | undefined
  /** The final head of the response is about to go out: its status, for reports and statistics. */
  answered(status: number): void
  /** The answer switched protocols (101): from now on bytes go both ways until either side ends. */
  switched(): void
  /** Ends the response after a switch: the origin sends no more, while the visitor may. */
  endAnswer(): void
  /**
   * The response is complete. `keepAlive` false closes the visitor's connection behind it. `ease`: of the response.
   * Default `none`. Ends the exchange.
   */
  done(keepAlive: boolean, ease?: Ease): void
  /**
   * The response failed. Before any byte was written the visitor gets the page of `code`; after that its connection
   * is cut, so that a truncated response never looks complete. Ends the exchange.
   *
   * `again`: the request may be sent once more, on another upstream, without harm; these are the pieces of its body so far. `reason`:
   * more than the code says, for the logs of operator and owner; the visitor does not get it.
   */
  fail(code: ErrorCode, again?: readonly Uint8Array[], reason?: string): void
  /** The request is sent once more, on a fresh way to the same app. */
  retried?(): void
  /** Stops taking the request body from the visitor. */
  pause(): void
  /** Goes on taking it. */
  resume(): void
}

export interface Exchange {
  /** A piece of the request body as the visitor sent it, framing included. After a switch: any bytes. */
  body(bytes: Uint8Array): void
  /** Sends up to `limitBytes` of a socket unseen, like `body`, if that is possible now (`Socket.spliceTo`). */
  bodyFrom?(from: Socket, limitBytes: number, done: SpliceDone): Splice | undefined
  /** The request is complete. After a switch: the visitor sent FIN. */
  bodyEnded(): void
  /** Called when `Visit.write` may be called again. */
  drained(): void
  /** The visitor left. Ends the exchange; the origin's work is cancelled. */
  abandoned(): void
}

/** The exchange that `begin` returns after it failed the visit: it ignores all calls. */
export const DEAD_EXCHANGE: Exchange = { body() {}, bodyEnded() {}, drained() {}, abandoned() {} }

/** A destination of a tunnel's exchanges. Many run at once. */
export interface Upstream {
  readonly wire: 'streams' | 'json'
  /** Exchanges in progress. */
  readonly inFlight: number
  /**
   * Starts an exchange. It may fail the visit before returning; the exchange returned is then dead and ignores
   * all calls.
   */
  begin(visit: Visit): Exchange
  /** A way to the origin for one visitor alone, if there is one to spare. */
  reserve?(visit: Visit): Reserved | undefined
}

/** A destination of a tunnel's exchanges and connections: an offer of a client, on either wire. */
export interface TunnelUpstream extends Upstream {
  /**
   * Opens bytes both ways to the origin, for a raw visitor from this address; or says with a code why not. `endpoints` is what a
   * PROXY header says, if the client wants one: it is the first that the stream brings.
   */
  open(handler: StreamHandler, address: string, endpoints: Endpoints | undefined): ByteStream | ErrorCode
  /** Stops: cuts open exchanges, and takes no more. */
  stop?(): void
}
