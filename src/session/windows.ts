// The receive windows of a session's streams: how far they grow, and how much late data closed streams may get.

import { INITIAL_CREDIT_BYTES } from '../wire/frame.ts'
import type { Stream } from './stream.ts'

/** The maximum credit of a sender. It is part of the protocol: a receiver that gives more ends the session. */
export const MAX_CREDIT_BYTES = 0x7fff_ffff

export interface WindowLimits {
  readonly maxStreamWindowBytes: number
  /** The maximum growth of the windows of all streams together, in bytes. */
  readonly maxSessionWindowBytes: number
}

export class Windows {
  readonly #limits: WindowLimits
  /** The total growth of the windows of all streams beyond their initial size. */
  #grownBytes = 0
  /** The number of bytes that may still arrive for closed streams, because they were in flight. */
  #strayBytes = 0

  constructor(limits: WindowLimits) {
    this.#limits = limits
  }

  /** Grows the window if it is time, and returns the credit to give, after which the other side has the whole window. */
  refill(stream: Stream, nowMs: number, roundTripMs: number): number {
    this.#grow(stream, nowMs, roundTripMs)
    const credit = stream.window - stream.allowance - (stream.receivedBytes - stream.deliveredBytes)
    stream.unacknowledged = 0
    if (credit <= 0) return 0
    stream.allowance += credit
    return credit
  }

  forget(stream: Stream): void {
    this.#grownBytes -= stream.window - INITIAL_CREDIT_BYTES
    if (!stream.peerEnded) this.#strayBytes += stream.allowance
  }

  /** Counts late data of a closed stream. Returns `false` if it was sent without credit, which is a protocol error. */
  allowsStray(bytes: number): boolean {
    this.#strayBytes -= bytes
    return this.#strayBytes >= 0
  }

  /**
   * Doubles the window of a stream that used half of it within two round trips: then the window, not the path, is the
   * limit. The smallest round trip counts, because a full queue makes the current one longer.
   */
  #grow(stream: Stream, nowMs: number, roundTripMs: number): void {
    const elapsed = nowMs - stream.lastCreditAt
    stream.lastCreditAt = nowMs
    if (roundTripMs === 0 || elapsed > 2 * roundTripMs) return
    const { maxStreamWindowBytes, maxSessionWindowBytes } = this.#limits
    const mostBytes = Math.min(maxStreamWindowBytes, MAX_CREDIT_BYTES)
    const growth = Math.min(stream.window, mostBytes - stream.window)
    if (growth <= 0 || this.#grownBytes + growth > maxSessionWindowBytes) return
    stream.window += growth
    this.#grownBytes += growth
  }
}
