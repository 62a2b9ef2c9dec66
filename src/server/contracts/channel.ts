// Contract: where the bytes of one visit come from and go to. An HTTP/1.1 connection has one visit after the other; of
// HTTP/2 each stream is a channel of its own.

import type { Account } from '../../bytes.ts'
import type { ErrorCode } from '../../errors.ts'
import type { AskedCertificate, Socket, Splice, SpliceDone } from '../../socket.ts'
import type { VisitorHop } from '../fronts/visitor-hop.ts'
import type { ConnectionLogins } from '../upstreams/connection-logins.ts'
import type { Takeover } from './front.ts'
import type { Ease } from './upstream.ts'

/** How much of a visit's request is here. */
export interface RequestProgress {
  /** All of its body, or it has none. */
  readonly isComplete: boolean
  /** Its head, and of its body what arrived. */
  readonly requestBytes: number
}

/** Where the bytes of a visit's request come from. */
export interface RequestInput {
  /** Stops taking bytes from the visitor. */
  pause(): void
  /** Goes on taking them. */
  resume(): void
  /** What arrived while the visit took nothing arrives now, behind what `first` does. */
  proceed(first: () => void): void
}

/** Where a visit's answer goes. */
export interface AnswerOutput {
  /** As `Visit.write`. */
  write(bytes: Uint8Array, isScratch: boolean, start: number, end: number): boolean
  /** As `Visit.writeFrom`. */
  writeFrom?(from: Socket, limitBytes: number, done: SpliceDone): Splice | undefined
  /** FIN follows what was written. */
  end(): void
}

/**
 * What a visit asks of its front. A stream of HTTP/2 implements it so: `write` gets HTTP/1.1 text, which goes through
 * `parseResponseHead` and `BodyFramer` into HEADERS and DATA frames; `pause` and `resume` hold its window back; `over` ends
 * the stream (`goesOn` concerns no other stream, so it is ignored), and `terminate` resets it. It has no `takeOver` and no
 * `writeFrom`.
 */
export interface VisitChannel {
  /** Shared by all visits of a connection. */
  readonly visitor: VisitorHop
  readonly request: RequestProgress
  readonly input: RequestInput
  readonly output: AnswerOutput
  /** Whether another request may follow on the connection. */
  readonly keepsAlive: boolean
  /** As `Arrival.isCertified`. Default: not. */
  readonly isCertified?: boolean
  /** As `Visit.logins`. */
  readonly logins?: ConnectionLogins | undefined
  /** As `Arrival.asked`. */
  readonly asked?: AskedCertificate | undefined
  /** As `Arrival.isRefused`. */
  isRefused(): boolean
  /** Bytes wait for the visitor: whose limit they count against. */
  charge(account: Account | undefined): void
  /** The visit is bytes both ways from now on. */
  switched(): void
  /** The visit is over. `goesOn`: the connection is good for another. */
  over(goesOn: boolean, ease: Ease): void
  /** Of many requests at once: the visitor is to make its next ones on another connection. Else `over` says so. */
  drain?(): void
  /** The connection leaves HTTP. */
  takeOver?(takeover: Takeover): void
  /** Cuts the visitor off: it must not take what it has for a complete answer. */
  terminate(): void
}

/** What a channel tells its visit. */
export interface ChannelVisit {
  /** The head is complete. */
  begin(): void
  /** A piece of the body, framing included; after a switch: any bytes. */
  body(bytes: Uint8Array): void
  bodyEnded(): void
  /** `write` may be called again. */
  drained(): void
  /** The request went wrong in the middle: the exchange ends, the visitor gets to know why if it still can. */
  breakOff(code: ErrorCode): void
  /** The channel cannot pass the answer on, and nothing of it has left: the visitor gets the page of `code`. */
  replaceAnswer(code: ErrorCode): void
  /** The connection is about to be cut for this. */
  cutOff(code: ErrorCode): void
  /** The visitor is gone. */
  abandon(): void
}
