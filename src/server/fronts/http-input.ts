// The input of a visitor's connection: in portions, each connection in its turn.
//
//   socket ─▶ received ─▶ work ─▶ reader.take … and what the reader leaves, or has no time for, waits here
//
// There is one place where bytes wait, for the rest of a head, for a turn of the event loop, or until the exchange before them
// is over, and one reason why the socket is not read: a turn is awaited, or the reader has paused.

import { ByteBuffer, copyOf } from '../../bytes.ts'
import type { Waiting } from '../../session/turns.ts'
import type { Socket } from '../../socket.ts'
import type { InputShare } from '../contracts/protocol.ts'

/**
 * Requests that one connection has begun or refused in its turn, when more have arrived than are handled at once. They take a
 * fifth of a millisecond, so that 200 such connections take 40 ms.
 */
const HEADS_IN_A_TURN = 16
/** A read above this is only handled at once when others have not used up the time. */
const SMALL_READ_BYTES = 16_384

/** Stands for an array of the caller, of which everything that waits is copied. */
const FOREIGN = Number.POSITIVE_INFINITY

export interface InputReader {
  /** Bytes are looked at now, not only passed on or kept. */
  readonly isParsing: boolean
  /** A request's head comes next, or the rest of it. */
  readonly isHeadAwaited: boolean
  /** Takes bytes from `at` on. Returns where to go on; `at`: not now, the rest is to wait. */
  take(bytes: Uint8Array, at: number): number
  /** The visitor sends no more, and all that it sent was handled as far as that is possible now. */
  inputEnded(): void
  /** Bytes wait that arrived before they could be handled. */
  waits(): void
}

export class HttpInput implements Waiting {
  readonly #socket: Socket
  readonly #share: InputShare
  readonly #reader: InputReader
  /** The waiting bytes: the beginning of a head, or those ahead of their turn. */
  readonly buffer: ByteBuffer
  /** Whether more arrived than could be done at once: it waits for its turn, and nothing is read. */
  #isQueued = false
  #isPaused = false
  /** Whether bytes are being handled: there may be more than the buffer has. */
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

  /** Bytes that were read somewhere else are handled at once, whatever their number. */
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

  /** Whether its turn is now: it may do a whole portion. */
  get hasTurn(): boolean {
    return this.#hasTurn
  }

  get hasEnded(): boolean {
    return this.#hasEnded
  }

  /** Whether nothing waits and nothing is being handled. */
  get isIdle(): boolean {
    return this.buffer.isEmpty && !this.#isWorking
  }

  /** No request can follow: the visitor sent FIN, and all that came before it was handled. */
  get isOver(): boolean {
    return this.#hasEnded && this.isIdle
  }

  /** All visitors together have the server keep too much, and this one has more than its share. */
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

  /** Handles what waits, after `first`. */
  proceed(first?: () => void): void {
    const { arrayBytes } = this.buffer
    const rest = this.buffer.take()
    this.resume()
    first?.()
    this.#goOn(rest, arrayBytes, 1)
  }

  /** No request of this connection is served any more: what still arrives is the reader's at once. */
  leaveQueue(): void {
    this.#share.turns.forget(this)
    if (!this.#isQueued) return
    this.#isQueued = false
    if (!this.#isPaused) this.#socket.resume()
  }

  /**
   * Whether a closing connection has dropped more than `mostBytes`, after `count` more. Whether they are more than `mostBytes`
   * by now.
   */
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
   * Hands on what arrived, whatever mixture of heads, bodies and further requests it is: `heads` of them, and more if there
   * is time in this turn of the event loop. The rest waits. `whole` may be a view of an array of `wholeBytes`. A visit keeps its
   * head, so heads are read from an array of its own.
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

  /** Stores bytes that came before the end of the open exchange, within bounds; then reading stops. */
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
