// Contract: a connection that carries many requests at once, and one of its streams, as the channel of a visit sees them. HTTP/2
// and HTTP/3 implement it.

import type { ResponseHead } from '../../http/head.ts'
import type { StreamHandler } from '../../http2/server-stream.ts'
import type { HttpShare } from '../../server/contracts/protocol.ts'
import type { VisitorHop } from '../../server/limits/visitor-hop.ts'
import type { AskedCertificate } from '../../socket.ts'

/** Codes are those of HTTP/2. */
export interface MultiplexedStream {
  handler: StreamHandler
  /** The visitor sends no more. */
  readonly isRequestEnded: boolean
  /** The end of the response was sent. */
  readonly isAnswerEnded: boolean
  /** Whether it has ended in both directions, or was reset. */
  readonly isClosed: boolean
  /** The way to the visitor is full, whatever room the stream itself has. */
  readonly isBlocked: boolean
  /** Whether other streams wait for room already. */
  readonly isAwaited: boolean
  /** Sends the head of a response, interim ones too. */
  head(head: ResponseHead, isLast: boolean): void
  /** Sends as much of bytes[start, end) as there is room for, and says how much that was. `isLast`: nothing follows. */
  data(bytes: Uint8Array, start: number, end: number, isLast: boolean): number
  /** Sends the trailer section in bytes[start, end), as `BodyFramer` judged it, which ends the response. */
  trailers(bytes: Uint8Array, start: number, end: number): void
  /** Ends the response behind what was sent. */
  end(): void
  /** Wants to hear when there is room. */
  awaitRoom(hasData: boolean): void
  /** Gives credit for `count` bytes that were passed on. */
  consumed(count: number): void
  /** The request breaks a rule: cuts the stream, and counts against those who do that all the time. */
  refuse(code: number): void
  /**
   * The response is complete, and the visitor has to have it before the stream is cut: what it still sends is dropped. Its
   * handler hears
   * of the end by `reset`, or by that of the request.
   */
  dropRequest(): void
  /** Ends a period behind `dropRequest`. Returns whether the visitor has its response, and sends nothing more. */
  endPeriod(): boolean
  /** Cuts the stream. Its handler hears nothing more. */
  cut(code: number): void
}

export interface MultiplexedConnection {
  readonly front: HttpShare
  readonly visitor: VisitorHop
  readonly isCertified: boolean
  /** The certificate request, as `Arrival.asked`. */
  readonly asked?: AskedCertificate | undefined
  /** Whether the visitor may no longer be served, as `Arrival.isRefused`. */
  isRefused(): boolean
  /** Counts a request, as `AdmittedConnection.takesRequest`. */
  takesRequest(): (() => void) | undefined
  /** Asks the visitor to make its next requests on another connection; those that are in progress go on. */
  drain(): void
  /** Called when something was written to one of its streams. */
  filled(): void
}
