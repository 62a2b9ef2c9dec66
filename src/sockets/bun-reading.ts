// When a connection of Bun is read: not while its handler pauses it, nor while others have their turn before its bulk.

import { smallReads } from '../accelerator.ts'
import { descriptorOf } from './descriptor.ts'
import { boundReceiving } from './receive-buffer.ts'

/**
 * A read of this size is bulk. Bun reads 512 KB at a time, and up to eleven times in a row from a socket that has
 * more: with two such processes in a chain, small responses next to a download took 5 ms at the median, and 0.3 ms since
 * bulk yields (`benchmarks/suites/speed.ts --only beside`). A response of 256 KB comes in one read, and is not bulk: behind it,
 * pauses and splices took a fifth of its time.
 */
const BULK_READ_BYTES = 327_680
/** After such a read the kernel stores no more than for bulk. */
const BOUNDED_READ_BYTES = 131_072
const SMALL_READ_BYTES = 16_384
/** The pause of a large transfer in milliseconds while small reads happen: 512 KB a millisecond is still 500 MB/s. */
const POLITE_PAUSE_MS = 1
/** The number of small reads at the last check by a large transfer. */
let smallReadsSeen = 0

/**
 * The number of large connections that are read in one turn of the event loop: a read of 512 KB takes some 0.15 ms, so 200
 * would take 30 ms. With 16, a turn of 4 ms still reads 2 GB/s.
 */
const BULK_READS_PER_TURN = 16
/** The connections with more to read, in the order of their turns. */
const waitingForTurn = new Set<Reading>()
let isTurnPlanned = false

/** A source of bytes. */
export interface Source {
  readonly raw: { pause(): unknown; resume(): unknown }
  /** Whether another thread reads it. */
  readonly isRead: boolean
  /** The next bytes of bulk, or of what `requestTurn` was called for, are not read yet. */
  spliceable(): void
  /** A handler threw. */
  failed(error: Error): void
}

export class Reading {
  readonly #source: Source
  /** Whether the handler has paused it. */
  #isPaused = false
  /** Whether others have their turn first. */
  #isYielding = false
  /**
   * Whether it carries many streams: a large read may be many small responses, which nothing may delay. Its session takes them
   * in turns.
   */
  isShared = false
  /** The last read was bulk. */
  isBulk = false
  /** The kernel keeps less for it than it might. */
  #isBounded = false

  constructor(source: Source) {
    this.#source = source
  }

  pause(): void {
    this.#isPaused = true
    this.#source.raw.pause()
  }

  resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    if (this.#isYielding || this.#source.isRead) return
    // A handler that was full takes bytes again: a good moment for a splice too, but for a call in the middle of a read.
    if (this.isBulk) this.#nextTurn(0)
    else this.#source.raw.resume()
  }

  /** Called when `count` bytes were read. */
  arrived(count: number): void {
    this.isBulk = count >= BULK_READ_BYTES && !this.isShared
    if (count >= BOUNDED_READ_BYTES) this.bound()
    if (this.isBulk) this.#yield()
    else if (count < SMALL_READ_BYTES) smallReads[0]!++
  }

  /** Asks for a call of `spliceable` before the next read. */
  requestTurn(): void {
    if (this.#isYielding || this.#isPaused || this.#source.isRead) return
    this.#source.raw.pause()
    this.#nextTurn(0)
  }

  /** Called when it belongs to the main thread again. */
  readOn(): void {
    if (!this.#isPaused && !this.#isYielding) this.#source.raw.resume()
  }

  /** Called when the kernel stores no more for it than for any other large transfer. */
  bound(): void {
    if (this.#isBounded) return
    this.#isBounded = true
    const descriptor = descriptorOf(this.#source.raw)
    if (descriptor !== undefined) boundReceiving(descriptor)
  }

  /**
   * Lets the other sockets have their turn before this one is read again: the next tick, or a moment later while others read
   * small pieces. Small reads are requests and responses, and cores that large transfers keep busy come late.
   */
  #yield(): void {
    if (this.#isYielding || this.#isPaused) return
    this.#source.raw.pause()
    this.#nextTurn(smallReads[0]! === smallReadsSeen ? 0 : POLITE_PAUSE_MS)
    smallReadsSeen = smallReads[0]!
  }

  #nextTurn(waitMs: number): void {
    this.#isYielding = true
    if (waitMs > 0) setTimeout(waitForTurn, waitMs, this)
    else if (this.isBulk) waitForTurn(this)
    else setImmediate(() => this.turn())
  }

  /** Called when its turn has come. */
  turn(): void {
    this.#isYielding = false
    if (this.#isPaused) return
    try {
      this.#source.spliceable()
      if (!this.#source.isRead) this.#source.raw.resume()
    } catch (error) {
      // Nothing of Bun's is below that would catch it.
      this.#source.failed(error instanceof Error ? error : new Error(String(error)))
    }
  }
}

function waitForTurn(reading: Reading): void {
  waitingForTurn.add(reading)
  if (isTurnPlanned) return
  isTurnPlanned = true
  setImmediate(runTurn)
}

function runTurn(): void {
  isTurnPlanned = false
  let left = BULK_READS_PER_TURN
  for (const reading of waitingForTurn) {
    if (left-- === 0) break
    waitingForTurn.delete(reading)
    reading.turn()
  }
  if (waitingForTurn.size === 0 || isTurnPlanned) return
  isTurnPlanned = true
  setImmediate(runTurn)
}
