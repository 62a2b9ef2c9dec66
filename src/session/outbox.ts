// The sending half of a session: collects frames in a batch, with one write per event-loop tick, and serves streams in turn.

import { copyBytes, copyOf } from '../bytes.ts'
import { DATA, END, FRAME_HEADER_BYTES, MAX_FRAME_BYTES, writeFrameHeader, writeU48 } from '../wire/frame.ts'
import type { Carrier } from './carrier.ts'
import type { Scheduler } from './scheduler.ts'
import type { Stream } from './stream.ts'

/** The size of four full frames: about as much as one read of a busy event loop brings. */
const BATCH_BYTES = 4 * (MAX_FRAME_BYTES + FRAME_HEADER_BYTES)
/** The initial size of a batch. Most clients are idle, and a flood of new ones must not cost 256 KiB each. */
const FIRST_BATCH_BYTES = 8_192
/** The minimum credit for which a frame is sent. A peer that grants byte by byte cannot make us send byte by byte. */
const MIN_DATA_BYTES = 4096

export class Outbox {
  /** The array in which `frame` put a header; the caller writes the payload there. Each flush may replace it. */
  batch: Uint8Array
  /** The number of times a stream waited for credit rather than for the carrier. */
  creditStalls = 0
  #batchEnd: number
  /** An array to continue with while the carrier keeps the one that it could not send completely. */
  #spare: Uint8Array | undefined
  /** Whether the carrier is full. Data then waits in the streams' queues; all other frames go into the batch. */
  #isStuck = false
  #isClosed = false
  #isFlushPlanned = false
  /** Whether turns are being served. Bytes written during that time wait for a turn of their own. */
  #isServing = false
  /** The streams with queued bytes that may be sendable, in the order of their turns. */
  readonly #turns = new Set<Stream>()
  readonly #carrier: Carrier
  readonly #scheduler: Scheduler
  readonly #overflowed: () => void
  /** The bytes of frames without data that may wait for a full carrier. An honest peer causes far fewer. */
  readonly #maxBacklogBytes: number
  readonly #finished: (stream: Stream) => void
  readonly #flushPlanned: () => void

  /**
   * Makes the outbox. `overflowed` is called if the other side causes replies faster than it reads them; `finished`
   * when END of a stream was sent.
   */
  constructor(
    carrier: Carrier,
    scheduler: Scheduler,
    overflowed: () => void,
    finished: (stream: Stream) => void,
    maxBacklogBytes: number,
  ) {
    this.#carrier = carrier
    this.#scheduler = scheduler
    this.#overflowed = overflowed
    this.#maxBacklogBytes = maxBacklogBytes
    this.#finished = finished
    this.batch = new Uint8Array(carrier.headroom + FIRST_BATCH_BYTES)
    this.#batchEnd = carrier.headroom
    this.#flushPlanned = () => this.flush()
  }

  /** The number of bytes that wait because the other side does not read, without data, which waits in its stream. */
  get backlogBytes(): number {
    return this.#isStuck ? this.#batchEnd - this.#carrier.headroom : 0
  }

