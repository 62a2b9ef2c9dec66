// Contract: one virtual connection with bytes both ways, half-close, and failures that are distinct from ends. Implementations:
// stream.ts (in a session); based on queued-stream.ts, a request to an HTTP/2 app and a connection to another server.

import type { ErrorCode } from '../errors.ts'
import type { Socket, Splice, SpliceDone } from '../socket.ts'

/** Receives the events of a stream. After `reset`, and after both directions ended, no events follow. */
export interface StreamHandler {
  /**
   * Called when bytes[start, end) arrived, at least one. The array may be used only during the call: copy bytes that
   * have to wait. Call `stream.consumed` when they were passed on.
   */
  received(bytes: Uint8Array, start: number, end: number): void
  /** Called when the bytes that `write` queued were sent: write again. */
  writable(): void
  /** Called when the other side sends no more. `delivered` is the number of our bytes that it had passed on by then. */
  ended(delivered: number): void
  /**
   * Called when the stream failed, at the other side or with its carrier; both directions are gone. `delivered` is
   * the number of our bytes that may have been passed on: exact if the other side said so; all that were sent if the
   * carrier was lost. `reason`: what an HTTP/2 app did wrong.
   */
  reset(code: ErrorCode, delivered: number, reason?: string): void
  /**
   * Called during a large transfer on a socket that carries only this stream. Moves up to `limitBytes` directly to
   * their destination, in place of `received` and `consumed`, if that is possible.
   */
  receivedFrom?(from: Socket, limitBytes: number, done: SpliceDone): Splice | undefined
}

/** A stream, as the code at this end uses it. */
export interface ByteStream {
  handler: StreamHandler
  readonly isClosed: boolean
  /** Whether the other side sends no more. */
  readonly peerEnded: boolean
  /** Sends bytes[start, end). Returns `false` if a copy of them is queued: then wait for `writable`. */
  write(bytes: Uint8Array, start?: number, end?: number): boolean
  /**
   * Sends up to `limitBytes` from a socket without reading them, if the stream can. Do not write before `done`. The
   * transfer stops when the other side sends, because its next response may be small.
   */
  writeFrom(from: Pick<Socket, 'spliceTo'>, limitBytes: number, done: SpliceDone): Splice | undefined
  /** Moves the stream to a link, a connection that carries no other stream, if one is free. */
  moveToLink(): void
  /** Allows another thread to move the bytes that arrive, if possible: see `Socket.requestSplice`. */
  requestSplice(): void
  /** Ends this direction. Earlier bytes still arrive. */
  end(): void
  /** Ends both directions: the other side gets the code and drops bytes in transit. */
  reset(code: ErrorCode): void
  /** Does the same as `reset`, and also calls the own handler's `reset`. */
  giveUp(code: ErrorCode): void
  /** Called when the stream is closed. Only a session's streams call it. */
  gone?: (() => void) | undefined
  /** Gives the other side credit for `count` received bytes that were passed on. */
  consumed(count: number): void
  /** The number of bytes given to `write`. While a splice moves bytes: the maximum that can have been sent. */
  readonly sentBytes: number
  /** The number of the other side's bytes that were consumed here. While another thread moves bytes: the maximum. */
  readonly deliveredBytes: number
  /** Whether bytes are queued for lack of credit or room. */
  readonly isBackedUp: boolean
  /** The number of written bytes that wait for credit, or for room on the connection. */
  readonly waitingBytes: number
  /** The same stream, if it can be lent to a lane. Default: it cannot. */
  readonly lendable?: LendableStream
}

/** A stream that can be lent: another thread then moves its bytes. */
export interface LendableStream extends Pick<ByteStream, 'isClosed' | 'isBackedUp'> {
  readonly id: number
  /** Whether no bytes are queued, in a splice or held, and neither side has ended. */
  readonly isAtRest: boolean
  /** Lends the stream. Its bytes take another route, and frames of the other side wait. */
  lend(): void
  /** Counts bytes that moved during the loan: `sentBytes` sent, `receivedBytes` received and passed on. */
  moved(sentBytes: number, receivedBytes: number): void
  /** Passes bytes to the handler that a worker thread has received. Call it after `moved`. */
  brought(bytes: Uint8Array): void
  /** Ends the loan: frames that waited are handled now, unless bytes before them are missing (`isTorn`). */
  giveBack(isTorn: boolean): void
}
