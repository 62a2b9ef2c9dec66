// One stream of an HTTP/3 connection: turns the runtime's stream into that of a visit's channel.

import { eventLoop } from '../../event-loop.ts'
import type { ResponseHead } from '../../http/head.ts'
import * as Code from '../../http2/error-codes.ts'
import { FieldList } from '../../http2/field-list.ts'
import { encodeResponseHead, encodeTrailers } from '../../http2/head-block.ts'
import type { StreamHandler } from '../../http2/server-stream.ts'
import type { Deadline } from '../../server/limits/deadlines.ts'
import type { MultiplexedStream } from '../http2/multiplexed.ts'
import type { Http3Connection } from './connection.ts'
import { FieldCollector, takeFields } from './fields.ts'
import { DRAINS, type FieldValues, type QuicStream } from './quic.ts'

/**
 * The number of stored body bytes that its app has not taken. The runtime does not limit a visitor's speed. So a
 * longer body of known length is refused before it is read, and others are cut at this length.
 */
export const HELD_BYTES = 8_388_608
/** The time in milliseconds within which the end of a request without a length, which may have no body, follows its head. */
const END_MS = 10

/** The codes of HTTP/3 (RFC 9114 section 8.1) for those of HTTP/2. */
const CODES: Readonly<Record<number, bigint>> = {
  [Code.NO_ERROR]: 0x100n,
  [Code.PROTOCOL_ERROR]: 0x10en,
  [Code.INTERNAL_ERROR]: 0x102n,
  [Code.CANCEL]: 0x10cn,
  [Code.ENHANCE_YOUR_CALM]: 0x107n,
  [Code.HTTP_1_1_REQUIRED]: 0x110n,
}

/** The fields of the current section. Only one section is read or written at a time. */
const fields = new FieldList()
const collector = new FieldCollector()

const NOT_YET: StreamHandler = { data() {}, ended() {}, reset() {}, writable() {} }

export class Http3Stream implements MultiplexedStream, Deadline {
  handler: StreamHandler = NOT_YET
  isRequestEnded = false
  isAnswerEnded = false
  isClosed = false
  /** False, because each stream of the runtime has a buffer of its own. */
  readonly isBlocked = false
  readonly isAwaited = false
  dueTick = 0
  readonly #host: Http3Connection
  readonly #quic: QuicStream
  #head: FieldValues | undefined
  #trailers: FieldValues | undefined
  #endTimer: ReturnType<typeof setTimeout> | undefined
  #hasBody = false
  #heldBytes = 0
  #isAwaitingRoom = false

  constructor(host: Http3Connection, quic: QuicStream) {
    this.#host = host
    this.#quic = quic
    // The runtime emits an error for a stream that is reset; no other code listens to it.
    quic.onerror = () => this.#gone()
    quic.onreset = () => this.#gone()
    quic.closed.then(
      () => this.#gone(),
      () => this.#gone(),
    )
    quic.onheaders = values => this.#headCame(values)
    quic.ontrailers = values => {
      this.#trailers = values
    }
    host.deadlines.watch(this)
    host.deadlines.arm(this, host.limits.headTimeoutMs)
  }

  // ── From the visitor ───────────────────────────────────────────────────────────────────────────────────────

  #headCame(values: FieldValues): void {
    if (this.isClosed || this.#head !== undefined) return
    this.#head = values
    this.#host.deadlines.disarm(this)
    if (values['content-length'] === undefined) this.#endTimer = setTimeout(() => this.#begin(false), END_MS)
    else this.#begin(false)
    void this.#read()
  }

