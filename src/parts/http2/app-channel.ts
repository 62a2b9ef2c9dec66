// One virtual connection with HTTP/1.1 text to an app that speaks HTTP/2: each exchange on it is a stream of a shared
// connection. The pool uses it like any stream, so the rules for responses, timeouts and retries apply.

import { createHash } from 'node:crypto'
import { copyOf } from '../../bytes.ts'
import type { ErrorCode } from '../../errors.ts'
import { ascii } from '../../http/characters.ts'
import { type RequestHead, readWhole } from '../../http/head.ts'
import { RequestReader } from '../../http/message-reader.ts'
import { writeResponseHead, writeTrailers } from '../../http2/answer-text.ts'
import * as Code from '../../http2/error-codes.ts'
import type { FieldList } from '../../http2/field-list.ts'
import { maxTextBytes } from '../../http2/message-fields.ts'
import type { StreamHandler } from '../../session/byte-stream.ts'
import { QueuedStream } from '../../session/queued-stream.ts'
import type { Http2App, Http2Side } from './app.ts'
import type { Http2Apps } from './apps.ts'

/** The head was checked and built here, so it has no further limits. */
const ANY_HEAD = { maxHeadBytes: 16_777_216, maxHeaderCount: 100_000, maxTargetBytes: 16_777_216 }
const CRLF = ascii('\r\n')
const LAST_CHUNK = ascii('0\r\n\r\n')
const WEBSOCKET_GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
/** The maximum size of an upgrade's lines, in addition to the fields. */
const MAX_UPGRADE_BYTES = 256
/** The maximum size of a request's trailers, above the limit of `BodyFramer`. */
const MAX_TRAILER_BYTES = 16_384

const NO_HEAD = 'its body came before its head'

export interface Begun {
  readonly connection: Http2App
  readonly side: Http2Side
}

export class Http2Channel extends QueuedStream {
  readonly #host: Http2Apps
  readonly #request: RequestReader
  readonly #head: RequestHead
  #begun: Begun | undefined
  /** The connection whose settings a WebSocket waits for. */
  #undecided: Http2App | undefined
  #isUpgrade = false
  /** Whether the visitor sends no more after an upgrade. */
  #isEnding = false
  /** The number of bytes written before the open request. */
  #sentBefore = 0
  #trailers: Uint8Array | undefined
  #isRequestSent = true

  // The state of the response.
  #phase: 'none' | 'head' | 'body' | 'switched' | 'over' = 'none'
  #isChunked = false
  #isWithoutBody = false
  /** The number of bytes of the announced length still to come; -1 without a length. */
  #left = -1
  /**
   * The piece that completes the response. It is passed on with the end of the stream, after which the next request may begin.
   */
  #last: Uint8Array | undefined
  #handedBytes = 0
  #payloadBytes = 0
  #creditedBytes = 0

