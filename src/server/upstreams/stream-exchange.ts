// One request with its response on a pooled stream: sends request bytes, frames the response strictly and passes it on.

import { copyBytes } from '../../bytes.ts'
import { ERRORS, type ErrorCode } from '../../errors.ts'
import { Allowance } from '../../http/allowance.ts'
import { BodyFramer } from '../../http/body.ts'
import type { AnswerStyle } from '../../http/forward.ts'
import type { ResponseHead } from '../../http/head.ts'
import { ResponseReader } from '../../http/message-reader.ts'
import type { ByteStream } from '../../session/byte-stream.ts'
import type { Socket, Splice, SpliceDone } from '../../socket.ts'
import type { Ease, Exchange, Visit } from '../contracts/upstream.ts'
import { TICKS_PER_SECOND } from '../limits/deadlines.ts'
import { AnswerQueue } from './answer-queue.ts'
import type { PooledStream } from './pooled-stream.ts'
import {
  addBody,
  MIN_SPLICED_BYTES,
  RequestSender,
  scratch,
  writeAnswerHead,
  writeInterimHead,
  writeRequestHead,
} from './request-sender.ts'
import type { StreamsContext } from './streams.ts'

/** The size of a body up to which, in few pieces, the app is expected to respond like that again. */
const EASY_ANSWER_BYTES = 32_768
const EASY_PIECES = 2
/** The size up to which a body in few pieces fits into a lane, together with a head of usual length. */
const MOST_LANE_BODY_BYTES = 114_688
const LONG_PIECES = 16

/**
 * The number of bytes of chunk framing parsed at once: a quarter of a millisecond. 512 KB in chunks of one byte would take four.
 */
const FRAMING_BYTES_AT_ONCE = 32_768

const CLOSE: AnswerStyle = { close: true, keepAlive10: false, dropsChunks: false }
const CLOSE_PLAIN: AnswerStyle = { close: true, keepAlive10: false, dropsChunks: true }
const STAY_OPEN: AnswerStyle = { close: false, keepAlive10: false, dropsChunks: false }
const STAY_OPEN_10: AnswerStyle = { close: false, keepAlive10: true, dropsChunks: false }

type Phase =
  | 'over'
  /** The request is being sent, and the head of the response has not arrived. */
  | 'head'
  | 'body'
  /** After a 101: raw bytes go both ways. */
  | 'switched'

/** One exchange. A stream uses the same object for one exchange after the other. */
export class StreamExchange implements Exchange {
  readonly #owner: PooledStream
  readonly #context: StreamsContext
  readonly #request: RequestSender
  readonly #reader: ResponseReader
  readonly #answer: ResponseHead
  /** The framer of the reader, or one that returns only the payload of chunks. */
  #framer: BodyFramer
  #phase: Phase = 'over'
  #visit: Visit | undefined
  #stream: ByteStream | undefined
  /** Response bytes that the visitor has not taken yet. The origin gets no credit for them, which stops it. */
  #unconsumed = 0
  #isVisitorFull = false
  /** Whether the visitor can tell the end of the response from its bytes, not only from the end of the connection. */
  #isDelimited = true
  /** Whether the origin sends chunks to a visitor with HTTP/1.0, who gets only their payload. */
  #isUnchunked = false
  /** Whether a part of the body's framing was left out. */
  #isCleaned = false
  /** The number of pieces in which the response arrived. */
  #pieces = 0
  /** Whether the request was already sent a second time. */
  #isSecondTry = false
  /** The 1xx responses that the origin may still send. `undefined` if it has sent none. */
  #interims: Allowance | undefined
  /** Queues response bytes, from the first time that more arrived than one turn of the event loop can handle. */
  #queue: AnswerQueue | undefined
  /** The number of body bytes whose credit was returned already, with the head that came with them. */
  #accountedBytes = 0

