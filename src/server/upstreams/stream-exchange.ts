// One request with its response on a pooled stream: request bytes out, the response framed strictly and passed on.

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

/** A body of this size in so few pieces will come like that again. */
const EASY_ANSWER_BYTES = 32_768
const EASY_PIECES = 2
/** A body of this size in so few pieces fits into a lane with its head, if that is no longer than heads are. */
const MOST_LANE_BODY_BYTES = 114_688
const LONG_PIECES = 16

/** Chunk framing looked through at once: a quarter of a millisecond, while 512 KB in chunks of a byte would take four. */
const FRAMING_BYTES_AT_ONCE = 32_768

const CLOSE: AnswerStyle = { close: true, keepAlive10: false, dropsChunks: false }
const CLOSE_PLAIN: AnswerStyle = { close: true, keepAlive10: false, dropsChunks: true }
const STAY_OPEN: AnswerStyle = { close: false, keepAlive10: false, dropsChunks: false }
const STAY_OPEN_10: AnswerStyle = { close: false, keepAlive10: true, dropsChunks: false }

type Phase =
  | 'over'
  /** The request goes out, the head of the response is awaited. */
  | 'head'
  | 'body'
  /** After 101: bytes both ways. */
  | 'switched'

/** Reused: a stream has one exchange after the other. */
export class StreamExchange implements Exchange {
  readonly #owner: PooledStream
  readonly #context: StreamsContext
  readonly #request: RequestSender
  readonly #reader: ResponseReader
  readonly #answer: ResponseHead
  /** The reader's own framer, or one that hands out the payload of chunks. */
  #framer: BodyFramer
  #phase: Phase = 'over'
  #visit: Visit | undefined
  #stream: ByteStream | undefined
  /** Response bytes that the visitor does not take yet: their credit is held back, which stops the origin. */
  #unconsumed = 0
  #isVisitorFull = false
  /** Whether the visitor can tell the end of the response from its bytes, not only from the end of the connection. */
  #isDelimited = true
  /** The origin sends chunks to a visitor with HTTP/1.0, who gets only their payload. */
  #isUnchunked = false
  /** A part of the body's framing was left out. */
  #isCleaned = false
  /** Pieces that the response came in. */
  #pieces = 0
  /** The request was sent once more already. */
  #isSecondTry = false
  /** 1xx responses that the origin may still send; `undefined`: it has sent none. */
  #interims: Allowance | undefined
  /** Once more came than a turn of the event loop has time for. */
  #queue: AnswerQueue | undefined
  /** Bytes that follow and whose credit was returned with the head that came with them. */
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

  /** Sends the head of a visit's request. `wasSent`: the origin has all of it already, and its body is only looked at. */
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
    // A visitor that waits for "100 Continue" sends nothing else, so a silent origin would never be noticed.
    this.#owner.expectAnswer(expectsContinue ? this.#originTimeoutMs : 0)
    const end = peer === undefined ? writeRequestHead(visit, rewrite) : peer.writeHead(visit)
    const mayRepeat = this.#owner.isReused || isShared || (apps !== undefined && peer === undefined)
    const sentBytes = wasSent ? end + visit.head.contentLength : 0
    if (this.#request.begin(stream, end, mayRepeat, sentBytes)) return
    // The session may have failed in the middle of the write: then the exchange is somewhere else, or over.
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
      // After a failure in the middle the bytes belong to no response.
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
    // The client is a stranger: the server trusts only its codes about the origin.
    const cause = ERRORS[code].fault === 'origin' || code === 'TUNNEL_BUSY' ? code : this.#lostCode
    // A handler that threw has seen the request: it would be asked twice.
    if (isHeadAwaited && cause !== 'HANDLER_FAILED') this.#retryOrFail(cause, delivered, reason)
    else this.#fail(cause, undefined, reason)
  }

