// Receive windows of a session's streams: how far they grow, and what streams that are gone may still be sent.

import { INITIAL_CREDIT_BYTES } from '../wire/frame.ts'
import type { Stream } from './stream.ts'

/** The maximum credit that a sender can hold. Part of the protocol: a receiver that gives more ends the session. */
export const MAX_CREDIT_BYTES = 0x7fff_ffff

export interface WindowLimits {
  readonly maxStreamWindowBytes: number
  /** The maximum growth of the windows of all streams together, in bytes. */
  readonly maxSessionWindowBytes: number
}

export class Windows {
  readonly #limits: WindowLimits
  /** The growth of the windows of all streams together beyond their first size. */
  #grownBytes = 0
  /**
   * The number of bytes that the other side may still send on streams that are gone: they were in flight when they were reset.
   */
  #strayBytes = 0

  constructor(limits: WindowLimits) {
    this.#limits = limits
  }

  /** Grows the window where it is due, and returns what the other side is to be given: its credit is the window again. */
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

  /** Counts late data of a stream that is gone. `false`: it was sent without credit, which is never honest. */
  allowsStray(bytes: number): boolean {
    this.#strayBytes -= bytes
    return this.#strayBytes >= 0
  }

  /**
   * Doubles the window of a stream that used half of it up within two round trips: there the window, not the path,
   * is what limits. The smallest round trip counts, because a full queue makes the current one look long.
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
