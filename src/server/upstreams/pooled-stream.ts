// One stream of the pool and the exchange on it: request bytes out, the answer framed strictly on its way back.

import { copyBytes } from '../../bytes.ts'
import { ERRORS, type ErrorCode } from '../../errors.ts'
import { BodyFramer } from '../../http/body.ts'
import { CR, LF } from '../../http/characters.ts'
import { forwardRequestHead, forwardResponseHead, maxForwardedBytes } from '../../http/forward.ts'
import { parseResponseHead, type RequestHead, ResponseHead } from '../../http/head.ts'
import { IDEMPOTENT } from '../../http/request-line.ts'
import type { Stream, StreamHandler } from '../../session/stream.ts'
import type { LaneEnd, LaneTerms, Socket, Splice, SpliceDone } from '../../socket.ts'
import type { Deadline } from '../deadlines.ts'
import { HeadBuffer } from '../head-buffer.ts'
import type { Exchange, LaneEvents, Reserved, Rewrite, Visit } from '../upstream.ts'
import { StreamLane } from './stream-lane.ts'
import type { StreamsContext, StreamsUpstream } from './streams.ts'

/** Request body kept for a second try on a fresh stream. nginx keeps as much in memory by default. */
const MAX_REPLAY_BYTES = 65_536
/** What of an answer's body arrived with its head leaves with it in one write, up to this size together. */
const SCRATCH_BYTES = 262_144
/** An answer of this size that came in one piece will do so again: half of what fits into a lane. */
const EASY_ANSWER_BYTES = 32_768
/** With less to come of a body, telling another thread costs more than it saves; measured by `ahead.ts --only 1m10`. */
const MIN_SPLICED_BYTES = 262_144
/** How long a lane may be idle before it is handed back. */
const LANE_IDLE_MS = 1_000
/** How long the origin may take to end after a stream was ended from here. */
const RETIRE_MS = 5_000

const CLOSE = { close: true, keepAlive10: false, dropsChunks: false }
const CLOSE_PLAIN = { close: true, keepAlive10: false, dropsChunks: true }
const STAY_OPEN = { close: false, keepAlive10: false, dropsChunks: false }
const STAY_OPEN_10 = { close: false, keepAlive10: true, dropsChunks: false }

/** Shared by all streams: a head is built and handed on within one call. */
let scratch = new Uint8Array(SCRATCH_BYTES)

type Phase =
  | 'idle'
  /** A lane serves its one visitor on it, or is about to. */
  | 'lane'
  /** The request goes out, the head of the answer is awaited. */
  | 'head'
  | 'body'
  /** After 101: bytes both ways. */
  | 'switched'
  /** Ended from here; the origin has a moment to end as well. */
  | 'retiring'
  | 'closed'

export class PooledStream implements StreamHandler, Exchange, Reserved, Deadline {
  dueTick = 0
  readonly #pool: StreamsUpstream
  readonly #context: StreamsContext
  #framer: BodyFramer = new BodyFramer()
  readonly #answer: ResponseHead = new ResponseHead()
  readonly #partialHead: HeadBuffer = new HeadBuffer()
  #stream: Stream | undefined
  #visit: Visit | undefined
  #phase: Phase = 'idle'
  #isReused = false
  /** The request is complete; after a switch: the visitor sent FIN. */
  #isRequestDone = false
  /** Bytes sent on the stream before the exchange under way: what the far side had delivered then, at most. */
  #sentBefore = 0
  /** Body pieces of the request under way, while it could be tried again; `undefined` when it no longer can. */
  #replay: Uint8Array[] | undefined
  #replayBytes = 0
  /** The deadline runs because bytes of the visitor wait: so many did at its last look. 0: it does not. */
  #waitingAtLook = 0
  /** The kernel moves the body of the request: so many bytes of it had moved at the deadline's last look. */
  #upload: Splice | undefined
  #uploadedAtLook = 0
  /** Answer bytes that the visitor does not take yet: their credit is held back, which stops the origin. */
  #unconsumed = 0
  #isVisitorFull = false
  /** Whether the visitor can tell the end of the answer from its bytes, not only from the end of the connection. */
  #isDelimited = true
  /** The visitor speaks HTTP/1.0 and the origin sends chunks: only their payload is passed on. */
  #isUnchunked = false
  /** One visitor has it to itself. */
  #isReserved = false
  #lane: StreamLane | undefined
  /** A lane sent the request that comes next. */
  #wasAsked = false
  /** The answer came in one piece. */
  #cameWhole = false

