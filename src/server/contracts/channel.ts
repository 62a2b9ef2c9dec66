// Contract: source and destination of the bytes of one visit. An HTTP/1.1 connection has one visit after the other;
// with HTTP/2, each stream is a channel.

import type { Account } from '../../bytes.ts'
import type { ErrorCode } from '../../errors.ts'
import type { AskedCertificate, Socket, Splice, SpliceDone } from '../../socket.ts'
import type { ConnectionLogins } from '../limits/connection-logins.ts'
import type { VisitorHop } from '../limits/visitor-hop.ts'
import type { Takeover } from './front.ts'
import type { Ease } from './upstream.ts'

/** The state of a visit's request. */
export interface RequestProgress {
  /** Whether the whole body has arrived, or the request has none. */
  readonly isComplete: boolean
  /** The number of bytes of the head and of the body so far. */
  readonly requestBytes: number
}

/** A source of the bytes of a visit's request. */
export interface RequestInput {
  /** Stops taking bytes from the visitor. */
  pause(): void
  /** Takes bytes again after `pause`. */
  resume(): void
  /** Resumes after a pause: calls `first`, then passes on what arrived during the pause. */
  proceed(first: () => void): void
}

/** The destination of a visit's response. */
export interface AnswerOutput {
  /** Sends bytes, like `Visit.write`. */
  write(bytes: Uint8Array, start: number, end: number): boolean
  /** Moves bytes from a socket without reading them, like `Visit.writeFrom`. */
  writeFrom?(from: Socket, limitBytes: number, done: SpliceDone): Splice | undefined
  /** Sends FIN after what was written. */
  end(): void
}

/**
 * The operations of a front that a visit uses. An HTTP/2 stream implements them too: `write` gets HTTP/1.1 text, which
 * `parseResponseHead` and `BodyFramer` turn into HEADERS and DATA frames. `pause` and `resume` hold its window back, `over` ends
 * the stream and ignores `goesOn`, and `terminate` resets it. HTTP/2 has no `takeOver` and no `writeFrom`.
 */
export interface VisitChannel {
  /** The visitor's address and scheme, shared by all visits of a connection. */
  readonly visitor: VisitorHop
  readonly request: RequestProgress
  readonly input: RequestInput
  readonly output: AnswerOutput
  /** Whether another request may follow on the connection. */
  readonly keepsAlive: boolean
  /** Whether the visitor showed a verified certificate, as `Arrival.isCertified`. Default: false. */
  readonly isCertified?: boolean
  /** The logins of the connection (NTLM, Negotiate), as `Visit.logins`. */
  readonly logins?: ConnectionLogins | undefined
  /** The request for the visitor's certificate, as `Arrival.asked`. */
  readonly asked?: AskedCertificate | undefined
  /** Whether the visitor may no longer be served, as `Arrival.isRefused`. */
  isRefused(): boolean
  /** Sets the account whose limit counts response bytes that the visitor has not taken yet. */
  charge(account: Account | undefined): void
  /** Called when the protocol was switched: from now on the visit is raw bytes both ways. */
  switched(): void
  /** Ends the visit. `goesOn`: the connection can carry another request. */
  over(goesOn: boolean, ease: Ease): void
  /**
   * Asks the visitor to send its next requests on another connection. Exists only where a connection carries many
   * requests at once; other fronts use `over` for this.
   */
  drain?(): void
  /** Hands the connection to a protocol other than HTTP. */
  takeOver?(takeover: Takeover): void
  /** Cuts the connection, so that the visitor does not take a partial response for a complete one. */
  terminate(): void
}

export interface ChannelVisit {
  /** Called when the head of the request is complete. */
  begin(): void
  /** Takes a piece of the request body, framing included; after a switch, any bytes. */
  body(bytes: Uint8Array): void
  bodyEnded(): void
  /** Called when `write` may be called again. */
  drained(): void
  /**
   * Called when the request is invalid after its head: the exchange ends, and the visitor gets the page of `code` if
   * no response has begun.
   */
  breakOff(code: ErrorCode): void
  /** Called when the channel cannot pass the response on and no byte of it was sent: the visitor gets the page of `code`. */
  replaceAnswer(code: ErrorCode): void
  /** Called before the connection is cut for the reason `code`. */
  cutOff(code: ErrorCode): void
  /** Called when the visitor has left. */
  abandon(): void
}
