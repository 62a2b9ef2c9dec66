// The input of a visitor's connection. Each connection handles a portion of its bytes in its turn.
//
//   socket ─▶ received ─▶ work ─▶ reader.take … the rest waits here
//
// Bytes wait here for the rest of a head, for a turn of the event loop, or for the end of the exchange before them.
// The socket is not read while the connection waits for a turn or its reader is paused.

import { ByteBuffer, copyOf } from '../../bytes.ts'
import type { Waiting } from '../../session/turns.ts'
import type { Socket } from '../../socket.ts'
import type { InputShare } from '../contracts/protocol.ts'

/**
 * The number of requests that one connection begins or refuses in a turn. They take a fifth of a millisecond, so 200
 * such connections take 40 ms.
 */
const HEADS_IN_A_TURN = 16
/** A larger read is handled at once only if other connections have left time in this turn of the event loop. */
const SMALL_READ_BYTES = 16_384

/** The size that stands for an array that belongs to the caller: bytes that wait are copied out of it. */
const FOREIGN = Number.POSITIVE_INFINITY

export interface InputReader {
  /** Whether bytes are parsed now, rather than only passed on or stored. */
  readonly isParsing: boolean
  /** Whether a request head, or the rest of one, comes next. */
  readonly isHeadAwaited: boolean
  /** Takes bytes from `at` on. Returns the next position; `at` itself if the bytes must wait. */
  take(bytes: Uint8Array, at: number): number
  /** Called when the visitor sends no more and its bytes were handled as far as possible now. */
  inputEnded(): void
  /** Called when bytes arrived before they could be handled. */
  waits(): void
}

export class HttpInput implements Waiting {
  readonly #socket: Socket
  readonly #share: InputShare
  readonly #reader: InputReader
  /** The waiting bytes: the beginning of a head, or requests ahead of their turn. */
  readonly buffer: ByteBuffer
  /** Whether more bytes arrived than one turn handles. Until its next turn, the connection is not read. */
  #isQueued = false
  #isPaused = false
  /** Whether bytes are being handled now, which the buffer does not contain. */
  #isWorking = false
  #hasTurn = false
  #hasEnded = false
  #droppedBytes = 0

  constructor(socket: Socket, share: InputShare, reader: InputReader) {
    this.#socket = socket
    this.#share = share
    this.#reader = reader
    this.buffer = new ByteBuffer(share.heldInput)
  }

  // ── From the socket ────────────────────────────────────────────────────────────────────────────────────────

