// Contract: one virtual connection: bytes both ways, half-close, failure apart from end. Implementations: stream.ts (of a session), and
// on queued-stream.ts a request to an app of HTTP/2 and a connection to another server.

import type { ErrorCode } from '../errors.ts'
import type { Socket, Splice, SpliceDone } from '../socket.ts'

/** A receiver of the events of a stream. After `reset` and after both ends nothing follows. */
export interface StreamHandler {
  /**
   * Called when bytes[start, end) arrived: at least one. The array is the handler's until it returns: copy bytes that have to
   * wait. Call `stream.consumed` once they were sent.
   */
  received(bytes: Uint8Array, start: number, end: number): void
  /** Called when the bytes that `write` had to queue are sent: write again. */
  writable(): void
  /** The other side sends no more. `delivered` is how many of our bytes had left by then. */
  ended(delivered: number): void
  /**
   * The stream failed, there or with its carrier; it is gone both ways. `delivered` is how many of our bytes may have
   * left: exact when the other side said so, all that were sent when the carrier was lost. `reason`: what an app of HTTP/2 did wrong.
   */
  reset(code: ErrorCode, delivered: number, reason?: string): void
  /**
   * Bytes come in bulk on a socket that carries nothing else: moves up to `limitBytes` of them to where they go, in
   * place of `received` and `consumed`, if that is possible.
   */
  receivedFrom?(from: Socket, limitBytes: number, done: SpliceDone): Splice | undefined
}

/** A stream, for the code at this end. */
export interface ByteStream {
  handler: StreamHandler
  readonly isClosed: boolean
  /** The other side sends no more. */
  readonly peerEnded: boolean
  /**
   * Sends bytes[start, end). `false`: a copy of them is queued, wait for `writable`.
   */
  write(bytes: Uint8Array, start?: number, end?: number): boolean
  /**
   * Sends up to `limitBytes` that come on a socket without seeing them, if the stream can. Nothing may be written until `done`.
   * The other side's turn stops it: what it asked for may be small.
   */
  writeFrom(from: Pick<Socket, 'spliceTo'>, limitBytes: number, done: SpliceDone): Splice | undefined
  /** Moves the stream to a connection that carries no other one, if there is such a connection. */
  moveToLink(): void
  /** Lets another thread move the bytes that arrive, if it can: see `Socket.requestSplice`. */
  requestSplice(): void
  /** No more bytes this way; what was written still arrives. */
  end(): void
  /** Gives the stream up both ways: the other side learns the code and drops what is in transit. */
  reset(code: ErrorCode): void
  /** The same, and its handler hears of it as of a reset by the other side. */
  giveUp(code: ErrorCode): void
  /** Called once it is closed. Only a session's streams do so. */
  gone?: (() => void) | undefined
  /** Gives credit for `count` received bytes that were passed on. */
  consumed(count: number): void
  /** Bytes given to `write` so far. While bytes are moved it is the most that can have been sent. */
  readonly sentBytes: number
  /** Bytes of the other side that were consumed here. While another thread moves bytes: the most that it can be. */
  readonly deliveredBytes: number
  /** Whether bytes are queued here for lack of credit or room. */
  readonly isBackedUp: boolean
  /** Bytes given to `write` that wait for the other side: for credit, or for room on the connection. */
  readonly waitingBytes: number
  /** The same stream for a lane. Default: a lane cannot have its bytes. */
  readonly lendable?: LendableStream
}

/** A stream whose bytes may go another way for a while. */
export interface LendableStream extends Pick<ByteStream, 'isClosed' | 'isBackedUp'> {
  readonly id: number
  /** Whether nothing is queued, moved or held, and neither side has ended. */
  readonly isAtRest: boolean
  /** Lends the stream: its bytes take another way, and frames of the other side wait. */
  lend(): void
  /** Counts bytes that moved during the loan: `sentBytes` sent, `receivedBytes` received and passed on. */
  moved(sentBytes: number, receivedBytes: number): void
  /** Bytes that came another way and are the handler's, behind `moved`. */
  brought(bytes: Uint8Array): void
  /** No more come another way: what waited arrives now, unless bytes in front of it are missing (`isTorn`). */
  giveBack(isTorn: boolean): void
}
