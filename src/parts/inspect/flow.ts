// Contract: what one tapped connection to an origin tells the capture. Implementations: http-flow.ts, raw-flow.ts.

/** The direction. 0: towards the origin. 1: from it. */
export type Way = 0 | 1
export const TO_APP = 0
export const FROM_APP = 1

/** Bytes, or the end of a way, that wait to be read by the capture. */
export interface Piece {
  readonly way: Way
  /** The time on the clock of `performance.now()`. */
  readonly at: number
  /** The capture's own; `undefined`: the way has ended. */
  bytes: Uint8Array | undefined
}

export interface Flow {
  /** Whether nothing of it is captured now, so that other threads may have it. */
  readonly isPassing: boolean
  /** Bytes are about to be written: whether they are captured. */
  wants(bytes: Uint8Array, start: number, end: number): boolean
  /** Holds a place for them in front of what the origin responds at once. */
  reserve(): Piece
  /** The origin's socket took bytes[start, end), which the caller may reuse now. */
  sent(piece: Piece, bytes: Uint8Array, start: number, end: number): void
  /** Called when the origin sent bytes, which the caller may reuse afterwards. */
  received(bytes: Uint8Array): void
  /** Called for FIN of either side. */
  ended(way: Way): void
  /** Bytes of this way that may pass unseen now: the capture needs only their number. */
  unseenBytes(way: Way): number
  /** Called when `count` bytes passed unseen. */
  passed(way: Way, count: number): void
  /** Called when another thread has the connection for a while. `stop` asks for it back. */
  lent(stop: () => void): void
  /** Called at the end. `isCut`: this side cut it. */
  closed(error: Error | undefined, isCut: boolean): void
}
