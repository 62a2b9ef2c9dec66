// What both threads see of the lanes: numbers that the one counts and the other reads.

import type { LaneCounts } from '../socket.ts'

/**
 * Ends of lanes at once in a process. Each lane has a visitor that asks often, and a connection to an app; requests above
 * share what the program has. Measured by `benchmarks/ahead.ts --only t500`.
 */
export const MAX_LANES = 1024

/** Exchanges that wait to be heard of. Above, lanes end: the way through the program is no faster than who listens. */
const MAX_UNHEARD = 1024

const NUMBERS = 3
const REQUESTS = 0
const BYTES_IN = 1
const BYTES_OUT = 2

export class LaneBoard {
  readonly memory: SharedArrayBuffer
  readonly #counts: Float64Array
  /** Written behind the numbers and read before them, which orders them among the threads. */
  readonly #order: Int32Array
  /** Exchanges that were told and that the main thread has not heard of yet. */
  readonly #unheard: Int32Array

  constructor(memory?: SharedArrayBuffer) {
    const bytes = NUMBERS * 8 * MAX_LANES
    this.memory = memory ?? new SharedArrayBuffer(bytes + 8)
    this.#counts = new Float64Array(this.memory, 0, NUMBERS * MAX_LANES)
    this.#order = new Int32Array(this.memory, bytes, 1)
    this.#unheard = new Int32Array(this.memory, bytes + 4, 1)
  }

  clear(slot: number): void {
    this.#counts.fill(0, NUMBERS * slot, NUMBERS * (slot + 1))
  }

  /** The thread: an exchange is over. Before its answer can reach anybody: whoever has it finds it counted here. */
  served(slot: number, bytesIn: number, bytesOut: number): void {
    this.#counts[NUMBERS * slot + REQUESTS]!++
    this.#counts[NUMBERS * slot + BYTES_IN]! += bytesIn
    this.#counts[NUMBERS * slot + BYTES_OUT]! += bytesOut
    Atomics.store(this.#order, 0, 0)
  }

  /** The thread. */
  told(count: number): void {
    Atomics.add(this.#unheard, 0, count)
  }

  /** The main thread has more to do than to listen. */
  get isDeaf(): boolean {
    return Atomics.load(this.#unheard, 0) >= MAX_UNHEARD
  }

  /** The main thread. */
  heard(count: number): void {
    Atomics.sub(this.#unheard, 0, count)
  }

  /** The main thread. */
  counts(slot: number): LaneCounts {
    Atomics.load(this.#order, 0)
    return {
      requests: this.#counts[NUMBERS * slot + REQUESTS]!,
      bytesIn: this.#counts[NUMBERS * slot + BYTES_IN]!,
      bytesOut: this.#counts[NUMBERS * slot + BYTES_OUT]!,
    }
  }
}
