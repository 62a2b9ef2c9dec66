// Contract: the connection that a session's frames travel on. A reliable, ordered byte stream; how it is cut
// into WebSocket messages or packets means nothing.

/** A connection on which a session sends. Its maker passes its events to the session; the session closes it. */
export interface Carrier {
  /**
   * Bytes in front of `start` that `send` may overwrite, so that a message header and the frames leave in one write.
   */
  readonly headroom: number
  /**
   * Sends `batch[start, end)`. `true`: all of it was taken and the array may be reused at once. `false`: the carrier
   * keeps the array until it calls the handler's `drained`; until then the caller sends only what cannot wait, each
   * time in another array.
   */
  send(batch: Uint8Array, start: number, end: number): boolean
  /** Hands nothing over until `resume`, its end included: the far side is not read. Where there is no such thing, absent. */
  pause?(): void
  resume?(): void
  /** Closes in good order: what was sent still arrives. */
  close(): void
  /** Closes at once. */
  terminate(): void
}

/** A receiver of the events of a carrier. `closed` is always the last call, exactly once. */
export interface CarrierHandler {
  /** Called when bytes[start, end) arrived from the far side, cut anywhere. The array is the session's until it returns. */
  received(bytes: Uint8Array, start: number, end: number): void
  /** Any bytes came from the far side, possibly of a message that is not whole yet. */
  heard?(): void
  /** `send` may be called again: follows each one that returned `false`, once. */
  drained(): void
  /** The carrier is gone; `error` is set when it did not end in good order. */
  closed(error?: Error): void
}
