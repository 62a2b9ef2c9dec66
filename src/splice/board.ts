// What both threads see: a slot of numbers for each job, and a ring of commands from the main thread.

/** Jobs at once in a process. Above: bytes go the way through the program. */
export const MAX_JOBS = 128
/** Commands that can wait: each job has one that begins and one that stops it. A power of two. */
const RING_SLOTS = 4 * MAX_JOBS
/** Takes a count that has turned negative, after 2³¹ commands, to its place in the ring as well. */
const RING_MASK = RING_SLOTS - 1

/** The last word. */
const ORDER_AT = 1 + RING_SLOTS + 2 * MAX_JOBS

const START = 0
const STOP = 1

export interface Orders {
  start(slot: number): void
  stop(slot: number): void
}

export class Board {
  readonly memory: SharedArrayBuffer
  /** Commands given so far, then the ring, then two descriptors for each slot, then a word that orders counts. */
  readonly #words: Int32Array
  /**
   * Limit, bytes taken and bytes moved of each slot: numbers that no move has to allocate, each written and read at once
   * by the machine. What orders them among the threads is the word that is written behind, and read before them.
   */
  readonly #counts: Float64Array
  /** Commands followed so far. Only the other thread uses it. */
  #followed: number

  /** `given`: commands given before, for tests: none in a new memory. */
  constructor(memory?: SharedArrayBuffer, given = 0) {
    this.#followed = given
    const words = 1 + RING_SLOTS + 2 * MAX_JOBS + 1
    const countsAt = Math.ceil(words / 2) * 8
    this.memory = memory ?? new SharedArrayBuffer(countsAt + 3 * 8 * MAX_JOBS)
    this.#words = new Int32Array(this.memory, 0, words)
    this.#counts = new Float64Array(this.memory, countsAt)
    if (memory === undefined) this.#words[0] = given
  }

  // ── The main thread ────────────────────────────────────────────────────────────────────────────────────────

  start(slot: number, from: number, to: number, limitBytes: number): void {
    this.#words[fromAt(slot)] = from
    this.#words[fromAt(slot) + 1] = to
    this.#counts[3 * slot] = limitBytes
    this.#counts[3 * slot + 1] = 0
    this.#counts[3 * slot + 2] = 0
    this.#give(2 * slot + START)
  }

  stop(slot: number): void {
    this.#give(2 * slot + STOP)
  }

  #give(command: number): void {
    const given = Atomics.load(this.#words, 0)
    this.#words[1 + (given & RING_MASK)] = command
    Atomics.store(this.#words, 0, (given + 1) | 0)
  }

  // ── The splicing thread ────────────────────────────────────────────────────────────────────────────────────

  /** Follows the commands given since the last call. */
  follow(orders: Orders): void {
    const given = Atomics.load(this.#words, 0)
    while (this.#followed !== given) {
      const command = this.#words[1 + (this.#followed & RING_MASK)]!
      this.#followed = (this.#followed + 1) | 0
      if (command % 2 === START) orders.start(command >> 1)
      else orders.stop(command >> 1)
    }
  }

  from(slot: number): number {
    return this.#words[fromAt(slot)]!
  }

  to(slot: number): number {
    return this.#words[fromAt(slot) + 1]!
  }

  limitBytes(slot: number): number {
    return this.#counts[3 * slot]!
  }

  /** Before any of it can reach the other socket: whoever hears of a byte there finds it counted here. */
  taken(slot: number, bytes: number): void {
    this.#counts[3 * slot + 1] = bytes
    Atomics.store(this.#words, ORDER_AT, 0)
  }

  moved(slot: number, bytes: number): void {
    this.#counts[3 * slot + 2] = bytes
    Atomics.store(this.#words, ORDER_AT, 0)
  }

  // ── Both ───────────────────────────────────────────────────────────────────────────────────────────────────

  takenBytes(slot: number): number {
    Atomics.load(this.#words, ORDER_AT)
    return this.#counts[3 * slot + 1]!
  }

  movedBytes(slot: number): number {
    Atomics.load(this.#words, ORDER_AT)
    return this.#counts[3 * slot + 2]!
  }
}

function fromAt(slot: number): number {
  return 1 + RING_SLOTS + 2 * slot
}
