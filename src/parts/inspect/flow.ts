// Contract between one connection to an origin and the capture. Implementations: http-flow.ts, raw-flow.ts.

/** The direction: 0 to the origin, 1 from it. */
export type Way = 0 | 1
export const TO_APP = 0
export const FROM_APP = 1

/** Bytes, or the end of a direction, that wait to be read by the capture. */
export interface Piece {
  readonly way: Way
  /** The time on the clock of `performance.now()`. */
  readonly at: number
  /** A copy that belongs to the capture. `undefined` for the end of the direction. */
  bytes: Uint8Array | undefined
}

export interface Flow {
  /** Whether nothing of the connection is captured now, so that other threads may have it. */
  readonly isPassing: boolean
  /** Called before bytes are written. Returns whether they are captured. */
  wants(bytes: Uint8Array, start: number, end: number): boolean
  /** Reserves a place for them before a response that the origin may send at once. */
  reserve(): Piece
  /** Called when the origin's socket took bytes[start, end), which the caller may reuse afterwards. */
  sent(piece: Piece, bytes: Uint8Array, start: number, end: number): void
  /** Called when the origin sent bytes, which the caller may reuse afterwards. */
  received(bytes: Uint8Array): void
  /** Called for FIN of either side. */
  ended(way: Way): void
  /** Returns the number of bytes in this direction that may pass unseen now, because the capture only needs their number. */
  unseenBytes(way: Way): number
  /** Called when `count` bytes passed unseen. */
  passed(way: Way, count: number): void
  /** Called when another thread has the connection. `stop` asks for it back. */
  lent(stop: () => void): void
  /** Called at the end. `isCut`: this side cut it. */
  closed(error: Error | undefined, isCut: boolean): void
}
