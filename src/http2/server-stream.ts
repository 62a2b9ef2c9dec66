// One stream of a server's connection: what arrived, what was sent, and how much more of each is allowed.

import type { ResponseHead } from '../http/head.ts'
import type { FieldList } from './field-list.ts'
import { ReceiveWindow, SendWindow } from './windows.ts'

/** Receives the events of a stream. After `reset` there is no other call. */
export interface StreamHandler {
  /**
   * Called with bytes[start, end), a piece of the request's body. It counts against the window until `ServerConnection.consumed`.
   */
  data(bytes: Uint8Array, start: number, end: number): void
  /** Called when the request is complete. `trailers` is valid during the call. */
  ended(trailers: FieldList | undefined): void
  /** Called when the stream is gone: the peer reset it or broke a rule of it, or the connection ended. */
  reset(): void
  /** Called when waiting bytes may be sent, up to a portion. Streams with more must wait again. */
  writable(): void
}

/** The operations of the connection that a stream needs. */
export interface StreamOwner {
  readonly sender: StreamSender
  consumed(stream: ServerStream, count: number): void
  refuse(stream: ServerStream, code: number): void
  resetStream(stream: ServerStream, code: number): void
  dropRequest(stream: ServerStream): void
  endPeriod(stream: ServerStream): boolean
}

/** The operations of `FrameSender` that a stream needs. */
export interface StreamSender {
  readonly isBlocked: boolean
  readonly isAwaited: boolean
  head(stream: ServerStream, head: ResponseHead, isLast: boolean): void
  data(stream: ServerStream, bytes: Uint8Array, start: number, end: number, isLast: boolean): number
  trailers(stream: ServerStream, bytes: Uint8Array, start: number, end: number): void
  end(stream: ServerStream): void
  awaitRoom(stream: ServerStream, hasData: boolean): void
}

const NOT_YET: StreamHandler = { data() {}, ended() {}, reset() {}, writable() {} }

export class ServerStream {
  readonly id: number
  handler: StreamHandler = NOT_YET
  readonly sending: SendWindow
  readonly receiving: ReceiveWindow
  isRequestEnded = false
  isAnswerEnded = false
  /** Whether the stream has ended in both directions, or was reset. */
  isClosed = false
  /** Whether the stream waits for its own window to grow. */
  isStarved = false
  isDropping = false
  droppedBytes = 0
  /** Whether the peer has replied to the last PING for this stream. */
  hasReplied = false
  /** The number of periods since the peer sent anything on it. */
  quietPeriods = 0
  /** The number of received bytes that were not consumed. */
  heldBytes = 0

  readonly #owner: StreamOwner

  constructor(id: number, owner: StreamOwner, sendBytes: number, receiveBytes: number) {
    this.id = id
    this.#owner = owner
    this.sending = new SendWindow(sendBytes)
    this.receiving = new ReceiveWindow(receiveBytes)
  }

  // ── For the code that responds on it ────────────────────────────────────────────────────────────────────────

  get isBlocked(): boolean {
    return this.#owner.sender.isBlocked
  }

  get isAwaited(): boolean {
    return this.#owner.sender.isAwaited
  }

  head(head: ResponseHead, isLast: boolean): void {
    this.#owner.sender.head(this, head, isLast)
  }

  data(bytes: Uint8Array, start: number, end: number, isLast: boolean): number {
    return this.#owner.sender.data(this, bytes, start, end, isLast)
  }

  trailers(bytes: Uint8Array, start: number, end: number): void {
    this.#owner.sender.trailers(this, bytes, start, end)
  }

  end(): void {
    this.#owner.sender.end(this)
  }

  awaitRoom(hasData: boolean): void {
    this.#owner.sender.awaitRoom(this, hasData)
  }

  consumed(count: number): void {
    this.#owner.consumed(this, count)
  }

  refuse(code: number): void {
    this.#owner.refuse(this, code)
  }

  cut(code: number): void {
    this.#owner.resetStream(this, code)
  }

  dropRequest(): void {
    this.#owner.dropRequest(this)
  }

  endPeriod(): boolean {
    return this.#owner.endPeriod(this)
  }
}
