// Decides when a connection of Bun is read: not while its handler pauses it, nor while others have their turn before
// its large transfer.

import { smallReads } from '../accelerator.ts'
import { descriptorOf } from './descriptor.ts'
import { boundReceiving } from './receive-buffer.ts'

/**
 * The size of a read that means a large transfer. Bun reads 512 KB at a time, and up to eleven times in a row from a
 * socket with more. With two such processes in a chain, small responses next to a download took 5 ms at the median;
 * since large transfers yield, 0.3 ms (`benchmarks/suites/speed.ts --only beside`). A response of 256 KB comes in one read
 * and does not count: pauses and splices after it took a fifth of its time.
 */
const BULK_READ_BYTES = 327_680
/** The size of a read after which the kernel's buffer is limited, as for a large transfer. */
const BOUNDED_READ_BYTES = 131_072
const SMALL_READ_BYTES = 16_384
/** The pause of a large transfer in milliseconds while small reads happen. 512 KB per millisecond are still 500 MB/s. */
const POLITE_PAUSE_MS = 1
/** The number of small reads when a large transfer last checked. */
let smallReadsSeen = 0

/**
 * The number of large connections that are read in one turn of the event loop. A read of 512 KB takes about 0.15 ms,
 * so 200 would take 30 ms. With 16, a turn of 4 ms still reads 2 GB/s.
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
  /** Called before the next bytes of a large transfer, or those after `requestTurn`, are read. */
  spliceable(): void
  failed(error: Error): void
}

export class Reading {
  readonly #source: Source
  /** Whether the handler has paused it. */
  #isPaused = false
  /** Whether other connections have their turn first. */
  #isYielding = false
  /**
   * Whether the connection carries many streams. A large read may then be many small responses, which must not be
   * delayed; its session divides the time.
   */
  isShared = false
  /** Whether the last read was large. */
  isBulk = false
  /** Whether the kernel's buffer for the connection was limited. */
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
    // A handler that was full takes bytes again, which is a good moment for a splice, but not during a read.
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

  /** Called when the main thread has the connection again. */
  readOn(): void {
    if (!this.#isPaused && !this.#isYielding) this.#source.raw.resume()
  }

  /** Limits the kernel's buffer as for any other large transfer. */
  bound(): void {
    if (this.#isBounded) return
    this.#isBounded = true
    const descriptor = descriptorOf(this.#source.raw)
    if (descriptor !== undefined) boundReceiving(descriptor)
  }

  /**
   * Lets other sockets have their turn before this one is read again: in the next tick, or a little later while others read small
   * pieces. Small reads are requests and responses, which get a core late if large transfers keep it busy.
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

  turn(): void {
    this.#isYielding = false
    if (this.#isPaused) return
    try {
      this.#source.spliceable()
      if (!this.#source.isRead) this.#source.raw.resume()
    } catch (error) {
      // Bun has no handler below that would catch the error.
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
