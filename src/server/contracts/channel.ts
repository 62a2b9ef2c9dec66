// Contract: where the bytes of one visit come from and go to. An HTTP/1.1 connection has one visit after the other; of
// HTTP/2 each stream is a channel of its own.

import type { Account } from '../../bytes.ts'
import type { ErrorCode } from '../../errors.ts'
import type { AskedCertificate, Socket, Splice, SpliceDone } from '../../socket.ts'
import type { ConnectionLogins } from '../limits/connection-logins.ts'
import type { VisitorHop } from '../limits/visitor-hop.ts'
import type { Takeover } from './front.ts'
import type { Ease } from './upstream.ts'

/** The state of a visit's request. */
export interface RequestProgress {
  /** All of its body, or it has none. */
  readonly isComplete: boolean
  /** The bytes of its head, and of its body as far as it has arrived. */
  readonly requestBytes: number
}

/** A source of the bytes of a visit's request. */
export interface RequestInput {
  /** Stops taking bytes from the visitor. */
  pause(): void
  /** Goes on taking them. */
  resume(): void
  /** Resumes after a pause: calls `first`, then passes on what arrived during the pause. */
  proceed(first: () => void): void
}

/** The destination of a visit's response. */
export interface AnswerOutput {
  /** Sends bytes, like `Visit.write`. */
  write(bytes: Uint8Array, start: number, end: number): boolean
  /** Sends bytes of a socket, like `Visit.writeFrom`. */
  writeFrom?(from: Socket, limitBytes: number, done: SpliceDone): Splice | undefined
  /** Sends FIN after what was written. */
  end(): void
}

/**
 * The operations of a front that a visit uses. A stream of HTTP/2 implements it so: `write` gets HTTP/1.1 text, which goes
 * through `parseResponseHead` and `BodyFramer` into HEADERS and DATA frames; `pause` and `resume` hold its window back; `over`
 * ends the stream (`goesOn` concerns no other stream, so it is ignored), and `terminate` resets it. It has no `takeOver` and no
 * `writeFrom`.
 */
export interface VisitChannel {
  /** The hop of the visitor, shared by all visits of a connection. */
  readonly visitor: VisitorHop
  readonly request: RequestProgress
  readonly input: RequestInput
  readonly output: AnswerOutput
  /** Whether another request may follow on the connection. */
  readonly keepsAlive: boolean
  /** Whether the visitor showed a certificate, as `Arrival.isCertified`. Default: not. */
  readonly isCertified?: boolean
  /** The logins of the connection, as `Visit.logins`. */
  readonly logins?: ConnectionLogins | undefined
  /** The certificate request, as `Arrival.asked`. */
  readonly asked?: AskedCertificate | undefined
  /** Whether the visitor may no longer be served, as `Arrival.isRefused`. */
  isRefused(): boolean
  /** Bytes wait for the visitor: whose limit they count against. */
  charge(account: Account | undefined): void
  /** The visit is bytes both ways from now on. */
  switched(): void
  /** The visit is over. `goesOn`: the connection is good for another. */
  over(goesOn: boolean, ease: Ease): void
  /**
   * Asks the visitor to make its next requests on another connection. Only where a connection carries many requests at
   * once. On others `over` does this.
   */
  drain?(): void
  /** The connection leaves HTTP. */
  takeOver?(takeover: Takeover): void
  /** Cuts the visitor off: it must not take what it has for a complete response. */
  terminate(): void
}

export interface ChannelVisit {
  /** The head is complete. */
  begin(): void
  /** A piece of the body, framing included; after a switch: any bytes. */
  body(bytes: Uint8Array): void
  bodyEnded(): void
  /** Called when `write` may be called again. */
  drained(): void
  /** The request went wrong in the middle: the exchange ends, and the visitor gets the reason if possible. */
  breakOff(code: ErrorCode): void
  /** The channel cannot pass the response on, and nothing of it has left: the visitor gets the page of `code`. */
  replaceAnswer(code: ErrorCode): void
  /** The connection is about to be cut for this. */
  cutOff(code: ErrorCode): void
  /** The visitor is gone. */
  abandon(): void
}
