// Contract: a connection with many requests at once, and one of its streams, as the channel of a visit uses them.
// HTTP/2 and HTTP/3 implement it.

import type { ResponseHead } from '../../http/head.ts'
import type { StreamHandler } from '../../http2/server-stream.ts'
import type { HttpShare } from '../../server/contracts/protocol.ts'
import type { VisitorHop } from '../../server/limits/visitor-hop.ts'
import type { AskedCertificate } from '../../socket.ts'

/** A stream of such a connection. Codes are those of HTTP/2. */
export interface MultiplexedStream {
  handler: StreamHandler
  /** Whether the visitor sends no more. */
  readonly isRequestEnded: boolean
  /** Whether the end of the response was sent. */
  readonly isAnswerEnded: boolean
  /** Whether it has ended in both directions, or was reset. */
  readonly isClosed: boolean
  /** Whether the connection is full, whatever room the stream itself has. */
  readonly isBlocked: boolean
  /** Whether other streams wait for room already. */
  readonly isAwaited: boolean
  /** Sends the head of a response, also an interim one. */
  head(head: ResponseHead, isLast: boolean): void
  /** Sends as much of bytes[start, end) as there is room for, and returns the number. `isLast`: nothing follows. */
  data(bytes: Uint8Array, start: number, end: number, isLast: boolean): number
  /** Sends the trailer section in bytes[start, end), which `BodyFramer` has checked. It ends the response. */
  trailers(bytes: Uint8Array, start: number, end: number): void
  /** Ends the response after the bytes that were sent. */
  end(): void
  /** Asks for a call when there is room. */
  awaitRoom(hasData: boolean): void
  /** Gives credit for `count` bytes that were passed on. */
  consumed(count: number): void
  /** Resets a stream whose request breaks a rule, and counts it against visitors that do so repeatedly. */
  refuse(code: number): void
  /**
   * Drops the rest of a request whose response is complete, without resetting the stream before the visitor has the
   * response. The handler is notified of the end by `reset`, or by that of the request.
   */
  dropRequest(): void
  /** Ends a period after `dropRequest`. Returns whether the visitor has its response and sends nothing more. */
  endPeriod(): boolean
  /** Resets the stream. Its handler gets no more calls. */
  cut(code: number): void
}

export interface MultiplexedConnection {
  readonly front: HttpShare
  readonly visitor: VisitorHop
  readonly isCertified: boolean
  /** The request for a certificate, as `Arrival.asked`. */
  readonly asked?: AskedCertificate | undefined
  /** Whether the visitor may no longer be served, as `Arrival.isRefused`. */
  isRefused(): boolean
  /** Counts a request, as `AdmittedConnection.takesRequest`. */
  takesRequest(): (() => void) | undefined
  /** Asks the visitor to send its next requests on another connection; open ones continue. */
  drain(): void
  /** Called when something was written to one of its streams. */
  filled(): void
}
