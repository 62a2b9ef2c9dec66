// Contract: the connection that carries a session's frames. It is a reliable, ordered byte stream; its division into
// WebSocket messages or packets has no meaning.

/** A connection on which a session sends. Its creator passes its events to the session; the session closes it. */
export interface Carrier {
  /** The number of bytes before `start` that `send` may overwrite, so that a message header and the frames leave in one write. */
  readonly headroom: number
  /**
   * Sends `batch[start, end)`. Returns `true` if all of it was taken: the array may be reused at once. After `false`,
   * the carrier keeps the array until it calls the handler's `drained`. Until then the caller sends only frames that
   * cannot wait, each in another array.
   */
  send(batch: Uint8Array, start: number, end: number): boolean
  /**
   * Stops passing on bytes and the end of the carrier until `resume`, so that the far side is not read. Absent where
   * this is impossible.
   */
  pause?(): void
  resume?(): void
  /** Closes in good order: bytes that were sent still arrive. */
  close(): void
  /** Closes at once. */
  terminate(): void
}

/** Receives the events of a carrier. `closed` is always the last call, exactly once. */
export interface CarrierHandler {
  /**
   * Called when bytes[start, end) arrived from the far side, divided anywhere. The session may use the array only
   * during the call.
   */
  received(bytes: Uint8Array, start: number, end: number): void
  /** Called when any bytes arrived from the far side, also those of an incomplete message. */
  heard?(): void
  /** Called once after each `send` that returned `false`, when the carrier can send again. */
  drained(): void
  /** Called when the carrier is gone. `error` is set if it did not end in good order. */
  closed(error?: Error): void
}