  constructor(owner: PooledStream, context: StreamsContext) {
    this.#owner = owner
    this.#context = context
    this.#reader = new ResponseReader(this.#isApps)
    this.#answer = this.#reader.head
    this.#framer = this.#reader.body
    this.#request = new RequestSender(context.server.limits, context.server.deadlines, () =>
      this.#fail('ORIGIN_TIMEOUT'),
    )
  }

  /** Sends the head of a visit's request. `wasSent`: the origin has the whole request already, and its body is only checked. */
  begin(visit: Visit, stream: ByteStream, wasSent: boolean): void {
    this.#isSecondTry = false
    this.#start(visit, stream, wasSent)
  }

  #start(visit: Visit, stream: ByteStream, wasSent: boolean): void {
    this.#visit = visit
    this.#stream = stream
    this.#phase = 'head'
    this.#pieces = 0
    this.#interims = undefined
    if (visit.head.fields.logsConnectionIn) this.#owner.becomePrivate(visit.logins)
    const { isShared, rewrite, peer, apps } = this.#context
    const { expectsContinue } = visit.head
    // A visitor that waits for "100 Continue" sends nothing, so a silent origin would never be noticed.
    this.#owner.expectAnswer(expectsContinue ? this.#originTimeoutMs : 0)
    const end = peer === undefined ? writeRequestHead(visit, rewrite) : peer.writeHead(visit)
    const mayRepeat = this.#owner.isReused || isShared || (apps !== undefined && peer === undefined)
    const sentBytes = wasSent ? end + visit.head.contentLength : 0
    if (this.#request.begin(stream, end, mayRepeat, sentBytes)) return
    // The session may have failed during the write. Then the exchange is over, or on another stream.
    if (this.#stream !== stream) return
    visit.pause()
    if (!expectsContinue) this.#request.expectProgress()
  }

  get #originTimeoutMs(): number {
    return this.#visit?.originTimeoutMs ?? this.#context.server.limits.originTimeoutMs
  }

  // ── From the visitor ───────────────────────────────────────────────────────────────────────────────────────

  body(bytes: Uint8Array): void {
    if (this.#phase === 'head') this.#owner.expectAnswer(0)
    if (!this.#request.body(bytes)) this.#visit?.pause()
  }

  bodyFrom(from: Socket, limitBytes: number, done: SpliceDone): Splice | undefined {
    return this.#request.bodyFrom(from, limitBytes, done)
  }

  bodyEnded(): void {
    this.#request.isDone = true
    switch (this.#phase) {
      case 'head':
        this.#request.stopExpecting()
        return this.#owner.expectAnswer(this.#originTimeoutMs)
      case 'body':
        if (this.#framer.complete) this.#complete()
        return
      case 'switched':
        this.#request.end()
        if (this.#stream?.peerEnded) this.#complete()
    }
  }

  drained(): void {
    if (!this.#isVisitorFull) return
    this.#isVisitorFull = false
    const count = this.#unconsumed
    this.#unconsumed = 0
    this.#stream?.consumed(count)
  }

  abandoned(): void {
    this.#end()
    this.#owner.discard()
  }

  // ── From the origin ────────────────────────────────────────────────────────────────────────────────────────

  received(bytes: Uint8Array, start: number, end: number): void {
    if (this.#queue?.isEmpty === false) return this.#queue.add(bytes, start, end)
    switch (this.#phase) {
      case 'head':
        this.#account(end - start)
        return this.#takeHead(bytes, start, end)
      case 'body':
        return this.#takeBody(bytes, start, end)
      case 'switched':
        return this.#pass(bytes, start, end)
    }
  }

  receivedFrom(from: Socket, limitBytes: number, done: SpliceDone): Splice | undefined {
    const { leftBytes } = this.#framer
    const isPossible = this.#phase === 'body' && !this.#isUnchunked && !this.#isVisitorFull
    if (!isPossible || leftBytes < MIN_SPLICED_BYTES) return undefined
    return this.#visit?.writeFrom?.(from, Math.min(leftBytes, limitBytes), movedBytes => {
      // After a failure in the middle, the bytes belong to no response.
      if (this.#phase === 'body') this.#framer.skip(movedBytes)
      if (this.#phase === 'body' && this.#framer.complete) this.#complete()
      done(movedBytes)
    })
  }

  writable(): void {
    this.#request.stopExpecting()
    this.#visit?.resume()
  }

  ended(delivered: number): void {
    if (this.#queue?.isEmpty === false) return this.#queue.endWith(() => this.ended(delivered))
    switch (this.#phase) {
      case 'head':
        return this.#retryOrFail(this.#lostCode, delivered)
      case 'body':
        if (this.#answer.body === 'close') return this.#complete()
        return this.#fail(this.#lostCode)
      case 'switched':
        if (this.#request.isDone) return this.#complete()
        return this.#visit?.endAnswer()
    }
  }

  reset(code: ErrorCode, delivered: number, reason?: string): void {
    if (this.#queue?.isEmpty === false) return this.#queue.endWith(() => this.reset(code, delivered, reason))
    const isHeadAwaited = this.#phase === 'head'
    this.#stream = undefined
    const method = this.#visit?.head.method ?? ''
    if (this.#context.session.isClosed || this.#context.isStopped)
      return this.#fail(
        'CLIENT_GONE',
        isHeadAwaited ? this.#request.piecesToRepeat(delivered, method) : undefined,
      )
    // The client is not trusted: the server accepts from it only codes about the origin.
    const cause = ERRORS[code].fault === 'origin' || code === 'TUNNEL_BUSY' ? code : this.#lostCode
    // A handler that threw has seen the request; a retry would call it twice.
    if (isHeadAwaited && cause !== 'HANDLER_FAILED') this.#retryOrFail(cause, delivered, reason)
    else this.#fail(cause, undefined, reason)
  }

  /** Whether the response comes from an app rather than another server. */
  get #isApps(): boolean {
    return this.#context.peer === undefined
  }

  /**
   * The code for a lost connection. Another server reports faults of an app itself; without such a report, the
   * connection to the client is lost.
   */
  get #lostCode(): ErrorCode {
    return this.#isApps ? 'ORIGIN_CLOSED' : 'CLIENT_GONE'
  }

  /** Called when the origin took too long for the head of its response. */
  originTimedOut(): void {
    if (this.#phase === 'head') this.#fail('ORIGIN_TIMEOUT')
  }

  /** Ends the exchange, because a visitor with fewer streams needs the stream. */
  giveWay(): void {
    this.#fail('TUNNEL_BUSY')
  }

  #takeHead(bytes: Uint8Array, start: number, end: number): void {
    if (this.#context.peer === undefined) this.#request.forgetReplay()
    const visit = this.#visit
    if (visit === undefined) return
    const answer = this.#answer
    this.#pieces++
    let at = start
    for (;;) {
      at = this.#reader.readHead(bytes, at, end, this.#context.server.limits, visit.head.method)
      if (at === -1) return this.#failInvalid(answer.fault)
      if (at === 0) return
      if (this.#reader.isFinal) break
      if (!this.#mayBeInterim())
        return this.#failInvalid('it has too many 1xx answers in front (max-interim-answers)')
      this.#passInterim(visit, answer)
      if (this.#phase !== 'head') return
    }
    const { peer } = this.#context
    if (peer !== undefined) {
      // No client has seen the request, so it can be sent again.
      if (peer.isMoved(answer)) return this.#fail('CLUSTER_MOVED', this.#request.piecesUnlessDelivered(0))
      this.#request.forgetReplay()
    }
    this.#owner.expectAnswer(0)
    if (answer.fields.logsConnectionIn) this.#owner.becomePrivate(visit.logins)
    if (answer.status === 101) this.#switch(visit, bytes, at, end)
    else this.#beginAnswer(visit, bytes, at, end)
  }

  /** Whether the origin may send another 1xx response. Each one is parsed and written by itself, so the number is limited. */
  #mayBeInterim(): boolean {
    const { limits, deadlines } = this.#context.server
    const most = limits.maxInterimAnswers
    this.#interims ??= new Allowance(most, most / TICKS_PER_SECOND)
    return this.#interims.spend(1, deadlines.tick)
  }

  /** Passes a 1xx response on, which also counts as progress. A visitor with HTTP/1.0 would not understand it. */
  #passInterim(visit: Visit, answer: ResponseHead): void {
    this.#owner.expectAnswer(this.#request.isDone ? this.#originTimeoutMs : 0)
    if (visit.head.minorVersion === 0) return
    const end = writeInterimHead(answer, STAY_OPEN)
    this.#write(visit, scratch, 0, end)
  }

  /** Sends the head of the response, and the part of its body that came with it, in one write. */
  #beginAnswer(visit: Visit, bytes: Uint8Array, at: number, end: number): void {
    const answer = this.#answer
    this.#phase = 'body'
    if (answer.body === 'chunked' && visit.head.minorVersion === 0)
      return this.#beginPlain(visit, bytes, at, end)
    const bodyEnd = this.#feed(bytes, at, end)
    if (bodyEnd === -1) return this.#failInvalid(this.#framer.fault)
    visit.answered(answer.status)
    this.#isDelimited = answer.body !== 'close'
    // If the response is complete before the request, the rest of the request stays unread on the connection.
    const isEarly = this.#framer.complete && !this.#request.isDone
    const staysOpen = visit.keepsAlive && this.#isDelimited && !isEarly
    const style = !staysOpen ? CLOSE : visit.head.minorVersion === 0 ? STAY_OPEN_10 : STAY_OPEN
    const headEnd = writeAnswerHead(answer, style, visit)
    const { cleaned } = this.#framer
    const [piece, from, to] = cleaned === undefined ? [bytes, at, bodyEnd] : [cleaned, 0, cleaned.length]
    if (cleaned === undefined && answer.bytes === bytes && headEnd <= at - answer.start) {
      // The forwarded head is seldom longer. If it fits, it replaces the original in place, and no body moves.
      copyBytes(scratch, 0, headEnd, bytes, at - headEnd)
      this.#write(visit, bytes, at - headEnd, bodyEnd)
    } else if (addBody(headEnd, piece, from, to)) this.#write(visit, scratch, 0, headEnd + to - from)
    else {
      this.#write(visit, scratch, 0, headEnd)
      this.#write(visit, piece, from, to)
    }
    this.#accountedBytes = end - bodyEnd
    this.#goOn(bytes, bodyEnd, end)
  }

  /** Sends a chunked response to a visitor with HTTP/1.0, which has no chunks. Enough origins send them anyway. */
  #beginPlain(visit: Visit, bytes: Uint8Array, at: number, end: number): void {
    this.#isUnchunked = true
    this.#isDelimited = false
    this.#framer = new BodyFramer((piece, from, to) => this.#write(visit, piece, from, to))
    this.#framer.isTolerant = this.#isApps
    this.#framer.begin('chunked', 0)
    visit.answered(this.#answer.status)
    const headEnd = writeAnswerHead(this.#answer, CLOSE_PLAIN, visit)
    this.#write(visit, scratch, 0, headEnd)
    const bodyEnd = this.#feed(bytes, at, end)
    this.#accountedBytes = end - bodyEnd
    this.#goOn(bytes, bodyEnd, end)
  }

  #takeBody(bytes: Uint8Array, start: number, end: number): void {
    this.#pieces++
    this.#takePortion(bytes, start, end)
  }

  #takePortion(bytes: Uint8Array, start: number, end: number): void {
    const bodyEnd = this.#framer.complete ? start : this.#feed(bytes, start, end)
    if (bodyEnd === -1) return this.#failInvalid(this.#framer.fault)
    if (this.#isUnchunked) this.#account(bodyEnd - start)
    else if (bodyEnd > start) this.#passBody(bytes, start, bodyEnd)
    this.#goOn(bytes, bodyEnd, end)
  }

  /** As `BodyFramer.feed`, for one portion. */
  #feed(bytes: Uint8Array, start: number, end: number): number {
    this.#framer.framingLeft = FRAMING_BYTES_AT_ONCE
    const bodyEnd = this.#framer.feed(bytes, start, end)
    if (this.#framer.cleaned !== undefined) this.#isCleaned = true
    return bodyEnd
  }

  /** Continues after a portion that ends at `at`: now if there is time, otherwise in the next turn. */
  #goOn(bytes: Uint8Array, at: number, end: number): void {
    if (at === -1) return this.#failInvalid(this.#framer.fault)
    if (this.#framer.complete) return this.#endIfComplete(at < end || this.#queue?.isEmpty === false)
    // A visitor that left has ended the exchange in the middle.
    if (at === end || this.#phase !== 'body') return
    const { turns } = this.#context.server
    if (turns.hasTime) return this.#takePortion(bytes, at, end)
    this.#queue ??= new AnswerQueue(turns, (piece, from, to) => this.#takePortion(piece, from, to))
    this.#queue.putBack(bytes, at, end)
  }

  /**
   * Ends the exchange if the response is complete. `hasSurplus`: the origin sent more than its response, so the
   * stream is not used again. If the response is complete before the request, the rest of the request is not sent.
   */
  #endIfComplete(hasSurplus: boolean): void {
    if (!this.#framer.complete) return
    if (hasSurplus) this.#answer.keepAlive = false
    this.#complete()
  }

  #pass(bytes: Uint8Array, start: number, end: number): void {
    if (this.#visit !== undefined) this.#write(this.#visit, bytes, start, end)
    this.#account(end - start)
  }

  #passBody(bytes: Uint8Array, start: number, end: number): void {
    const { cleaned } = this.#framer
    if (cleaned === undefined) return this.#pass(bytes, start, end)
    if (this.#visit !== undefined && cleaned.length > 0) this.#write(this.#visit, cleaned, 0, cleaned.length)
    this.#account(end - start)
  }

  #write(visit: Visit, bytes: Uint8Array, start: number, end: number): void {
    if (!visit.write(bytes, start, end)) this.#isVisitorFull = true
  }

  /** Gives the origin credit for bytes: at once, or later if the visitor is not reading. */
  #account(taken: number): void {
    const before = Math.min(taken, this.#accountedBytes)
    this.#accountedBytes -= before
    const count = taken - before
    if (this.#isVisitorFull) this.#unconsumed += count
    else this.#stream?.consumed(count)
  }

  #switch(visit: Visit, bytes: Uint8Array, at: number, end: number): void {
    // A 101 for a protocol that was not requested would open a connection that the visitor did not ask for.
    if (!isOffered(this.#answer.upgrade, visit.head.upgrade))
      return this.#failInvalid('it is a 101 to a protocol that the visitor did not ask for')
    this.#phase = 'switched'
    this.#request.isDone = false
    visit.answered(101)
    const headEnd = writeAnswerHead(this.#answer, STAY_OPEN, visit)
    this.#write(visit, scratch, 0, headEnd)
    if (at < end) this.#write(visit, bytes, at, end)
    visit.switched()
  }

  // ── The end ────────────────────────────────────────────────────────────────────────────────────────────────

  /** The size class of the response for lanes. A response that is not strict would be returned by the lane. */
  get #ease(): Ease {
    if (this.#answer.isAmended || this.#isCleaned || this.#owner.isPrivate) return 'none'
    const { payloadBytes } = this.#framer
    if (payloadBytes <= EASY_ANSWER_BYTES) return this.#pieces <= EASY_PIECES ? 'easy' : 'none'
    return payloadBytes <= MOST_LANE_BODY_BYTES && this.#pieces <= LONG_PIECES ? 'long' : 'none'
  }

  #complete(): void {
    const visit = this.#visit
    const ease = this.#ease
    const { isDone } = this.#request
    const answer = this.#answer
    const isSound = this.#phase === 'body' && isDone && answer.keepAlive && answer.body !== 'close'
    // Some servers, such as Node 20, read the body of a request with Upgrade as the next request.
    const wasAskedToSwitch = visit?.head.upgrade !== ''
    const isReusable =
      isSound && !wasAskedToSwitch && this.#stream?.peerEnded === false && this.#queue?.isEnding !== true
    if (this.#unconsumed > 0) this.drained()
    this.#end()
    if (isReusable) this.#owner.giveBack()
    else if (isDone) this.#owner.retire()
    else this.#owner.discard()
    visit?.done(isDone && this.#isDelimited, isSound ? ease : 'none')
  }

  /**
   * Retries a request whose pooled stream failed, which may have been dead without notice. If nothing of the request
   * was delivered, any method may be repeated; otherwise only one that does no harm twice.
   */
  #retryOrFail(code: ErrorCode, delivered: number, reason?: string): void {
    const visit = this.#visit
    const untouched = this.#request.piecesUnlessDelivered(delivered)
    // A new stream cannot have been stale: what breaks the app there may break it again. An HTTP/2 app can say that
    // it did not process the request (REFUSED_STREAM, GOAWAY), but might do so each time.
    const { apps, peer } = this.#context
    const isHttp2 = apps !== undefined && peer === undefined
    const wasRefused = isHttp2 && untouched !== undefined && !this.#isSecondTry
    if (!this.#owner.isReused && !wasRefused) return this.#fail(code, untouched, reason)
    const pieces = this.#request.piecesToRepeat(delivered, visit?.head.method ?? '')
    if (pieces === undefined || visit === undefined) return this.#fail(code, undefined, reason)
    const { isDone } = this.#request
    this.#request.stop()
    this.#reader.reset()
    this.#isSecondTry = true
    const stream = this.#owner.reopen(visit.head)
    if (stream === undefined) return this.#fail('CLIENT_GONE', pieces)
    // The pause was for the old stream. The new one may ask for a pause at once.
    visit.resume()
    visit.retried?.()
    this.#start(visit, stream, false)
    for (const piece of pieces) this.body(piece)
    if (isDone) this.bodyEnded()
  }

  #failInvalid(reason: string): void {
    this.#fail('ORIGIN_INVALID', undefined, reason || undefined)
  }

  /** Fails the visit. `again` and `reason` are as in `Visit.fail`. */
  #fail(cause: ErrorCode, again?: readonly Uint8Array[], reason?: string): void {
    const visit = this.#visit
    // An app with HTTP/2 only cannot read this HTTP/1.1 request; the app works otherwise.
    const isStrange = this.#phase === 'head' && this.#owner.isApart
    const code =
      isStrange && (cause === 'ORIGIN_INVALID' || cause === 'ORIGIN_CLOSED') ? 'ORIGIN_NO_WEBSOCKET' : cause
    this.#end()
    this.#owner.discard()
    visit?.fail(code, again, reason)
  }

  #end(): void {
    this.#phase = 'over'
    this.#visit = undefined
    this.#stream = undefined
    this.#request.stop()
    this.#reader.reset()
    this.#unconsumed = 0
    this.#isVisitorFull = false
    this.#queue?.clear()
    this.#accountedBytes = 0
    this.#isCleaned = false
    if (!this.#isUnchunked) return
    this.#isUnchunked = false
    this.#framer = this.#reader.body
  }
}

/** Whether the protocol that an app switches to was among those offered. */
function isOffered(chosen: string, offered: string): boolean {
  if (chosen === offered) return offered !== ''
  const offers = new Set(offered.split(',').map(one => one.trim()))
  return offered !== '' && chosen.split(',').every(one => offers.has(one.trim()))
}