  /** Writes the header of a frame without data into the batch. Returns the position for its payload. */
  frame(type: number, stream: number, length: number): number {
    const needed = FRAME_HEADER_BYTES + length
    if (this.#batchEnd + needed > this.batch.length) this.#makeRoom(needed)
    const at = this.#batchEnd
    writeFrameHeader(this.batch, at, type, stream, length)
    this.#batchEnd = at + needed
    this.#planFlush()
    return at + FRAME_HEADER_BYTES
  }

  /**
   * Sends as much of bytes[start, end) as credit and carrier allow, and queues the rest. Returns `false` if bytes are
   * queued: `writable` follows.
   */
  data(stream: Stream, bytes: Uint8Array, start: number, end: number): boolean {
    if (this.#isClosed) return true
    const isFirst = stream.queue.length === 0
    const mustWait = !isFirst || this.#isStuck || this.#isServing
    const sent = mustWait ? start : this.#append(stream, bytes, start, end)
    // If the carrier closed during the write, there is nothing to wait for.
    if (sent === end || stream.isClosed) return true
    stream.queue.push(copyOf(bytes, sent, end))
    if (isFirst) {
      this.#turns.add(stream)
      if (!mustWait && !this.#isStuck) this.creditStalls++
    }
    return false
  }

  /** Sends END after the queued bytes. */
  end(stream: Stream): void {
    if (stream.queue.length === 0) this.#appendEnd(stream)
  }

  credited(stream: Stream): void {
    if (stream.queue.length === 0) return
    this.#turns.add(stream)
    this.#serveTurns()
  }

  forget(stream: Stream): void {
    stream.queue.length = 0
    stream.queueOffset = 0
    this.#turns.delete(stream)
  }

  /** Called when the carrier takes bytes again. */
  drained(): void {
    if (!this.#isStuck || this.#isClosed) return
    this.#isStuck = false
    this.flush()
    this.#serveTurns()
  }

  /** Sends the batch now instead of at the end of the tick. */
  flush(): void {
    this.#isFlushPlanned = false
    if (!this.#isStuck) this.#sendBatch()
  }

  /** Sends the batch even to a full carrier, because the last frames cannot wait, and closes. */
  finish(): void {
    this.#sendBatch()
    this.close()
  }

  /** Forgets all bytes that are not sent. */
  close(): void {
    this.#isClosed = true
    this.#turns.clear()
    this.#spare = undefined
  }

  #sendBatch(): void {
    const { headroom } = this.#carrier
    if (this.#isClosed || this.#batchEnd === headroom) return
    const batch = this.batch
    const end = this.#batchEnd
    this.#batchEnd = headroom
    // An array that grew while the carrier was full is not kept, because the next batch fits a small one.
    const isKept = batch.length <= headroom + BATCH_BYTES
    if (this.#carrier.send(batch, headroom, end)) {
      if (!isKept) this.batch = new Uint8Array(headroom + FIRST_BATCH_BYTES)
      return
    }
    this.#isStuck = true
    this.batch = this.#spare ?? new Uint8Array(headroom + FIRST_BATCH_BYTES)
    this.#spare = isKept ? batch : undefined
  }

  #planFlush(): void {
    if (this.#isFlushPlanned || this.#isStuck) return
    this.#isFlushPlanned = true
    this.#scheduler.soon(this.#flushPlanned)
  }

  #makeRoom(needed: number): void {
    if (this.#grow(needed)) return
    this.flush()
    if (this.#batchEnd + needed <= this.batch.length) return
    // While the carrier is full, data waits in the streams. This batch contains replies that the other side caused.
    const twice = this.batch.length * 2
    const most = this.#carrier.headroom + this.#maxBacklogBytes
    const isOver = this.#batchEnd + needed > most
    // The array may grow above the limit, because the session is about to end.
    const larger = new Uint8Array(isOver ? twice : Math.min(twice, most))
    larger.set(this.batch.subarray(0, this.#batchEnd))
    this.batch = larger
    if (isOver) this.#overflowed()
  }

  /** Lets the batch grow up to `BATCH_BYTES`. Returns `false` if it has no room for `needed` more bytes. */
  #grow(needed: number): boolean {
    const full = this.#carrier.headroom + BATCH_BYTES
    if (this.#batchEnd + needed > full) return false
    const larger = new Uint8Array(Math.min(full, Math.max(4 * this.batch.length, this.#batchEnd + needed)))
    larger.set(this.batch.subarray(0, this.#batchEnd))
    this.batch = larger
    return true
  }

  /** Appends bytes[from, to) as DATA as far as credit and carrier allow. Returns the end position. */
  #append(stream: Stream, bytes: Uint8Array, from: number, to: number): number {
    let at = from
    while (at < to) {
      const count = Math.min(to - at, MAX_FRAME_BYTES, stream.credit)
      if (count === 0 || (count < MIN_DATA_BYTES && count < to - at)) break
      const needed = FRAME_HEADER_BYTES + count
      if (this.#batchEnd + needed > this.batch.length && !this.#grow(needed)) {
        this.flush()
        if (this.#isStuck || this.#isClosed) break
      }
      const header = this.#batchEnd
      writeFrameHeader(this.batch, header, DATA, stream.id, count)
      copyBytes(bytes, at, at + count, this.batch, header + FRAME_HEADER_BYTES)
      this.#batchEnd = header + FRAME_HEADER_BYTES + count
      stream.credit -= count
      at += count
    }
    this.#planFlush()
    return at
  }

  #appendEnd(stream: Stream): void {
    const at = this.frame(END, stream.id, 6)
    writeU48(this.batch, at, stream.deliveredBytes)
    this.#finished(stream)
  }

  /** Sends one frame per stream and round, until the carrier is full or no stream can send. */
  #serveTurns(): void {
    // A handler that writes or gives credit during the round joins it: a Set also visits entries added during the loop.
    if (this.#isServing) return
    this.#isServing = true
    try {
      for (const stream of this.#turns) {
        if (this.#isStuck) break
        this.#turns.delete(stream)
        this.#serve(stream)
      }
    } finally {
      this.#isServing = false
    }
  }

  #serve(stream: Stream): void {
    const first = stream.queue[0]
    if (first === undefined) return
    const from = stream.queueOffset
    const sent = this.#append(stream, first, from, Math.min(first.length, from + MAX_FRAME_BYTES))
    // The carrier may have closed during the write, and the stream with it.
    if (stream.isClosed) return
    stream.queueOffset = sent
    if (sent === first.length) {
      stream.queue.shift()
      stream.queueOffset = 0
    }
    if (stream.queue.length > 0) {
      // A stream that made no progress waits for credit, which gives it a turn again.
      if (sent > from || this.#isStuck) this.#turns.add(stream)
    } else if (stream.hasEnded) this.#appendEnd(stream)
    else stream.handler.writable()
  }
}