  /** The response comes from an app, and not from another server. */
  get #isApps(): boolean {
    return this.#context.peer === undefined
  }

  /** The other server reports faults of an app itself: without such a report, the way to the client is lost. */
  get #lostCode(): ErrorCode {
    return this.#isApps ? 'ORIGIN_CLOSED' : 'CLIENT_GONE'
  }

  /** The origin took too long for the head of its response. */
  originTimedOut(): void {
    if (this.#phase === 'head') this.#fail('ORIGIN_TIMEOUT')
  }

  /** A visitor that has fewer needs the stream. */
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
      // No client has seen the request.
      if (peer.isMoved(answer)) return this.#fail('CLUSTER_MOVED', this.#request.piecesUnlessDelivered(0))
      this.#request.forgetReplay()
    }
    this.#owner.expectAnswer(0)
    if (answer.fields.logsConnectionIn) this.#owner.becomePrivate(visit.logins)
    if (answer.status === 101) this.#switch(visit, bytes, at, end)
    else this.#beginAnswer(visit, bytes, at, end)
  }

  /** Each 1xx response is parsed and written by itself: without a bound an origin would keep the server busy with them. */
  #mayBeInterim(): boolean {
    const { limits, deadlines } = this.#context.server
    const most = limits.maxInterimAnswers
    this.#interims ??= new Allowance(most, most / TICKS_PER_SECOND)
    return this.#interims.spend(1, deadlines.tick)
  }

  /** Passes a 1xx response on: a sign of life. An HTTP/1.0 visitor would not understand it. */
  #passInterim(visit: Visit, answer: ResponseHead): void {
    this.#owner.expectAnswer(this.#request.isDone ? this.#originTimeoutMs : 0)
    if (visit.head.minorVersion === 0) return
    const end = writeInterimHead(answer, STAY_OPEN)
    this.#write(visit, scratch, 0, end)
  }

  /** Sends the head of the response, and what of its body came with it, in one write. */
  #beginAnswer(visit: Visit, bytes: Uint8Array, at: number, end: number): void {
    const answer = this.#answer
    this.#phase = 'body'
    if (answer.body === 'chunked' && visit.head.minorVersion === 0)
      return this.#beginPlain(visit, bytes, at, end)
    const bodyEnd = this.#feed(bytes, at, end)
    if (bodyEnd === -1) return this.#failInvalid(this.#framer.fault)
    visit.answered(answer.status)
    this.#isDelimited = answer.body !== 'close'
    // A response that is complete before the request leaves the rest of the request on the connection.
    const isEarly = this.#framer.complete && !this.#request.isDone
    const staysOpen = visit.keepsAlive && this.#isDelimited && !isEarly
    const style = !staysOpen ? CLOSE : visit.head.minorVersion === 0 ? STAY_OPEN_10 : STAY_OPEN
    const headEnd = writeAnswerHead(answer, style, visit)
    const { cleaned } = this.#framer
    const [piece, from, to] = cleaned === undefined ? [bytes, at, bodyEnd] : [cleaned, 0, cleaned.length]
    if (cleaned === undefined && answer.bytes === bytes && headEnd <= at - answer.start) {
      // The forwarded head is seldom longer than the original: it replaces that one in place, and the body does not move.
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

  /** HTTP/1.0 knows no chunks. Origins that send them all the same are common enough. */
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

  /** As `BodyFramer.feed`, of a portion. */
  #feed(bytes: Uint8Array, start: number, end: number): number {
    this.#framer.framingLeft = FRAMING_BYTES_AT_ONCE
    const bodyEnd = this.#framer.feed(bytes, start, end)
    if (this.#framer.cleaned !== undefined) this.#isCleaned = true
    return bodyEnd
  }

  /** A portion ends at `at`. The rest comes now if there is time, and else in its turn. */
  #goOn(bytes: Uint8Array, at: number, end: number): void {
    if (at === -1) return this.#failInvalid(this.#framer.fault)
    if (this.#framer.complete) return this.#endIfComplete(at < end || this.#queue?.isEmpty === false)
    // A visitor that is gone has ended the exchange in the middle.
    if (at === end || this.#phase !== 'body') return
    const { turns } = this.#context.server
    if (turns.hasTime) return this.#takePortion(bytes, at, end)
    this.#queue ??= new AnswerQueue(turns, (piece, from, to) => this.#takePortion(piece, from, to))
    this.#queue.putBack(bytes, at, end)
  }

  /**
   * `hasSurplus`: the origin sent more than its response, so nothing it sends can be trusted to be the next one. A response
   * that comes before the end of the request ends the exchange as well: the rest of the request is not wanted.
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

  /** Gives credit for bytes of the origin, at once or, if the visitor reads no more, later. */
  #account(taken: number): void {
    const before = Math.min(taken, this.#accountedBytes)
    this.#accountedBytes -= before
    const count = taken - before
    if (this.#isVisitorFull) this.#unconsumed += count
    else this.#stream?.consumed(count)
  }

  #switch(visit: Visit, bytes: Uint8Array, at: number, end: number): void {
    // A 101 to anything else is a connection that the visitor did not ask for.
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

  /**
   * A lane can serve such a response: head and body may come one after the other. A response that is not strict would come
   * back.
   */
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
    // Node 20 and others may take the body of the request behind one with an Upgrade for a request.
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
   * A stream of the pool can be dead without our knowing yet. If nothing of the request was delivered any method may
   * be tried again; if it was, only one that does no harm twice.
   */
  #retryOrFail(code: ErrorCode, delivered: number, reason?: string): void {
    const visit = this.#visit
    const untouched = this.#request.piecesUnlessDelivered(delivered)
    // On a fresh stream there is no sign that it was stale: what breaks one app there may break another. An app of HTTP/2 can say
    // that it did nothing with the request (REFUSED_STREAM, GOAWAY); but it may do so each time.
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
    // The old stream's wait is gone; the new one may want to wait at once.
    visit.resume()
    visit.retried?.()
    this.#start(visit, stream, false)
    for (const piece of pieces) this.body(piece)
    if (isDone) this.bodyEnded()
  }

  #failInvalid(reason: string): void {
    this.#fail('ORIGIN_INVALID', undefined, reason || undefined)
  }

  /** `again` and `reason`: as `Visit.fail` takes them. */
  #fail(cause: ErrorCode, again?: readonly Uint8Array[], reason?: string): void {
    const visit = this.#visit
    // An app of HTTP/2 alone cannot read the request; nothing is wrong with it.
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

/** Whether what an app switches to is among the protocols that it was offered. */
function isOffered(chosen: string, offered: string): boolean {
  if (chosen === offered) return offered !== ''
  const offers = new Set(offered.split(',').map(one => one.trim()))
  return offered !== '' && chosen.split(',').every(one => offers.has(one.trim()))
}