  received(bytes: Uint8Array): void {
    const { turns } = this.#share
    if (this.#isQueued) this.buffer.add(bytes)
    else if (bytes.length > SMALL_READ_BYTES && this.#reader.isParsing && !turns.hasTime)
      this.#queue(bytes, 0, FOREIGN)
    else this.#work(bytes, FOREIGN, 1)
  }

  /** Handles bytes that were read in another place at once, whatever their number. */
  handle(bytes: Uint8Array): void {
    this.#work(bytes, FOREIGN, 1)
  }

  ended(): void {
    this.#hasEnded = true
    if (!this.#isQueued) this.#reader.inputEnded()
  }

  turn(): void {
    this.#isQueued = false
    if (!this.#isPaused) this.#socket.resume()
    const { arrayBytes } = this.buffer
    this.#hasTurn = true
    try {
      this.#goOn(this.buffer.take(), arrayBytes, HEADS_IN_A_TURN)
    } finally {
      this.#hasTurn = false
    }
  }

  // ── What waits ─────────────────────────────────────────────────────────────────────────────────────────────

  get isEmpty(): boolean {
    return this.buffer.isEmpty
  }

  get isQueued(): boolean {
    return this.#isQueued
  }

  /** Whether the connection has its turn now and may handle a whole portion. */
  get hasTurn(): boolean {
    return this.#hasTurn
  }

  get hasEnded(): boolean {
    return this.#hasEnded
  }

  /** Whether no bytes wait or are being handled. */
  get isIdle(): boolean {
    return this.buffer.isEmpty && !this.#isWorking
  }

  /** Whether no request can follow: the visitor sent FIN, and all bytes before it were handled. */
  get isOver(): boolean {
    return this.#hasEnded && this.isIdle
  }

  /** Whether the server stores too many bytes of all visitors, and this visitor has more than its share. */
  get keepsTooMuch(): boolean {
    const { heldInput, limits } = this.#share
    return heldInput.isTooMuch(this.buffer.arrayBytes, limits.maxAllInputBytes)
  }

  clear(): void {
    this.buffer.clear()
  }

  // ── Reading and not reading ────────────────────────────────────────────────────────────────────────────────

  pause(): void {
    if (this.#isPaused) return
    this.#isPaused = true
    if (!this.#isQueued) this.#socket.pause()
  }

  resume(): void {
    if (!this.#isPaused || this.buffer.length > this.#share.limits.maxPipelinedBytes) return
    this.#isPaused = false
    if (!this.#isQueued) this.#socket.resume()
  }

  /** Calls `first`, then handles the bytes that wait. */
  proceed(first?: () => void): void {
    const { arrayBytes } = this.buffer
    const rest = this.buffer.take()
    this.resume()
    first?.()
    this.#goOn(rest, arrayBytes, 1)
  }

  /** Called when no further request of this connection is served: the reader gets further bytes at once. */
  leaveQueue(): void {
    this.#share.turns.forget(this)
    if (!this.#isQueued) return
    this.#isQueued = false
    if (!this.#isPaused) this.#socket.resume()
  }

  /** Counts `count` more dropped bytes of a closing connection. Returns whether they exceed `mostBytes`. */
  dropsTooMuch(count: number, mostBytes: number): boolean {
    this.#droppedBytes += count
    return this.#droppedBytes > mostBytes
  }

  close(): void {
    this.#share.turns.forget(this)
    this.buffer.clear()
  }

  #goOn(rest: Uint8Array | undefined, arrayBytes: number, heads: number): void {
    if (rest !== undefined) this.#work(rest, arrayBytes, heads)
    else if (this.#hasEnded && !this.#isWorking) this.#reader.inputEnded()
  }

  /**
   * Passes on the bytes that arrived, in any mixture of heads, bodies and further requests: `heads` requests, and
   * more if there is time in this turn of the event loop. The rest waits. `whole` may be a view of an array of
   * `wholeBytes`. A visit keeps its head, so heads are read from an array of their own.
   */
  #work(whole: Uint8Array, wholeBytes: number, heads: number): void {
    this.#isWorking = true
    const reader = this.#reader
    let bytes = whole
    let arrayBytes = wholeBytes
    let at = 0
    let headsLeft = heads
    while (at < bytes.length) {
      const isHead = reader.isHeadAwaited
      const mayGoOn = at === 0 || !reader.isParsing || (isHead && headsLeft > 0) || this.#share.turns.hasTime
      if (!mayGoOn) {
        this.#queue(bytes, at, arrayBytes)
        break
      }
      if (isHead) headsLeft--
      if (isHead && arrayBytes === FOREIGN) {
        bytes = copyOf(bytes, at)
        arrayBytes = bytes.length
        at = 0
      }
      const next = reader.take(bytes, at)
      if (next === at) {
        this.#keep(bytes, at, arrayBytes)
        break
      }
      at = next
    }
    this.#isWorking = false
    if (this.#hasEnded && !this.#isQueued) reader.inputEnded()
  }

  /** Stores bytes that came before the end of the open exchange. When there are too many, reading stops. */
  #keep(bytes: Uint8Array, at: number, arrayBytes: number): void {
    this.buffer.adopt(bytes, at, arrayBytes)
    this.#reader.waits()
    if (this.buffer.length > this.#share.limits.maxPipelinedBytes) this.pause()
  }

  #queue(bytes: Uint8Array, at: number, arrayBytes: number): void {
    this.#isQueued = true
    if (!this.#isPaused) this.#socket.pause()
    this.buffer.adopt(bytes, at, arrayBytes)
    this.#reader.waits()
    this.#share.turns.wait(this)
  }
}
