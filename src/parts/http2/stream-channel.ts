// The channel of a visit: one request with its response on a stream of HTTP/2 or HTTP/3.

import { createHash, randomBytes } from 'node:crypto'
import type { Account } from '../../bytes.ts'
import type { ErrorCode } from '../../errors.ts'
import { eventLoop } from '../../event-loop.ts'
import { errorAnswer } from '../../http/error-answer.ts'
import { parseRequestHead, type RequestHead, type ResponseHead } from '../../http/head.ts'
import { writeTrailers } from '../../http2/answer-text.ts'
import * as Code from '../../http2/error-codes.ts'
import type { FieldList } from '../../http2/field-list.ts'
import { maxTextBytes } from '../../http2/message-fields.ts'
import { writeRequestHead } from '../../http2/request-text.ts'
import type { StreamHandler } from '../../http2/server-stream.ts'
import type {
  AnswerOutput,
  ChannelVisit,
  RequestInput,
  RequestProgress,
  VisitChannel,
} from '../../server/contracts/channel.ts'
import { type Movement, Progress } from '../../server/limits/deadlines.ts'
import type { VisitorHop } from '../../server/limits/visitor-hop.ts'
import type { AskedCertificate } from '../../socket.ts'
import type { MultiplexedConnection, MultiplexedStream } from './multiplexed.ts'
import { StreamAnswer } from './stream-answer.ts'
import { type BodyTaker, StreamRequest } from './stream-request.ts'

const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
const KEY_BYTES = 24
/**
 * The time in milliseconds between checks of a visitor that has its response and may continue its request. The
 * clock's resolution makes it half a second.
 */
const PERIOD_MS = 250
/** The maximum number of periods: about five seconds. */
const MAX_PERIODS = 10
/** The key of the next WebSocket. Each has its own. */
let webSocketKey = randomBytes(16).toString('base64')

