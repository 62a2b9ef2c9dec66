// Flow control (RFC 9113 sections 5.2 and 6.9): windows as counters, for a stream or for the connection.

import { MAX_U31 } from './frame.ts'

/** The size of every window before either side sets one. */
export const INITIAL_WINDOW_BYTES = 65_535

export class SendWindow {
  /** The available bytes. Negative after SETTINGS_INITIAL_WINDOW_SIZE was lowered. */
  available: number

  constructor(bytes: number) {
    this.available = bytes
  }

  /** Counts DATA that was sent: at most `available`. */
  sent(bytes: number): void {
    this.available -= bytes
  }

  /**
   * Grows the window after a WINDOW_UPDATE, or by the difference between the new and the old SETTINGS_INITIAL_WINDOW_SIZE
   * (streams only). Returns `false` for a FLOW_CONTROL_ERROR: the window exceeds 2^31 - 1.
   */
  grow(bytes: number): boolean {
    if (this.available + bytes > MAX_U31) return false
    this.available += bytes
    return true
  }
}

/** The window that the peer has here, and when to tell it that there is room again. */
export class ReceiveWindow {
  size: number
  /** The number of bytes that the peer may still send. Negative after `settle` lowered it. */
  available: number
  /** The number of consumed bytes without credit yet. */
  consumed = 0

  constructor(bytes: number) {
    this.size = bytes
    this.available = bytes
  }

  /** Counts a DATA frame of this length. Returns `false` for a FLOW_CONTROL_ERROR: the peer had no credit for it. */
  take(length: number): boolean {
    if (length > this.available && length > 0) return false
    this.available -= length
    return true
  }

  /** Counts bytes as passed on. Returns the increment of a WINDOW_UPDATE to send now, or 0. */
  consume(bytes: number): number {
    this.consumed += bytes
    // At half of the window: earlier costs a frame for every few bytes; later lets the peer run out on long paths.
    return this.consumed * 2 >= this.size ? this.giveBack() : 0
  }

  /** Gives credit for all consumed bytes. Returns the increment, or 0. */
  giveBack(): number {
    const increment = this.consumed
    this.consumed = 0
    this.available += increment
    return increment
  }

  /** Enlarges the window, to at most 2^31 - 1. Returns the increment of the WINDOW_UPDATE for the peer. */
  enlarge(bytes: number): number {
    const increment = bytes - this.size
    this.size = bytes
    this.available += increment
    return increment
  }

  /**
   * Called when the peer acknowledged another SETTINGS_INITIAL_WINDOW_SIZE, and changed its count of each stream by
   * the difference.
   */
  settle(bytes: number): void {
    this.available += bytes - this.size
    this.size = bytes
  }
}
