// The capture of one connection to an HTTP origin. Its pieces wait in a queue, and are parsed apart from the traffic,
// by the same strict parsers that the server uses.

import { copyOf } from '../../bytes.ts'
import { TunnelError } from '../../errors.ts'
import { parseRequestHead, RequestHead } from '../../http/head.ts'
import type { Capture } from './capture.ts'
import type { Place } from './entry.ts'
import { type Flow, FROM_APP, type Piece, TO_APP, type Way } from './flow.ts'
import { HEAD_LIMITS, HttpReader } from './http-reader.ts'
import { Http2Reader, isPreface } from './http2-reader.ts'

/**
 * The number of bytes between two checks of the clock: up to 4,096 WebSocket frames without payload, which take 5 ms.
 * A whole read of them would delay everything else at the client by a third of a second.
 */
const PORTION_BYTES = 8_192

export class HttpFlow implements Flow {
  readonly #room: Capture
  readonly #place: Place
  readonly #replayOf: number | undefined
  #queue: Piece[] = []
  #queuedBytes = 0
  #reader: HttpReader | Http2Reader | undefined
  /** Whether the origin was the last to send, while nothing is captured, so that a request may come next. */
  #isAnswered = true
  /** Asks another thread for the connection. `undefined` if no thread has it. */
  #stopLoan: (() => void) | undefined
  #closed: { readonly at: number; readonly error: Error | undefined; readonly isCut: boolean } | undefined

  constructor(room: Capture, place: Place, replayOf?: number) {
    this.#room = room
    this.#place = place
    this.#replayOf = replayOf
  }

  get isPassing(): boolean {
    return this.#reader === undefined && this.#queue.length === 0
  }

  // ── In the path of the bytes ───────────────────────────────────────────────────────────────────────────────

  wants(bytes: Uint8Array, start: number, end: number): boolean {
    if (this.#reader !== undefined) return true
    this.#cameBack()
    // The decision to capture is made for each request. After such a beginning, this connection cannot be read.
    if (this.#place.isHttp2 === true && isPreface(bytes, start, end)) {
      this.#reader = new Http2Reader(this.#room, this.#place)
      return true
    }
    // A new connection, one whose capture fell behind, or one that another thread returned is read from the next request on.
    const mayBegin = this.#isAnswered && this.#room.mayCapture(this.#replayOf !== undefined)
    this.#isAnswered = false
    if (!mayBegin || !isRequest(bytes, start, end)) return false
    this.#reader = new HttpReader(this.#room, this.#place, this.#replayOf)
    return true
  }

  reserve(): Piece {
    const piece: Piece = { way: TO_APP, at: performance.now(), bytes: undefined }
    this.#queue.push(piece)
    return piece
  }

  sent(piece: Piece, bytes: Uint8Array, start: number, end: number): void {
    const count = end - start
    if (this.#queue.length === 1 && this.unseenBytes(TO_APP) >= count && count > 0) {
      this.#queue.length = 0
      return this.passed(TO_APP, count)
    }
    // The socket may have taken nothing; then the piece is empty.
    piece.bytes = copyOf(bytes, start, end)
    this.#queued(count)
  }

  received(bytes: Uint8Array): void {
    if (this.#reader === undefined) {
      this.#cameBack()
      this.#isAnswered = true
      return
    }
    if (this.unseenBytes(FROM_APP) >= bytes.length) return this.passed(FROM_APP, bytes.length)
    const kept = copyOf(bytes)
    this.#queue.push({ way: FROM_APP, at: performance.now(), bytes: kept })
    this.#queued(bytes.length)
  }

  ended(way: Way): void {
    if (this.#reader === undefined) return
    this.#queue.push({ way, at: performance.now(), bytes: undefined })
    this.#queued(0)
  }

  unseenBytes(way: Way): number {
    const isWaiting = this.#queue.some(piece => piece.bytes !== undefined)
    // Without a capture, no bytes need to be seen; large transfers are then spliced.
    if (this.#reader === undefined) return isWaiting ? 0 : Number.POSITIVE_INFINITY
    return isWaiting ? 0 : this.#reader.unseenBytes(way)
  }

  passed(way: Way, count: number): void {
    if (this.#reader === undefined) this.#isAnswered = way === FROM_APP
    else this.#reader.passed(way, count, performance.now())
  }

  lent(stop: () => void): void {
    this.#stopLoan = stop
    this.#room.lent.add(this)
    // After another thread had the connection, only the beginning of a request has a known meaning.
    this.#isAnswered = true
  }

  /** Captures again, and asks for the connection back. */
  recall(): void {
    const stop = this.#stopLoan
    this.#cameBack()
    stop?.()
  }

  #cameBack(): void {
    if (this.#stopLoan === undefined) return
    this.#room.lent.delete(this)
    this.#stopLoan = undefined
  }

  closed(error: Error | undefined, isCut: boolean): void {
    this.#room.lent.delete(this)
    if (this.#reader === undefined) return
    this.#closed = { at: performance.now(), error, isCut }
    this.#queued(0)
  }

  #queued(count: number): void {
    this.#queuedBytes += count
    if (this.#room.queued(this, count)) return
    this.#room.behind(this.#queuedBytes)
    this.#forgetQueue()
    this.#reader?.lose(performance.now())
    this.#reader = undefined
    this.#isAnswered = false
  }

  #forgetQueue(): void {
    this.#room.read(this.#queuedBytes)
    this.#queue = []
    this.#queuedBytes = 0
  }

  // ── Called from outside ────────────────────────────────────────────────────────────────────────────────────

  /** Reads the waiting bytes. Returns `false` if there are more and no time is left. */
  read(deadline: number): boolean {
    const queue = this.#queue
    let index = 0
    while (index < queue.length && this.#reader !== undefined) {
      const { way, at, bytes } = queue[index]!
      const portion = bytes?.subarray(0, PORTION_BYTES)
      if (portion === undefined) this.#reader.ended(way, at)
      else this.#reader.take(way, portion, at)
      const count = portion?.length ?? 0
      if (bytes !== undefined && count < bytes.length)
        queue[index] = { way, at, bytes: bytes.subarray(count) }
      else index++
      this.#queuedBytes -= count
      this.#room.read(count)
      if (this.#reader.isOver) this.#stopReading()
      if (performance.now() > deadline && index < queue.length) {
        this.#queue = queue.slice(index)
        return false
      }
    }
    this.#forgetQueue()
    const closed = this.#closed
    if (closed !== undefined && this.#reader !== undefined) {
      const { error, isCut, at } = closed
      const code = error instanceof TunnelError ? error.code : isCut ? 'CANCELLED' : 'ORIGIN_CLOSED'
      this.#reader.closed(at, error === undefined ? undefined : code)
      this.#reader = undefined
    }
    return true
  }

  /** Stops capturing: there are too many requests, or the bytes are not HTTP. */
  #stopReading(): void {
    const [last] = this.#queue.slice(-1)
    this.#isAnswered = last?.way === FROM_APP
    this.#reader = undefined
  }
}

const head = new RequestHead()

/** Whether a complete request head begins here. */
function isRequest(bytes: Uint8Array, start: number, end: number): boolean {
  head.reset()
  return parseRequestHead(head, bytes, start, end, HEAD_LIMITS) > 0
}
