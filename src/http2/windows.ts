// Flow control (RFC 9113 sections 5.2 and 6.9): windows as counters, for a stream or for the connection.

import { MAX_U31 } from './frame.ts'

/** Every window before either side says anything. */
export const INITIAL_WINDOW_BYTES = 65_535

export class SendWindow {
  /** The available bytes. May be negative, after SETTINGS_INITIAL_WINDOW_SIZE went down. */
  available: number

  constructor(bytes: number) {
    this.available = bytes
  }

  /** Counts DATA that was sent: at most `available`. */
  sent(bytes: number): void {
    this.available -= bytes
  }

  /**
   * Grows the window after a WINDOW_UPDATE, or by the difference between the new SETTINGS_INITIAL_WINDOW_SIZE and the old one
   * (streams only). False: FLOW_CONTROL_ERROR, the window passes 2^31 - 1.
   */
  grow(bytes: number): boolean {
    if (this.available + bytes > MAX_U31) return false
    this.available += bytes
    return true
  }
}

/** The window of the peer, and when to tell it that there is room again. */
export class ReceiveWindow {
  size: number
  /** The number of bytes that the peer may still send. Negative after `settle` to less. */
  available: number
  /** The consumed bytes without credit yet. */
  consumed = 0

  constructor(bytes: number) {
    this.size = bytes
    this.available = bytes
  }

  /** A DATA frame of this length came. False: FLOW_CONTROL_ERROR, the peer had no right to it. */
  take(length: number): boolean {
    if (length > this.available && length > 0) return false
    this.available -= length
    return true
  }

  /** Counts bytes as passed on. Returns the increment of a WINDOW_UPDATE to send now, or 0. */
  consume(bytes: number): number {
    this.consumed += bytes
    // At half: earlier costs a frame for every few bytes, later lets the peer run dry on long ways.
    return this.consumed * 2 >= this.size ? this.giveBack() : 0
  }

  /** Returns the credit of all consumed bytes to the peer. Returns the increment, or 0. */
  giveBack(): number {
    const increment = this.consumed
    this.consumed = 0
    this.available += increment
    return increment
  }

  /** A larger size, at most 2^31 - 1. Returns the increment of the WINDOW_UPDATE that tells the peer. */
  enlarge(bytes: number): number {
    const increment = bytes - this.size
    this.size = bytes
    this.available += increment
    return increment
  }

  /** The peer acknowledged another SETTINGS_INITIAL_WINDOW_SIZE, and moved its count of each stream by the difference. */
  settle(bytes: number): void {
    this.available += bytes - this.size
    this.size = bytes
  }
}