  constructor(pool: StreamsUpstream, context: StreamsContext) {
    this.#pool = pool
    this.#context = context
  }

  /** Opens the stream. `false` when the session has no room or is gone. */
  open(): boolean {
    this.#stream = this.#context.session.open(this.#context.tunnel, this)
    if (this.#stream === undefined) return false
    this.#context.deadlines.watch(this)
    return true
  }

  /** Puts a visit's exchange on the stream: sends its head. */
  begin(visit: Visit): Exchange {
    const stream = this.#stream
    if (stream === undefined) {
      visit.fail('CLIENT_GONE')
      return this
    }
    this.#visit = visit
    this.#phase = 'head'
    this.#isRequestDone = false
    this.#cameWhole = false
    this.#sentBefore = stream.sentBytes
    this.#replay = this.#isReused || this.#context.isShared ? [] : undefined
    this.#replayBytes = 0
    this.#waitingAtLook = 0
    const { deadlines, limits } = this.#context
    // Who waits for "100 Continue" sends nothing else, so a silent origin would never be found out.
    deadlines.arm(this, visit.head.expectsContinue ? limits.originTimeoutMs : 0)
    reserveScratch(visit.head)
    const end = forwardRequestHead(visit.head, visit.hop(this.#context.rewrite), scratch, 0)
    if (this.#wasAsked) {
      this.#wasAsked = false
      this.#sentBefore -= end
      return this
    }
    if (stream.write(scratch, true, 0, end)) return this
    visit.pause()
    if (!visit.head.expectsContinue) this.#watchSending()
    return this
  }

  // ── For one visitor alone ──────────────────────────────────────────────────────────────────────────────────

  reserve(): void {
    this.#isReserved = true
  }

  release(): void {
    this.#isReserved = false
    this.#lane?.stop()
    if (this.#phase === 'lane' || this.#wasAsked) this.#discard('CANCELLED')
    else if (this.#phase === 'idle') this.#giveBack()
  }

  /** The exchange is over, and the stream is good for another. */
  #giveBack(): void {
    if (!this.#isReserved) this.#pool.release(this)
  }

  get rewrite(): Rewrite | undefined {
    return this.#context.rewrite
  }

  get isOpen(): boolean {
    return this.#phase !== 'closed' && this.#phase !== 'retiring'
  }

  get isReadyForLane(): boolean {
    const stream = this.#stream
    if (this.#phase !== 'idle' || stream === undefined || stream.isBackedUp) return false
    const isOnLink = stream.sendingLink !== undefined || stream.receivingLink !== undefined
    return !isOnLink && !stream.peerEnded && stream.held === undefined
  }

  enterLane(visitor: Socket, terms: LaneTerms, events: LaneEvents): void {
    const stream = this.#stream
    if (stream === undefined) return events.ended(undefined)
    this.#phase = 'lane'
    this.#context.deadlines.disarm(this)
    this.#lane = new StreamLane(this.#context.session, stream, visitor, terms, events, end =>
      this.#leaveLane(end),
    )
  }

  #leaveLane(end: LaneEnd | undefined): void {
    this.#lane = undefined
    if (this.#phase !== 'lane') return
    if (end?.isTorn) return this.#discard('CANCELLED')
    this.#phase = 'idle'
    this.#wasAsked = end?.isAsked === true
    const { deadlines, limits } = this.#context
    // It was idle for a while already.
    if (limits.streamIdleMs > 0) deadlines.arm(this, Math.max(1, limits.streamIdleMs - LANE_IDLE_MS))
  }

  // ── From the visitor ───────────────────────────────────────────────────────────────────────────────────────

  body(bytes: Uint8Array): void {
    if (this.#replay !== undefined) {
      this.#replayBytes += bytes.length
      if (this.#replayBytes > MAX_REPLAY_BYTES) this.#replay = undefined
      else this.#replay.push(bytes)
    }
    if (this.#phase === 'head' && this.#waitingAtLook === 0) this.#context.deadlines.disarm(this)
    if (this.#stream?.write(bytes) !== false) return
    this.#visit?.pause()
    this.#watchSending()
  }

  bodyFrom(from: Socket, limitBytes: number, done: SpliceDone): Splice | undefined {
    if (limitBytes < MIN_SPLICED_BYTES || this.#waitingAtLook > 0) return undefined
    this.#upload = this.#stream?.writeFrom(from, limitBytes, movedBytes => {
      this.#upload = undefined
      if (this.#phase !== 'closed') this.#context.deadlines.disarm(this)
      done(movedBytes)
    })
    if (this.#upload === undefined) return undefined
    this.#replay = undefined
    this.#watchUpload(0)
    return this.#upload
  }

  bodyEnded(): void {
    this.#isRequestDone = true
    switch (this.#phase) {
      case 'head':
        this.#waitingAtLook = 0
        return this.#context.deadlines.arm(this, this.#context.limits.originTimeoutMs)
      case 'body':
        if (this.#framer.complete) this.#complete()
        return
      case 'switched':
        this.#stream?.end()
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
    this.#visit = undefined
    this.#discard('CANCELLED')
  }

  /** The origin does not read as fast as the visitor sends: bounds how long it may take nothing at all. */
  #watchSending(): void {
    const { deadlines, limits } = this.#context
    this.#waitingAtLook = this.#stream?.waitingBytes ?? 0
    deadlines.arm(this, limits.sendTimeoutMs)
  }

  #watchUpload(movedBytes: number): void {
    this.#uploadedAtLook = movedBytes
    this.#context.deadlines.arm(this, this.#context.limits.sendTimeoutMs)
  }

  /** The deadline is about bytes of the visitor, and not about the origin's answer. */
  get #isSending(): boolean {
    return this.#waitingAtLook > 0 || this.#upload !== undefined
  }

  // ── From the origin ────────────────────────────────────────────────────────────────────────────────────────

  received(bytes: Uint8Array, start: number, end: number): void {
    switch (this.#phase) {
      case 'head':
        this.#account(end - start)
        return this.#takeHead(bytes, start, end)
      case 'body':
        return this.#takeBody(bytes, start, end)
      case 'switched':
        return this.#pass(bytes, start, end)
      case 'idle':
      case 'lane':
        // Nothing was asked: whatever this is, the next visitor must not get it.
        this.#pool.dropIdle(this)
        return this.#discard('PROTOCOL_ERROR')
    }
  }

  receivedFrom(from: Socket, limitBytes: number, done: SpliceDone): Splice | undefined {
    const { leftBytes } = this.#framer
    const isPossible = this.#phase === 'body' && !this.#isUnchunked && !this.#isVisitorFull
    if (!isPossible || leftBytes < MIN_SPLICED_BYTES) return undefined
    return this.#visit?.writeFrom?.(from, Math.min(leftBytes, limitBytes), movedBytes => {
      // After a failure in the middle these are nobody's.
      if (this.#phase === 'body') this.#framer.skip(movedBytes)
      if (this.#phase === 'body' && this.#framer.complete) this.#answerComplete(false)
      done(movedBytes)
    })
  }

  writable(): void {
    if (this.#waitingAtLook > 0) {
      this.#waitingAtLook = 0
      this.#context.deadlines.disarm(this)
    }
    this.#visit?.resume()
  }

  ended(delivered: number): void {
    switch (this.#phase) {
      case 'idle':
      case 'lane':
        this.#pool.dropIdle(this)
        return this.#retire()
      case 'head':
        return this.#retryOrFail('ORIGIN_CLOSED', delivered)
      case 'body':
        if (this.#answer.body === 'close') return this.#complete()
        return this.#fail('ORIGIN_CLOSED')
      case 'switched':
        if (this.#isRequestDone) return this.#complete()
        return this.#visit?.endAnswer()
      case 'retiring':
        return this.#close()
    }
  }

  reset(code: ErrorCode, delivered: number): void {
    const phase = this.#phase
    this.#stream = undefined
    if (phase === 'idle') this.#pool.dropIdle(this)
    if (this.#visit === undefined) return this.#close()
    if (this.#context.session.isClosed)
      return this.#fail('CLIENT_GONE', phase === 'head' ? this.#piecesToRepeat(delivered) : undefined)
    // The client is a stranger: of its codes, only those about the origin are believed.
    const cause = ERRORS[code].fault === 'origin' || code === 'STREAM_LIMIT' ? code : 'ORIGIN_CLOSED'
    // A handler that threw has seen the request: it would be asked twice.
    if (phase === 'head' && cause !== 'HANDLER_FAILED') this.#retryOrFail(cause, delivered)
    else this.#fail(cause)
  }

  /** Idle for too long, or the origin took too long: to read, for the head of its answer, or to end after us. */
  expired(): void {
    if (this.#upload !== undefined) {
      const { movedBytes, takenBytes } = this.#upload
      const isStalled = takenBytes > movedBytes && movedBytes === this.#uploadedAtLook
      return isStalled ? this.#fail('ORIGIN_TIMEOUT') : this.#watchUpload(movedBytes)
    }
    if (this.#waitingAtLook > 0) {
      const isMoving = this.#stream !== undefined && this.#stream.waitingBytes < this.#waitingAtLook
      return isMoving ? this.#watchSending() : this.#fail('ORIGIN_TIMEOUT')
    }
    switch (this.#phase) {
      case 'idle':
        this.#pool.dropIdle(this)
        return this.#retire()
      case 'head':
        return this.#fail('ORIGIN_TIMEOUT')
      case 'retiring':
        return this.#discard('CANCELLED')
    }
  }

  #takeHead(bytes: Uint8Array, start: number, end: number): void {
    this.#replay = undefined
    if (this.#partialHead.isEmpty) return this.#readHead(bytes, start, end)
    this.#partialHead.add(bytes, start, end)
    const pending = this.#partialHead.all
    this.#readHead(pending, 0, pending.length)
  }

  #readHead(bytes: Uint8Array, start: number, end: number): void {
    const visit = this.#visit
    if (visit === undefined) return
    const { limits, deadlines } = this.#context
    const answer = this.#answer
    this.#cameWhole = this.#partialHead.isEmpty
    let at = start
    do {
      const headEnd = parseResponseHead(answer, bytes, at, end, limits, visit.head.method)
      if (headEnd === -1) return this.#fail('ORIGIN_INVALID')
      if (headEnd === 0) return this.#awaitMore(bytes, at, end)
      at = headEnd
    } while (this.#passInterim(visit, answer))
    this.#partialHead.clear()
    if (!this.#isSending) deadlines.disarm(this)
    if (answer.status === 101) this.#switch(visit, bytes, at, end)
    else this.#beginAnswer(visit, bytes, at, end)
  }

  #awaitMore(bytes: Uint8Array, at: number, end: number): void {
    // What waits there already has all of it.
    if (at === 0 && !this.#partialHead.isEmpty) return
    this.#partialHead.clear()
    this.#partialHead.add(bytes, at, end)
  }

  /** Passes a 1xx answer on: a sign of life. An HTTP/1.0 visitor would not understand it. */
  #passInterim(visit: Visit, answer: ResponseHead): boolean {
    if (answer.status >= 200 || answer.status === 101) return false
    const { deadlines, limits } = this.#context
    if (!this.#isSending) deadlines.arm(this, this.#isRequestDone ? limits.originTimeoutMs : 0)
    if (visit.head.minorVersion === 1) {
      reserveScratch(answer)
      const end = forwardResponseHead(answer, STAY_OPEN, scratch, 0)
      if (!visit.write(scratch, true, 0, end)) this.#isVisitorFull = true
    }
    return true
  }

  /** Sends the head of the answer, and what of its body came with it, in one write. */
  #beginAnswer(visit: Visit, bytes: Uint8Array, at: number, end: number): void {
    const answer = this.#answer
    this.#phase = 'body'
    if (answer.body === 'chunked' && visit.head.minorVersion === 0)
      return this.#beginPlain(visit, bytes, at, end)
    this.#framer.begin(answer.body, answer.contentLength)
    const bodyEnd = this.#framer.feed(bytes, at, end)
    if (bodyEnd === -1) return this.#fail('ORIGIN_INVALID')
    visit.answered(answer.status)
    this.#isDelimited = answer.body !== 'close'
    // An answer that is complete before the request leaves the rest of the request on the connection.
    const isEarly = this.#framer.complete && !this.#isRequestDone
    const staysOpen = visit.keepsAlive && this.#isDelimited && !isEarly
    const style = !staysOpen ? CLOSE : visit.head.minorVersion === 0 ? STAY_OPEN_10 : STAY_OPEN
    reserveScratch(answer)
    const headEnd = addLines(forwardResponseHead(answer, style, scratch, 0), visit, answer)
    const bodyBytes = bodyEnd - at
    let wasTaken: boolean
    if (headEnd + bodyBytes <= scratch.length) {
      if (bodyBytes > 0) copyBytes(bytes, at, bodyEnd, scratch, headEnd)
      wasTaken = visit.write(scratch, true, 0, headEnd + bodyBytes)
    } else {
      visit.write(scratch, true, 0, headEnd)
      wasTaken = visit.write(bytes, false, at, bodyEnd)
    }
    if (!wasTaken) this.#isVisitorFull = true
    this.#cameWhole &&= this.#framer.complete && headEnd + bodyBytes <= EASY_ANSWER_BYTES
    if (this.#framer.complete) this.#answerComplete(bodyEnd < end)
  }

  /** HTTP/1.0 knows no chunks. Origins that send them all the same are common enough. */
  #beginPlain(visit: Visit, bytes: Uint8Array, at: number, end: number): void {
    this.#isUnchunked = true
    this.#isDelimited = false
    this.#framer = new BodyFramer((piece, from, to) => {
      if (this.#visit?.write(piece, false, from, to) === false) this.#isVisitorFull = true
    })
    this.#framer.begin('chunked', 0)
    visit.answered(this.#answer.status)
    reserveScratch(this.#answer)
    const headEnd = addLines(forwardResponseHead(this.#answer, CLOSE_PLAIN, scratch, 0), visit, this.#answer)
    if (!visit.write(scratch, true, 0, headEnd)) this.#isVisitorFull = true
    const bodyEnd = this.#framer.feed(bytes, at, end)
    if (bodyEnd === -1) return this.#fail('ORIGIN_INVALID')
    if (this.#framer.complete) this.#answerComplete(bodyEnd < end)
  }

  #takeBody(bytes: Uint8Array, start: number, end: number): void {
    const bodyEnd = this.#framer.complete ? start : this.#framer.feed(bytes, start, end)
    if (bodyEnd === -1) return this.#fail('ORIGIN_INVALID')
    if (this.#isUnchunked) this.#account(bodyEnd - start)
    else if (bodyEnd > start) this.#pass(bytes, start, bodyEnd)
    if (this.#framer.complete) this.#answerComplete(bodyEnd < end)
  }

  /** `hasSurplus`: the origin sent more than its answer, so nothing it sends can be trusted to be the next one. */
  #answerComplete(hasSurplus: boolean): void {
    if (hasSurplus) this.#answer.keepAlive = false
    // An answer that comes before the end of the request ends the exchange: the rest of the request is not wanted.
    this.#complete()
  }

  #pass(bytes: Uint8Array, start: number, end: number): void {
    if (this.#visit?.write(bytes, false, start, end) === false) this.#isVisitorFull = true
    this.#account(end - start)
  }

  /** Gives the credit for bytes of the origin back, or later when the visitor cannot take more. */
  #account(count: number): void {
    if (this.#isVisitorFull) this.#unconsumed += count
    else this.#stream?.consumed(count)
  }

  #switch(visit: Visit, bytes: Uint8Array, at: number, end: number): void {
    // Only an upgrade to this one was passed on: a 101 to anything else is a pipe that nobody asked for.
    if (visit.head.upgrade !== 'websocket' || this.#answer.upgrade !== 'websocket')
      return this.#fail('ORIGIN_INVALID')
    this.#phase = 'switched'
    this.#isRequestDone = false
    visit.answered(101)
    reserveScratch(this.#answer)
    const headEnd = addLines(forwardResponseHead(this.#answer, STAY_OPEN, scratch, 0), visit, this.#answer)
    if (!visit.write(scratch, true, 0, headEnd)) this.#isVisitorFull = true
    if (at < end && !visit.write(bytes, false, at, end)) this.#isVisitorFull = true
    visit.switched()
  }

  // ── The end of an exchange, and of the stream ──────────────────────────────────────────────────────────────

  #complete(): void {
    const visit = this.#visit
    const isSound =
      this.#phase === 'body' && this.#isRequestDone && this.#answer.keepAlive && this.#answer.body !== 'close'
    this.#visit = undefined
    this.#waitingAtLook = 0
    if (this.#unconsumed > 0) this.drained()
    this.#isVisitorFull = false
    if (this.#isUnchunked) {
      this.#isUnchunked = false
      this.#framer = new BodyFramer()
    }
    if (isSound && this.#stream?.peerEnded === false) {
      this.#phase = 'idle'
      this.#isReused = true
      this.#context.deadlines.arm(this, this.#context.limits.streamIdleMs)
      this.#giveBack()
    } else if (this.#isRequestDone) this.#retire()
    else this.#discard('CANCELLED')
    visit?.done(this.#isRequestDone && this.#isDelimited, isSound && this.#cameWhole)
  }

  /**
   * A stream of the pool can be dead without our knowing yet. If nothing of the request was delivered any method may
   * be tried again; if it was, only one that does no harm twice.
   */
  #retryOrFail(code: ErrorCode, delivered: number): void {
    const visit = this.#visit
    // On a fresh stream nothing says that it was stale: what breaks one app there may break another.
    if (!this.#isReused) return this.#fail(code, delivered <= this.#sentBefore ? this.#replay : undefined)
    const pieces = this.#piecesToRepeat(delivered)
    if (pieces === undefined || visit === undefined) return this.#fail(code)
    const isRequestDone = this.#isRequestDone
    this.#stream?.reset('CANCELLED')
    this.#isReused = false
    if (!this.open()) return this.#fail('CLIENT_GONE', pieces)
    // What the old stream wanted to wait for is gone; the new one may want to wait at once.
    visit.resume()
    this.begin(visit)
    for (const piece of pieces) this.body(piece)
    if (isRequestDone) this.bodyEnded()
  }

  /** The body so far, if the request does no harm when it is sent once more. */
  #piecesToRepeat(delivered: number): readonly Uint8Array[] | undefined {
    const isHarmless = delivered <= this.#sentBefore || IDEMPOTENT.has(this.#visit?.head.method ?? '')
    return isHarmless ? this.#replay : undefined
  }

  /** `again`: as `Visit.fail` takes it. */
  #fail(code: ErrorCode, again?: readonly Uint8Array[]): void {
    const visit = this.#visit
    this.#visit = undefined
    this.#discard('CANCELLED')
    visit?.fail(code, again)
  }

  /** Ends the stream in good order: the origin sees FIN, not a failure. */
  #retire(): void {
    const stream = this.#stream
    if (stream === undefined) return this.#close()
    this.#phase = 'retiring'
    stream.end()
    if (stream.isClosed) this.#close()
    else this.#context.deadlines.arm(this, RETIRE_MS)
  }

  #discard(code: ErrorCode): void {
    this.#stream?.reset(code)
    this.#close()
  }

  #close(): void {
    if (this.#phase === 'closed') return
    this.#phase = 'closed'
    this.#stream = undefined
    this.#partialHead.clear()
    this.#context.deadlines.forget(this)
    this.#pool.closed()
  }
}

/** Writes lines into the head that ends at `end` of the shared array, in front of its blank line. Returns its new end. */
function addLines(end: number, { answerLines, hstsLine }: Visit, answer: ResponseHead): number {
  const linesEnd = addBytes(end, answerLines)
  if (hstsLine === undefined || answer.header('strict-transport-security') !== undefined) return linesEnd
  return addBytes(linesEnd, hstsLine)
}

function addBytes(end: number, lines: Uint8Array | undefined): number {
  if (lines === undefined) return end
  // The room that `maxForwardedBytes` leaves is for a request's own lines: an answer has hardly any.
  scratch.set(lines, end - 2)
  scratch[end + lines.length - 2] = CR
  scratch[end + lines.length - 1] = LF
  return end + lines.length
}

/** Makes sure that a head fits when it is forwarded. */
function reserveScratch(head: RequestHead | ResponseHead): void {
  const needed = maxForwardedBytes(head.end - head.start)
  if (scratch.length < needed) scratch = new Uint8Array(needed)
}
