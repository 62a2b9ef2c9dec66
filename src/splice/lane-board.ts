// What both threads see of the lanes: numbers that the one counts and the other reads.

import type { LaneCounts } from '../socket.ts'

/** Lanes at once in a process. Above: requests go the way through the program, many in one write of the carrier. */
export const MAX_LANES = 64

const NUMBERS = 5
const REQUESTS = 0
const BYTES_IN = 1
const BYTES_OUT = 2
const SENT = 3
const RECEIVED = 4

export class LaneBoard {
  readonly memory: SharedArrayBuffer
  readonly #counts: Float64Array
  /** Written behind the numbers and read before them, which orders them among the threads. */
  readonly #order: Int32Array

  constructor(memory?: SharedArrayBuffer) {
    const bytes = NUMBERS * 8 * MAX_LANES
    this.memory = memory ?? new SharedArrayBuffer(bytes + 8)
    this.#counts = new Float64Array(this.memory, 0, NUMBERS * MAX_LANES)
    this.#order = new Int32Array(this.memory, bytes, 1)
  }

  clear(slot: number): void {
    this.#counts.fill(0, NUMBERS * slot, NUMBERS * (slot + 1))
  }

  // ── The thread ─────────────────────────────────────────────────────────────────────────────────────────────

  /** Before they can reach anybody: whoever hears of a byte there finds it counted here. */
  sends(slot: number, bytes: number): void {
    this.#counts[NUMBERS * slot + SENT]! += bytes
    Atomics.store(this.#order, 0, 0)
  }

  received(slot: number, bytes: number): void {
    this.#counts[NUMBERS * slot + RECEIVED]! += bytes
    Atomics.store(this.#order, 0, 0)
  }

  served(slot: number, bytesIn: number, bytesOut: number): void {
    this.#counts[NUMBERS * slot + REQUESTS]!++
    this.#counts[NUMBERS * slot + BYTES_IN]! += bytesIn
    this.#counts[NUMBERS * slot + BYTES_OUT]! += bytesOut
    Atomics.store(this.#order, 0, 0)
  }

  // ── The main thread ────────────────────────────────────────────────────────────────────────────────────────

  /** Bytes given to the stream. */
  sentBytes(slot: number): number {
    Atomics.load(this.#order, 0)
    return this.#counts[NUMBERS * slot + SENT]!
  }

  /** Bytes that came from it. */
  receivedBytes(slot: number): number {
    Atomics.load(this.#order, 0)
    return this.#counts[NUMBERS * slot + RECEIVED]!
  }

  counts(slot: number): LaneCounts {
    Atomics.load(this.#order, 0)
    return {
      requests: this.#counts[NUMBERS * slot + REQUESTS]!,
      bytesIn: this.#counts[NUMBERS * slot + BYTES_IN]!,
      bytesOut: this.#counts[NUMBERS * slot + BYTES_OUT]!,
    }
  }
}