  async #read(): Promise<void> {
    try {
      for await (const pieces of this.#quic) for (const piece of pieces) this.#dataCame(piece)
    } catch {
      return this.#gone()
    }
    // The runtime passes on trailers in the turn after the end of the body.
    if (this.#hasBody) eventLoop.soon(() => this.#requestEnded())
    else this.#requestEnded()
  }

  /** Begins the visit, once. */
  #begin(isLast: boolean): void {
    clearTimeout(this.#endTimer)
    const head = this.#head
    if (head === undefined || this.isClosed || this.handler !== NOT_YET) return
    takeFields(head, fields, this.#host.maxListBytes)
    const length = head['content-length']
    this.#host.requested(this, fields, isLast, length === undefined ? -1 : Number(length))
  }

  #dataCame(piece: Uint8Array): void {
    if (this.isClosed || piece.length === 0) return
    this.#begin(false)
    this.#hasBody = true
    this.#heldBytes += piece.length
    this.handler.data(piece, 0, piece.length)
    if (this.#heldBytes > HELD_BYTES && !this.isClosed) {
      const { handler } = this
      this.refuse(Code.ENHANCE_YOUR_CALM)
      handler.reset()
    }
  }

  #requestEnded(): void {
    if (this.isClosed || this.isRequestEnded) return
    this.#begin(true)
    if (this.isClosed) return
    this.isRequestEnded = true
    const trailers = this.#trailers
    if (trailers !== undefined) takeFields(trailers, fields, this.#host.maxListBytes)
    this.handler.ended(trailers === undefined ? undefined : fields)
    if (this.isAnswerEnded) this.#leave(false)
  }

  /** Called when no head came in time. */
  expired(): void {
    this.refuse(Code.ENHANCE_YOUR_CALM)
  }

  /** Called when the visitor reset the stream, or the connection is gone. */
  #gone(): void {
    if (this.isClosed) return
    const isOver = this.isAnswerEnded && this.isRequestEnded
    this.#leave(!isOver)
    if (!isOver) this.handler.reset()
  }

  // ── To the visitor ─────────────────────────────────────────────────────────────────────────────────────────

  head(head: ResponseHead, isLast: boolean): void {
    const values = collector.of((encoder, into) => encodeResponseHead(encoder, head, into, 0))
    if (head.status < 200) this.#quic.sendInformationalHeaders(values)
    else this.#quic.sendHeaders(values, { terminal: isLast })
    if (isLast) this.#answered()
  }

  data(bytes: Uint8Array, start: number, end: number, isLast: boolean): number {
    if (this.isClosed) return end - start
    const { writer } = this.#quic
    const count = Math.min(end - start, writer.desiredSize ?? 0)
    if (count <= 0 || !writer.writeSync(bytes.subarray(start, start + count))) return 0
    if (isLast && start + count === end) this.end()
    return count
  }

  trailers(bytes: Uint8Array, start: number, end: number): void {
    const values = collector.of((encoder, into) => encodeTrailers(encoder, bytes, start, end, into, 0))
    if (Object.keys(values).length > 0) this.#quic.onwanttrailers = () => this.#quic.sendTrailers(values)
    this.end()
  }

  end(): void {
    if (this.isClosed || this.isAnswerEnded) return
    if (this.#quic.writer.endSync() < 0) this.#quic.writer.end().catch(() => {})
    this.#answered()
  }

  awaitRoom(): void {
    if (this.#isAwaitingRoom || this.isClosed) return
    this.#isAwaitingRoom = true
    const isRoom = () => {
      this.#isAwaitingRoom = false
      if (!this.isClosed) this.handler.writable()
    }
    const room = this.#quic.writer[DRAINS]()
    // The stream may have ended both ways. The waiting code is notified in either case.
    Promise.resolve(room).then(isRoom, isRoom)
  }

  consumed(count: number): void {
    this.#heldBytes -= count
  }

  refuse(code: number): void {
    this.#cut(code, true)
  }

  cut(code: number): void {
    this.#cut(code, false)
  }

  /** Does nothing else, because the response has a direction of its own. */
  dropRequest(): void {
    this.#cut(Code.NO_ERROR, false)
  }

  endPeriod(): boolean {
    return true
  }

  #answered(): void {
    this.isAnswerEnded = true
    if (this.isRequestEnded) this.#leave(false)
  }

  #cut(code: number, isGivenUp: boolean): void {
    if (this.isClosed) return
    const why = CODES[code] ?? 0x102n
    if (!this.isRequestEnded) this.#quic.stopSending(why)
    if (!this.isAnswerEnded) this.#quic.resetStream(why)
    this.#leave(isGivenUp)
  }

  #leave(isGivenUp: boolean): void {
    this.isClosed = true
    clearTimeout(this.#endTimer)
    this.#host.deadlines.forget(this)
    this.#host.left(this, isGivenUp)
  }
}