export class StreamChannel
  implements VisitChannel, StreamHandler, RequestInput, RequestProgress, AnswerOutput, BodyTaker, Movement
{
  readonly #connection: MultiplexedConnection
  readonly #stream: MultiplexedStream
  readonly #head: RequestHead
  readonly #visit: ChannelVisit
  readonly #request: StreamRequest
  readonly #answer: StreamAnswer
  #progress: Progress | undefined
  /** The Sec-WebSocket-Accept that the origin must return for an extended CONNECT. */
  #webSocketAccept = ''
  /** Whether the visit has begun and is not over. */
  #isUnderWay = false
  #isSwitched = false
  /** Whether the visit stopped writing for lack of room, and must be notified when there is some. */
  #owesDrained = false
  /** Whether `#progress` watches the waiting bytes. */
  #isWatched = false
  #hasLeft = false
  /** The number of periods since the response was sent. */
  #periods = 0
  /** Ends the count of the request for its address. */
  #stopCounting: (() => void) | undefined
  /** Whether the app's response does not fit this request, so that no more of it is read. */
  #isUnfit = false
  /** Whether the response only asks for a login of the connection, which needs HTTP/1.1. */
  #wantsHttp1 = false
  readonly keepsAlive = true

  constructor(connection: MultiplexedConnection, stream: MultiplexedStream) {
    const { front } = connection
    this.#connection = connection
    this.#stream = stream
    this.#head = front.takeHead()
    this.#visit = front.visit(this.#head, this)
    this.#answer = new StreamAnswer(stream, this)
    this.#request = new StreamRequest(this, front.heldInput, count => stream.consumed(count))
    stream.handler = this
  }

  begin(fields: FieldList, isLast: boolean): void {
    if (fields.isTooLarge) return this.refuse('HEAD_TOO_LARGE')
    // The text of the head, which must not change until the exchange is over.
    const text = new Uint8Array(maxTextBytes(fields) + KEY_BYTES)
    const end = writeRequestHead(fields, isLast, webSocketKey, text, 0)
    if (end === -1) return this.#stream.refuse(Code.PROTOCOL_ERROR)
    const head = this.#head
    if (parseRequestHead(head, text, 0, end, this.#connection.front.limits) <= 0)
      return this.refuse(head.refusal)
    // A connection with many requests at once cannot be logged in (RFC 9113 section 9.2.3 gives the code).
    if (head.fields.logsConnectionIn) return this.#stream.cut(Code.HTTP_1_1_REQUIRED)
    // Only an extended CONNECT has this line.
    if (head.fields.upgrades) {
      if (head.upgrade !== 'websocket') return this.refuse('UPGRADE_UNSUPPORTED')
      this.#webSocketAccept = createHash('sha1')
        .update(webSocketKey + GUID)
        .digest('base64')
      webSocketKey = randomBytes(16).toString('base64')
    }
    this.#stopCounting = this.#connection.takesRequest()
    if (this.#stopCounting === undefined) return this.refuse('ADDRESS_LIMIT')
    this.#request.begin(head)
    if (head.upgrade !== '') this.#request.awaitSwitch()
    this.#isUnderWay = true
    this.#visit.begin()
  }

  /** Responds with the page of `code`, without a visit. */
  refuse(code: ErrorCode): void {
    this.#connection.front.refused(code)
    this.write(errorAnswer(code, { head: false, keepAlive: true, host: '' }))
    this.#end()
  }

  drain(): void {
    this.#connection.drain()
  }

  // ── From the visitor ───────────────────────────────────────────────────────────────────────────────────────

  data(bytes: Uint8Array, start: number, end: number): void {
    const { front } = this.#connection
    if (!this.#isUnderWay) return this.#stream.consumed(end - start)
    if (!this.#request.data(bytes, start, end)) return this.#stream.refuse(Code.PROTOCOL_ERROR)
    if (front.heldInput.isTooMuch(this.#request.heldBytes, front.limits.maxAllInputBytes))
      this.#cutOff('BUFFERS_FULL', Code.ENHANCE_YOUR_CALM)
  }

  ended(trailers: FieldList | undefined): void {
    if (this.#hasLeft) this.#progress?.stop()
    if (!this.#isUnderWay) return
    let text: Uint8Array | undefined
    if (trailers !== undefined) {
      text = new Uint8Array(maxTextBytes(trailers))
      const end = this.#isSwitched ? -1 : writeTrailers(trailers, false, text, 0)
      if (end === -1) return this.#stream.refuse(Code.PROTOCOL_ERROR)
      text = text.subarray(0, end)
    }
    // curl 7.88 ends its upload when it has read the status of an error, and still reads the response. For the app
    // the request stays incomplete.
    if (!this.#request.ended(text) && this.#answer.isUnsent) this.#stream.refuse(Code.PROTOCOL_ERROR)
  }

  reset(): void {
    if (this.#isUnderWay) {
      this.#isUnderWay = false
      this.#visit.abandon()
    }
    this.#leave()
  }

  writable(): void {
    this.#answer.flush()
    if (!this.#answer.isEmpty) return this.#awaitRoom()
    this.#isWatched = false
    this.#progress?.stop()
    if (!this.#isUnderWay) return this.#end()
    if (!this.#owesDrained) return
    this.#owesDrained = false
    this.#visit.drained()
  }

  // ── To the visit ───────────────────────────────────────────────────────────────────────────────────────────

  body(bytes: Uint8Array): void {
    const { maxBodyBytes } = this.#connection.front.limits
    const isTooLarge = maxBodyBytes > 0 && !this.#isSwitched && this.#request.payloadBytes > maxBodyBytes
    if (isTooLarge) this.#visit.breakOff('BODY_TOO_LARGE')
    else this.#visit.body(bytes)
  }

  bodyEnded(): void {
    if (this.#isUnderWay) this.#visit.bodyEnded()
  }

  get isComplete(): boolean {
    return this.#request.isComplete
  }

  get requestBytes(): number {
    return this.#head.end - this.#head.start + this.#request.payloadBytes
  }

  // ── VisitChannel ───────────────────────────────────────────────────────────────────────────────────────────

  get visitor(): VisitorHop {
    return this.#connection.visitor
  }

  get isCertified(): boolean {
    return this.#connection.isCertified
  }

  get asked(): AskedCertificate | undefined {
    return this.#connection.asked
  }

  get request(): RequestProgress {
    return this
  }

  get input(): RequestInput {
    return this
  }

  get output(): AnswerOutput {
    return this
  }

  isRefused(): boolean {
    return this.#connection.isRefused()
  }

  charge(account: Account | undefined): void {
    this.#answer.account = account
    if (account?.isOver === true) eventLoop.soon(() => this.#cutOff('BUFFERS_FULL', Code.ENHANCE_YOUR_CALM))
  }

  switched(): void {
    if (this.#isUnfit) return
    this.#isSwitched = true
    this.#request.switched()
    this.proceed(() => {})
  }

  /** Ends the visit. `goesOn` is ignored: it only concerns connections with one request after the other. */
  over(): void {
    this.#isUnderWay = false
    this.#request.clear()
    if (this.#isUnfit) return
    if (this.#answer.end()) this.#end()
    else this.#cut(Code.INTERNAL_ERROR)
  }

  terminate(): void {
    this.#cut(Code.INTERNAL_ERROR)
  }

  // ── RequestInput ───────────────────────────────────────────────────────────────────────────────────────────

  pause(): void {
    this.#request.pause()
  }

  /** Later, because the caller may first have more of the request to send. */
  resume(): void {
    this.#request.resume()
    if (this.#request.isWaiting) eventLoop.soon(() => this.#isUnderWay && this.#request.pass())
  }

  proceed(first: () => void): void {
    if (!this.#isUnderWay) return
    this.#request.resume()
    first()
    if (this.#isUnderWay) this.#request.pass()
  }

  // ── AnswerOutput ───────────────────────────────────────────────────────────────────────────────────────────

  write(bytes: Uint8Array, start = 0, end: number = bytes.length): boolean {
    if (this.#stream.isClosed || this.#isUnfit) return true
    if (!this.#answer.take(bytes, start, end)) {
      this.#isUnfit = true
      // Not during a write of its upstream.
      eventLoop.soon(() => this.#replaceAnswer())
      return true
    }
    this.#connection.filled()
    // After its end nothing is waited for: a stream that is over gets no call for room.
    if (this.#answer.isEmpty && (this.#stream.isAnswerEnded || !this.#stream.isBlocked)) return true
    this.#owesDrained = true
    this.#awaitRoom()
    return false
  }

  end(): void {
    this.#answer.end()
    if (!this.#answer.isEmpty) this.#awaitRoom()
  }

  /** Sends a page in place of an invalid response; if a part of it was sent, resets the stream. */
  #replaceAnswer(): void {
    if (this.#stream.isClosed) return
    if (this.#wantsHttp1) return this.#cut(Code.HTTP_1_1_REQUIRED)
    if (!this.#answer.isUnsent) return this.#cutOff('ORIGIN_INVALID', Code.INTERNAL_ERROR)
    this.#isUnfit = false
    this.#answer.restart()
    this.#visit.replaceAnswer('ORIGIN_INVALID')
  }

  // ── Of the response ──────────────────────────────────────────────────────────────────────────────────────────

  get method(): string {
    return this.#head.method
  }

  /**
   * Called with the final head of the response. Returns `false` if it does not fit the request, and the response is dropped.
   * After a request for a WebSocket, 2xx would mean that it was opened. A login of the connection needs HTTP/1.1.
   */
  judge(head: ResponseHead): boolean {
    this.#wantsHttp1 = head.status === 401 && head.fields.onlyLogsConnectionIn
    if (this.#wantsHttp1) return false
    if (head.status === 101)
      return this.#webSocketAccept !== '' && head.header('sec-websocket-accept') === this.#webSocketAccept
    return this.#webSocketAccept === '' || head.status >= 300
  }

  // ── The end ────────────────────────────────────────────────────────────────────────────────────────────────

  /** Called when the response is complete, though possibly not sent. Further bytes of the visitor are not needed. */
  #end(): void {
    this.#isUnderWay = false
    this.#answer.end()
    if (!this.#answer.isEmpty) return this.#awaitRoom()
    this.#leave()
    if (this.#stream.isRequestEnded) return
    this.#stream.dropRequest()
    if (!this.#stream.isClosed) this.#expectProgress(PERIOD_MS)
  }

  #cut(code: number): void {
    this.#stream.cut(code)
    this.reset()
  }

  #cutOff(code: ErrorCode, why: number): void {
    if (this.#stream.isClosed) return
    this.#visit.cutOff(code)
    this.#cut(why)
  }

  /** Leaves when nothing is in flight any more. */
  #leave(): void {
    this.#progress?.stop()
    this.#answer.clear()
    this.#request.clear()
    if (this.#hasLeft) return
    this.#hasLeft = true
    this.#stopCounting?.()
    this.#connection.front.keepHead(this.#head)
  }

  // ── Movement ───────────────────────────────────────────────────────────────────────────────────────────────

  #awaitRoom(): void {
    this.#stream.awaitRoom(!this.#answer.isEmpty)
    if (this.#answer.isEmpty || this.#isWatched) return
    this.#isWatched = true
    this.#expectProgress(this.#connection.front.limits.sendTimeoutMs)
  }

  #expectProgress(ms: number): void {
    this.#progress ??= new Progress(this.#connection.front.deadlines, this)
    this.#progress.expect(ms)
  }

  get movedBytes(): number {
    return this.#answer.sentBytes
  }

  get isWaiting(): boolean {
    return !this.#answer.isEmpty || this.#hasLeft
  }

  stalled(): void {
    if (!this.#hasLeft) return this.#cutOff('VISITOR_STALLED', Code.CANCEL)
    if (this.#stream.endPeriod() || ++this.#periods === MAX_PERIODS) this.#stream.cut(Code.NO_ERROR)
    else this.#expectProgress(PERIOD_MS)
  }
}
