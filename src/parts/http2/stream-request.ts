// The body of a request on one stream of HTTP/2 or HTTP/3: turns DATA into HTTP/1.1 text. Bytes that its visit does
// not read yet wait here, and keep the stream's window closed.

import { copyBytes, copyOf, type HeldBytes } from '../../bytes.ts'
import { ascii } from '../../http/characters.ts'
import type { RequestHead } from '../../http/head.ts'

const LAST_CHUNK = ascii('0\r\n\r\n')
const CHUNK_LINE_BYTES = 12

export interface BodyTaker {
  /** Called with a piece of the body, framing included. */
  body(bytes: Uint8Array): void
  bodyEnded(): void
}

export class StreamRequest {
  readonly #taker: BodyTaker
  readonly #held: HeldBytes
  /** Gives the visitor credit for `count` more bytes. */
  readonly #consumed: (count: number) => void
  #framing: RequestHead['body'] = 'none'
  #leftBytes = 0
  /** The number of bytes of the body so far, without framing. */
  payloadBytes = 0
  readonly #pieces: Uint8Array[] = []
  /** The credit for each waiting piece, and for the last ones passed on, that was not given yet. */
  readonly #credits: number[] = []
  #heldBytes = 0
  #owedBytes = 0
  #isPaused = false
  #isPassing = false
  /** Whether an upgrade waits for the origin's agreement. */
  #awaitsSwitch = false
  #hasEnded = false
  /** Whether the whole body was passed on. */
  isComplete = false

  constructor(taker: BodyTaker, held: HeldBytes, consumed: (count: number) => void) {
    this.#taker = taker
    this.#held = held
    this.#consumed = consumed
  }

  begin(head: RequestHead): void {
    this.#framing = head.body
    this.#leftBytes = head.contentLength
    this.isComplete = head.body === 'none'
  }

  /** Waits for the origin to accept an upgrade. Its bytes have no framing. */
  awaitSwitch(): void {
    this.#framing = 'none'
    this.#awaitsSwitch = true
    this.#leftBytes = Number.POSITIVE_INFINITY
  }

  /** Called when the origin accepted the upgrade. */
  switched(): void {
    this.#awaitsSwitch = false
    this.isComplete = false
  }

  /** Takes bytes[start, end). Returns `false` if there are more than the head said. */
  data(bytes: Uint8Array, start: number, end: number): boolean {
    const count = end - start
    this.payloadBytes += count
    if (this.#framing === 'chunked') {
      this.#take(this.#chunk(bytes, start, end), count)
      return true
    }
    this.#leftBytes -= count
    if (this.#leftBytes < 0) return false
    this.#take(start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end), count)
    return true
  }

  /** Called for END_STREAM, with the text of trailers. Returns `false` if there was less than the head said. */
  ended(trailers: Uint8Array | undefined): boolean {
    if (this.#framing === 'length' && this.#leftBytes !== 0) return false
    this.#hasEnded = true
    if (this.#framing === 'chunked') this.#take(trailers ?? LAST_CHUNK, 0)
    this.pass()
    return true
  }

  /** The number of bytes that wait because the visit does not take them. */
  get heldBytes(): number {
    return this.#heldBytes
  }

  pause(): void {
    this.#isPaused = true
  }

  /** Passes the waiting bytes to `pass`. */
  resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    const count = this.#owedBytes
    this.#owedBytes = 0
    this.#consumed(count)
  }

  get isWaiting(): boolean {
    return this.#pieces.length > 0
  }

  clear(): void {
    if (this.#pieces.length === 0) return
    this.#hold(-this.#heldBytes)
    this.#pieces.length = 0
    this.#credits.length = 0
  }

  #take(piece: Uint8Array, credit: number): void {
    if (this.#mayPass && !this.#isPassing && this.#pieces.length === 0) {
      this.#taker.body(piece)
      this.#passed(credit)
      return
    }
    this.#pieces.push(copyOf(piece))
    this.#credits.push(credit)
    this.#hold(piece.length)
  }

  pass(): void {
    if (this.#isPassing) return
    this.#isPassing = true
    while (this.#mayPass) {
      const piece = this.#pieces.shift()
      if (piece === undefined) break
      this.#hold(-piece.length)
      this.#taker.body(piece)
      this.#passed(this.#credits.shift() ?? 0)
    }
    this.#isPassing = false
    // The request is complete even if the last piece itself caused a pause.
    if (!this.#hasEnded || this.#pieces.length > 0 || this.isComplete) return
    this.isComplete = true
    this.#taker.bodyEnded()
  }

  get #mayPass(): boolean {
    return !this.#isPaused && !this.#awaitsSwitch
  }

  /** Gives credit for the bytes that the visit read, except for the last piece if the visit is now paused. */
  #passed(credit: number): void {
    if (this.#isPaused) this.#owedBytes += credit
    else this.#consumed(credit)
  }

  #hold(count: number): void {
    const before = this.#heldBytes
    this.#heldBytes += count
    this.#held.bytes += count
    if (before === 0 && this.#heldBytes > 0) this.#held.count++
    if (before > 0 && this.#heldBytes === 0) this.#held.count--
  }

  #chunk(bytes: Uint8Array, start: number, end: number): Uint8Array {
    const count = end - start
    const size = count.toString(16)
    const into = new Uint8Array(count + CHUNK_LINE_BYTES)
    let to = 0
    for (; to < size.length; to++) into[to] = size.charCodeAt(to)
    into[to++] = 0x0d
    into[to++] = 0x0a
    copyBytes(bytes, start, end, into, to)
    to += count
    into[to++] = 0x0d
    into[to++] = 0x0a
    return into.subarray(0, to)
  }
}
