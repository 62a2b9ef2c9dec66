// One stream of a connection, as its server has it: what came, what was sent, and how much of either may still.

import type { FieldList } from './field-list.ts'
import { ReceiveWindow, SendWindow } from './windows.ts'

/** What happens on a stream. After `reset` there is no other call. */
export interface StreamHandler {
  /** bytes[start, end) is a piece of the request's body. It counts against the window until `ServerConnection.consumed`. */
  data(bytes: Uint8Array, start: number, end: number): void
  /** The request is complete. `trailers` is valid during the call. */
  ended(trailers: FieldList | undefined): void
  /** The stream is gone: the peer reset it, broke a rule of it, or the connection ended. */
  reset(): void
  /** What waited for room may send a portion; what still waits then asks again. */
  writable(): void
}

const NOT_YET: StreamHandler = { data() {}, ended() {}, reset() {}, writable() {} }

export class ServerStream {
  readonly id: number
  handler: StreamHandler = NOT_YET
  /** How much may still be sent. */
  readonly sending: SendWindow
  /** How much may still come. */
  readonly receiving: ReceiveWindow
  /** END_STREAM came. */
  isRequestEnded = false
  /** END_STREAM was sent. */
  isAnswerEnded = false
  /** Ended both ways, or reset. */
  isClosed = false
  /** It waits until its own window grows. */
  isStarved = false
  /** Bytes that came and were not consumed. */
  heldBytes = 0

  constructor(id: number, sendBytes: number, receiveBytes: number) {
    this.id = id
    this.sending = new SendWindow(sendBytes)
    this.receiving = new ReceiveWindow(receiveBytes)
  }
}