  constructor(host: Http2Apps, handler: StreamHandler) {
    super(handler)
    this.#host = host
    this.#request = new RequestReader(
      (bytes, start, end) => this.#push(bytes, start, end),
      (bytes, start, end) => this.#pushTrailers(bytes, start, end),
    )
    this.#head = this.#request.head
  }

  // ── From the pool ──────────────────────────────────────────────────────────────────────────────────────────

  protected send(bytes: Uint8Array, start: number, end: number): boolean {
    const at = this.#phase === 'none' ? this.#begin(bytes, start, end) : start
    if (this.#phase === 'switched') this.#push(bytes, at, end)
    else if (at < end && !this.isClosed && this.#request.body.feed(bytes, at, end) === -1)
      this.fail('INTERNAL', Code.INTERNAL_ERROR)
    const isSent = this.flush()
    for (const [index, piece] of this.queue.entries())
      if (piece.buffer === bytes.buffer) this.queue[index] = copyOf(piece)
    return isSent
  }

  protected sendEnd(): void {
    if (this.#phase === 'switched') {
      this.#isEnding = true
      this.flush()
      return
    }
    this.sendReset()
  }

  protected sendReset(): void {
    this.#drop(Code.CANCEL)
    this.isClosed = true
  }

  /** Does nothing: pieces count as consumed at once, because the windows of HTTP/2 are the flow control. */
  protected giveCredit(): void {
    const begun = this.#begun
    if (begun === undefined) return
    const waiting = Math.max(0, this.#handedBytes - this.deliveredBytes)
    const due = Math.max(0, this.#payloadBytes - waiting) - this.#creditedBytes
    if (due <= 0) return
    this.#creditedBytes += due
    begun.connection.consumed(begun.side, due)
  }

  /** Begins a request. Returns where its head ends and its body begins. */
  #begin(bytes: Uint8Array, start: number, end: number): number {
    const head = this.#head
    this.#sentBefore = this.sentBytes - (end - start)
    const at = this.#request.readHead(bytes, start, end, ANY_HEAD)
    if (at <= 0) {
      this.fail('INTERNAL', Code.INTERNAL_ERROR)
      return end
    }
    this.#phase = 'head'
    this.#isRequestSent = false
    this.#isWithoutBody = head.method === 'HEAD'
    this.#last = undefined
    this.#trailers = undefined
    this.#left = -1
    this.#payloadBytes = this.#creditedBytes = 0
    // HTTP/2 has no other upgrade, so the app gets the request without one.
    this.#isUpgrade = head.upgrade === 'websocket'
    this.#isEnding = false
    if (this.#isUpgrade) {
      // The bytes may have to wait, and the array is reused.
      readWhole(head, copyOf(bytes, start, at))
      this.upgradeKnown()
      return end
    }
    const begun = this.#host.request(this, head, this.#request.isComplete)
    if (typeof begun === 'string') {
      this.fail(begun, undefined)
      return end
    }
    this.#isRequestSent = this.#request.isComplete
    this.#begun = begun
    return at
  }

  /** Begins an upgrade, when the app's settings are known. */
  upgradeKnown(): void {
    this.#undecided = undefined
    const begun = this.#host.upgrade(this, this.#head)
    // Nothing was sent, so the exchange begins again on an HTTP/1.1 stream.
    if (begun === 'apart') this.lost('ORIGIN_CLOSED', true)
    else if (typeof begun === 'string') this.fail(begun, undefined)
    else if ('forget' in begun) this.#undecided = begun
    else this.#begun = begun
  }

  #push(bytes: Uint8Array, start: number, end: number): void {
    if (end > start) this.queue.push(bytes.subarray(start, end))
  }

  #pushTrailers(bytes: Uint8Array, start: number, end: number): void {
    const before = this.#trailers ?? new Uint8Array(0)
    if (before.length + end - start > MAX_TRAILER_BYTES) return
    const all = new Uint8Array(before.length + end - start)
    all.set(before)
    all.set(bytes.subarray(start, end), before.length)
    this.#trailers = all
  }

  /** Sends waiting bytes as far as there is room. Returns `false` if some are left. */
  flush(): boolean {
    const { queue } = this
    const begun = this.#begun
    if (begun === undefined || this.#isRequestSent) return queue.length === 0
    const { connection, side } = begun
    const isComplete = this.#isUpgrade ? this.#isEnding : this.#request.isComplete
    const hasTrailers = this.#trailers !== undefined && this.#trailers.length > 2
    while (queue.length > 0) {
      const [piece] = queue
      if (piece === undefined) break
      const isLast = isComplete && !hasTrailers && queue.length === 1
      this.queueOffset += connection.sendData(side, piece, this.queueOffset, piece.length, isLast)
      if (this.queueOffset < piece.length) {
        connection.wait(this)
        return false
      }
      queue.shift()
      this.queueOffset = 0
      if (isLast) this.#sentAll()
    }
    if (!isComplete || this.#isRequestSent) return true
    if (hasTrailers && this.#trailers !== undefined) connection.sendTrailers(side, this.#trailers)
    else connection.sendEnd(side)
    this.#sentAll()
    return true
  }

  #sentAll(): void {
    this.#isRequestSent = true
    if (this.#phase === 'switched' && this.peerEnded) this.#closeSwitched()
  }

  /** Continues when there is room again, and lets the pool write. */
  resume(): void {
    if (this.flush()) this.handler.writable()
  }

  // ── From the app ───────────────────────────────────────────────────────────────────────────────────────────

  /** Called with a head or trailers. Returns what is wrong with them, if anything is. */
  answered(list: FieldList, isLast: boolean): string | undefined {
    if (this.#phase === 'body') return isLast ? this.#takeTrailers(list) : 'it has two heads'
    if (this.#phase !== 'head') return 'its head came too late'
    if (list.isTooLarge) return 'its head is larger than max-head'
    const webSocketAccept = this.#isUpgrade ? acceptOf(this.#head) : ''
    const text = new Uint8Array(maxTextBytes(list) + MAX_UPGRADE_BYTES)
    const terms = { isLast, method: this.#head.method, webSocketAccept }
    const end = writeResponseHead(list, terms, text, 0)
    if (end < 0) return 'its head is malformed'
    const status = Number(list.value(0))
    const head = text.subarray(0, end)
    if (status < 200) {
      this.#hand(head)
      return undefined
    }
    if (this.#isUpgrade && status < 300) {
      this.#phase = 'switched'
      this.#hand(head)
      return isLast ? this.ended() : undefined
    }
    this.#phase = 'body'
    this.#isWithoutBody ||= status === 204 || status === 304
    this.#left = this.#isWithoutBody ? 0 : lengthOf(list)
    this.#isChunked = this.#left < 0 && !this.#isWithoutBody && !isLast
    if (isLast) this.#finish(head)
    else if (this.#left === 0) this.#last = head
    else this.#hand(head)
    return undefined
  }

  received(bytes: Uint8Array, start: number, end: number): string | undefined {
    if (this.#phase === 'switched') {
      this.#payloadBytes += end - start
      if (end > start) this.#hand(bytes, start, end)
      return undefined
    }
    if (this.#phase !== 'body') return NO_HEAD
    if (start === end) return undefined
    this.#payloadBytes += end - start
    if (this.#isChunked) {
      this.#hand(chunkOf(bytes, start, end))
      return undefined
    }
    this.#left -= end - start
    if (this.#left < 0) return 'its body is longer than its content-length'
    if (this.#left > 0) this.#hand(bytes, start, end)
    else this.#last = copyOf(bytes, start, end)
    return undefined
  }

  /** Called when the response ends without trailers. Returns what is wrong, if anything is. */
  ended(): string | undefined {
    if (this.#phase === 'switched') {
      this.peerEnded = true
      if (this.#isRequestSent) this.#closeSwitched()
      this.handler.ended(this.sentBytes - this.waitingBytes)
      return undefined
    }
    if (this.#phase !== 'body') return NO_HEAD
    if (this.#left > 0) return 'its body is shorter than its content-length'
    this.#finish(this.#isChunked ? LAST_CHUNK : this.#last)
    return undefined
  }

  /** Closes an upgraded stream that has ended in both directions. */
  #closeSwitched(): void {
    const begun = this.#begun
    this.#begun = undefined
    this.#phase = 'over'
    this.isClosed = true
    begun?.connection.leave(begun.side, undefined)
  }

  #takeTrailers(list: FieldList): string | undefined {
    // A body with a length has no place for trailers in HTTP/1.1.
    if (!this.#isChunked) return this.ended()
    const text = new Uint8Array(maxTextBytes(list))
    const end = list.isTooLarge ? -1 : writeTrailers(list, true, text, 0)
    if (end < 0) return 'its trailers are malformed'
    this.#finish(text.subarray(0, end))
    return undefined
  }

  /** Leaves the HTTP/2 stream before the last bytes are passed on, because the next request may follow them. */
  #finish(last: Uint8Array | undefined): void {
    const begun = this.#begun
    if (this.#isUpgrade) {
      // The request was refused, so no more of it is sent.
      this.#drop(Code.NO_ERROR)
      this.#phase = 'none'
    } else if (this.#isRequestSent) {
      this.#begun = undefined
      this.#phase = 'none'
      begun?.connection.leave(begun.side, undefined)
    } else this.#phase = 'over'
    // The pool then resets the incomplete stream, because no more of the request is needed.
    if (last !== undefined) this.#hand(last)
  }

  #hand(bytes: Uint8Array, start = 0, end: number = bytes.length): void {
    if (this.isClosed) return
    this.#handedBytes += end - start
    this.handler.received(bytes, start, end)
  }

  /**
   * Called when the app, or its connection, ended the exchange. `isUntouched`: the app did not process the request.
   * `reason`: what it did wrong.
   */
  lost(code: ErrorCode, isUntouched: boolean, reason?: string): void {
    this.#begun = undefined
    this.#undecided = undefined
    if (this.isClosed) return
    this.isClosed = true
    this.queue.length = 0
    this.handler.reset(code, isUntouched ? this.#sentBefore : this.sentBytes, reason)
  }

  /** Ends the exchange from this side. */
  fail(code: ErrorCode, reset: number | undefined): void {
    if (reset !== undefined) this.#drop(reset)
    this.lost(code, reset === undefined)
  }

  #drop(code: number): void {
    const begun = this.#begun
    this.#begun = undefined
    this.#undecided?.forget(this)
    this.#undecided = undefined
    this.#phase = 'over'
    this.queue.length = 0
    begun?.connection.leave(begun.side, code)
  }
}

/** Returns the Sec-WebSocket-Accept that the visitor expects if the app accepts the WebSocket. */
function acceptOf(head: RequestHead): string {
  const { fields, bytes } = head
  let key = ''
  for (let line = 0; line < fields.count; line++)
    if (fields.isNamed(line, 'sec-websocket-key'))
      key = Buffer.from(bytes.subarray(fields.valueStart(line), fields.valueEnd(line))).toString('latin1')
  return createHash('sha1')
    .update(key + WEBSOCKET_GUID)
    .digest('base64')
}

function lengthOf(list: FieldList): number {
  for (let field = 0; field < list.count; field++)
    if (list.name(field) === 'content-length') return Number(list.value(field))
  return -1
}

function chunkOf(bytes: Uint8Array, start: number, end: number): Uint8Array {
  const size = ascii(`${(end - start).toString(16)}\r\n`)
  const chunk = new Uint8Array(size.length + end - start + 2)
  chunk.set(size)
  chunk.set(bytes.subarray(start, end), size.length)
  chunk.set(CRLF, chunk.length - 2)
  return chunk
}
