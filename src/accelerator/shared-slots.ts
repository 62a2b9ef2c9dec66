// The memory that the main thread and a worker thread share: a row of numbers for each splice and each end of a lane.

import type { LaneCounts } from '../accelerator.ts'
import { MEASURES, measure } from '../measures.ts'

/** The maximum number of splices in a thread. If exceeded, bytes stay on the main thread. */
export const MAX_SPLICES = 128

/**
 * The maximum number of lane ends in a process. Each lane has a visitor with frequent requests, and a connection to
 * an app. If exceeded, requests stay on the main thread. Measured by `benchmarks/suites/speed.ts --only t500`.
 */
export const MAX_LANES = 1024

/**
 * The number of exchanges that may wait for their report. If exceeded, lanes end, so that they serve no more requests
 * than the main thread can report.
 */
const MAX_BACKLOG = 1024

const NUMBERS = 6

// The fields of a splice's row.
const TAKEN = 0
const MOVED = 1

// The fields of a lane's row.
const REQUESTS = 0
const BYTES_IN = 1
const BYTES_OUT = 2
const UNREPORTED = 3
const UNREPORTED_ERRORS = 4
const UNREPORTED_BYTES = 5

export class SharedSlots {
  readonly memory: SharedArrayBuffer
  /**
   * The rows of splices, then those of lanes. They need no allocation per exchange, and the machine reads and writes
   * each number at once. Only the worker thread writes, except for `clear`.
   */
  readonly #numbers: Float64Array
  /** The measurements of lanes whose terms ask for them, one row each. */
  readonly #measures: Float64Array
  /** The counter that orders the threads: written after the numbers, and read before them. */
  readonly #order: Int32Array
  /** The number of exchanges that were reported and that the main thread has not handled. */
  readonly #backlog: Int32Array

  constructor(memory?: SharedArrayBuffer) {
    const count = NUMBERS * (MAX_SPLICES + MAX_LANES)
    const bytes = 8 * (count + MEASURES * MAX_LANES)
    this.memory = memory ?? new SharedArrayBuffer(bytes + 8)
    this.#numbers = new Float64Array(this.memory, 0, count)
    this.#measures = new Float64Array(this.memory, 8 * count, MEASURES * MAX_LANES)
    this.#order = new Int32Array(this.memory, bytes, 1)
    this.#backlog = new Int32Array(this.memory, bytes + 4, 1)
  }

  // ── Splices ────────────────────────────────────────────────────────────────────────────────────────────────

  /** Called by the main thread, before a splice begins. */
  clearSplice(slot: number): void {
    this.#numbers.fill(0, NUMBERS * slot, NUMBERS * (slot + 1))
  }

  /**
   * Called by the worker thread before the bytes can reach the other socket, so that a reader that has seen them finds them
   * counted.
   */
  taken(slot: number, bytes: number): void {
    this.#numbers[NUMBERS * slot + TAKEN] = bytes
    Atomics.store(this.#order, 0, 0)
  }

  moved(slot: number, bytes: number): void {
    this.#numbers[NUMBERS * slot + MOVED] = bytes
    Atomics.store(this.#order, 0, 0)
  }

  takenBytes(slot: number): number {
    Atomics.load(this.#order, 0)
    return this.#numbers[NUMBERS * slot + TAKEN]!
  }

  movedBytes(slot: number): number {
    Atomics.load(this.#order, 0)
    return this.#numbers[NUMBERS * slot + MOVED]!
  }

  // ── Lanes ──────────────────────────────────────────────────────────────────────────────────────────────────

  /** Called by the main thread, before a lane begins. */
  clearLane(slot: number): void {
    this.#numbers.fill(0, rowOf(slot), rowOf(slot + 1))
    this.#measures.fill(0, MEASURES * slot, MEASURES * (slot + 1))
  }

  /** Called by the worker thread before the response is sent, so that a visitor that has the response finds it counted. */
  served(slot: number, bytesIn: number, bytesOut: number, isReported: boolean, hasFailed: boolean): void {
    const at = rowOf(slot)
    this.#numbers[at + REQUESTS]!++
    this.#numbers[at + BYTES_IN]! += bytesIn
    this.#numbers[at + BYTES_OUT]! += bytesOut
    if (!isReported) {
      this.#numbers[at + UNREPORTED]!++
      this.#numbers[at + UNREPORTED_BYTES]! += bytesOut
      if (hasFailed) this.#numbers[at + UNREPORTED_ERRORS]!++
    }
    Atomics.store(this.#order, 0, 0)
  }

  /** Called by the worker thread, before `served` of the same exchange. */
  measured(slot: number, status: number, durationMs: number, bytes: number): void {
    measure(this.#measures, MEASURES * slot, status, durationMs, bytes)
  }

  counts(slot: number): LaneCounts {
    Atomics.load(this.#order, 0)
    const at = rowOf(slot)
    const measures = this.#measures.slice(MEASURES * slot, MEASURES * (slot + 1))
    return {
      requests: this.#numbers[at + REQUESTS]!,
      bytesIn: this.#numbers[at + BYTES_IN]!,
      bytesOut: this.#numbers[at + BYTES_OUT]!,
      unreported: {
        requests: this.#numbers[at + UNREPORTED]!,
        errors: this.#numbers[at + UNREPORTED_ERRORS]!,
        bytes: this.#numbers[at + UNREPORTED_BYTES]!,
      },
      ...(measures.some(number => number > 0) && { measures }),
    }
  }

  // ── Reports ────────────────────────────────────────────────────────────────────────────────────────────────

  /** Called when the worker thread has reported `count` exchanges. */
  reported(count: number): void {
    Atomics.add(this.#backlog, 0, count)
  }

  /** Called when the main thread has handled `count` reports. */
  seen(count: number): void {
    Atomics.sub(this.#backlog, 0, count)
  }

  /** Whether the main thread is behind with the reports. */
  get isBacklogFull(): boolean {
    return Atomics.load(this.#backlog, 0) >= MAX_BACKLOG
  }
}

function rowOf(laneSlot: number): number {
  return NUMBERS * (MAX_SPLICES + laneSlot)
}
