// A lane: a worker thread serves one visitor's small requests on a trunk, without the main thread.
//
//   visitor ── request head ──▶ parse, forward ──▶ trunk ──▶ app      (the far end: app-lane.ts)
//   visitor ◀── answer, whole ── parse, forward ◀── trunk ◀── app
//
// Easy is a request of at most 16 KB whose head came in one piece, its body with it or in one piece behind it, and
// nothing else; and a response of at most 128 KB whose pieces follow one another at once. The parsers are those of
// the main thread, and as strict. All else is handed back with every byte of it, before any of its answer was passed
// on: the main thread continues as if it had read those bytes itself.

import { EASY_REQUEST_BYTES, type LaneExchange, type LaneLog, type LaneTerms } from '../accelerator.ts'
import { copyBytes, copyOf } from '../bytes.ts'
import { ResponseHead } from '../http/answer-head.ts'
import { BodyFramer } from '../http/body.ts'
import { latin1 } from '../http/characters.ts'
import { forwardRequestHead, forwardResponseHead, maxForwardedBytes } from '../http/forward.ts'
import { parseRequestHead, parseResponseHead, RequestHead } from '../http/head.ts'
import { identify, requestIdLine } from '../http/tracing.ts'
import { type HeldAnswer, HeldAnswers } from './held-answer.ts'
import { type Kernel, type Room, WOULD_BLOCK } from './kernel.ts'
import type { ServedLine } from './line-room.ts'
import type { SharedSlots } from './shared-slots.ts'
import { LaneEndpoint, MAX_LANE_ANSWER_BYTES, MAX_LANE_FRAME_BYTES, type Trunk } from './trunk.ts'

/**
 * The size into which most requests fit. A lane stores its request until the response is complete; a longer request
 * gets an array of its own.
 */
const USUAL_REQUEST_BYTES = 1_024
/** The maximum number of bytes that may arrive for an end after it has left its lane. */
const MAX_MORE_BYTES = 2 * MAX_LANE_ANSWER_BYTES
/**
 * The length above which a response is long. Several long ones in a row gain nothing from a shared connection; a few
 * between short ones cost less than ending the lane.
 */
const LONG_ANSWER_BYTES = 65_536
const MAX_LONG_RUN = 3

const STAY_OPEN = { close: false, keepAlive10: false }

export interface LaneOrder {
  readonly slot: number
  /** The descriptor of this end's own connection: the visitor's or the app's; -1 if the app has none that a lane can use. */
  readonly descriptor: number
  /** The number of the trunk in the process, and of the lane on it. */
  readonly trunk: number
  readonly lane: number
  /** The terms for a visitor's end. The app's end has none. */
  readonly terms: LaneTerms | undefined
}

/** The end of a lane on its own connection. The main thread gets the bytes that were read and not served. */
export interface LaneOver {
  /** The bytes given to the trunk, and the bytes from it that were passed on. */
  readonly sentBytes: number
  readonly receivedBytes: number
  /** Whether its own connection broke. The kernel reported the error here, and will not report it again. */
  readonly hasFailed: boolean
  /** Whether the trunk is gone. */
  readonly isTorn: boolean
  /** Bytes from the visitor. */
  readonly request: Uint8Array<ArrayBuffer> | undefined
  /** Whether the bytes are a request that the lane has already forwarded to the app. */
  readonly isAsked: boolean
  /** The rest of a response of which the visitor has the beginning. */
  readonly unsent: Uint8Array<ArrayBuffer> | undefined
}

/** The events of a lane, in this order. */
export interface LaneEvents {
  thrown(error: unknown): void
  exchanged(lane: Lane, exchange: LaneExchange): void
  /** Called like `exchanged`, for the log in its terms. */
  logged(lane: Lane, log: LaneLog, line: ServedLine): void
  over(lane: LaneSide, over: LaneOver): void
  /** Called with bytes that came from the trunk and were not passed on. */
  more(lane: LaneSide, bytes: Uint8Array<ArrayBuffer>): void
  /** Called when nothing more will come. `isTorn`: bytes may be missing. */
  back(lane: LaneSide, isTorn: boolean): void
}

/** The parsers that all lanes of a thread share. */
export class LaneTools {
  readonly kernel: Kernel
  readonly slots: SharedSlots
  readonly events: LaneEvents
  readonly request: Room
  readonly requestHead: RequestHead = new RequestHead()
  readonly answer: Room
  readonly answerHead: ResponseHead = new ResponseHead()
  /** The framer, as on the main thread, so that both read a response in the same way. */
  readonly framer: BodyFramer = new BodyFramer()
  readonly holding: Set<Lane> = new Set<Lane>()
  readonly held: HeldAnswers

  constructor(kernel: Kernel, slots: SharedSlots, events: LaneEvents) {
    this.kernel = kernel
    this.slots = slots
    this.events = events
    this.framer.isTolerant = true
    this.held = new HeldAnswers(kernel)
    this.request = kernel.room(EASY_REQUEST_BYTES)
    this.answer = kernel.room(maxForwardedBytes(MAX_LANE_FRAME_BYTES))
  }

  /** Forgets incomplete heads, which no other lane may continue. */
  forgetHeads(): void {
    this.requestHead.fields.isPartial = false
    this.answerHead.fields.isPartial = false
  }
}

/** One end of a lane, with the state for its thread. */
export abstract class LaneSide extends LaneEndpoint {
  readonly order: LaneOrder
  protected readonly tools: LaneTools
  protected sentBytes = 0
  protected receivedBytes = 0
  #moreBytes = 0
  /** The time when the thread first saw this end wait for the other side's last message. */
  leavingSince = 0

  constructor(order: LaneOrder, trunk: Trunk, tools: LaneTools) {
    super(trunk, order.lane)
    this.order = order
    this.tools = tools
  }

  /** Called when its own connection changed. `isLast`: the far side sends no more. */
  abstract changed(isLast: boolean): void
  /** Ends the lane in its current state. */
  abstract finish(hasFailed?: boolean): void

  /** Ends only this lane after an error, because it is unknown which bytes arrived. */
  override crash(error: unknown): void {
    this.tools.events.thrown(error)
    this.tools.forgetHeads()
    this.tellOver({ hasFailed: true, isTorn: true })
    this.leave()
  }

  protected tellOver(over: Partial<LaneOver>): void {
    if (this.hasLeft) return
    this.tools.events.over(this, {
      sentBytes: this.sentBytes,
      receivedBytes: this.receivedBytes,
      hasFailed: false,
      isTorn: this.trunk.isBroken,
      request: undefined,
      isAsked: false,
      unsent: undefined,
      ...over,
    })
  }

  /**
   * Sends bytes to a side that has left. An honest peer sends at most one open request, or what its app sends before
   * and after it.
   */
  protected tellMore(bytes: Uint8Array, start: number, end: number): void {
    this.#moreBytes += end - start
    if (this.#moreBytes > MAX_MORE_BYTES) this.trunk.isBroken = true
    else if (end > start) this.tools.events.more(this, copyOf(bytes, start, end))
  }

  protected peerIsLeaving(): void {
    this.finish()
  }

  protected done(isTorn: boolean): void {
    this.tools.events.back(this, isTorn)
  }
}

export class Lane extends LaneSide {
  readonly #terms: LaneTerms
  /** The unchanged bytes of the open request so far. */
  #request = new Uint8Array(USUAL_REQUEST_BYTES)
  #requestBytes = 0
  #isAsked = false
  /** The beginning of a response, which was not sent to the visitor. */
  #held: HeldAnswer | undefined
  /** The time of the first piece of a held response, for the thread. */
  heldFrom = 0
  heldSince = 0
  /** Whether the exchange may be reported. */
  #mayReport = false
  #askedAt = 0
  #requestId = ''
  #method = ''
  #targetStart = 0
  #targetEnd = 0
  /** Whether the visitor sent bytes that were not read. They stay in the kernel until their turn. */
  #isVisitorReady = false
  /** Whether the visitor has ended: only bytes that have arrived are left. */
  #isVisitorLeaving = false
  /** The number of requests at the thread's last sweep. */
  requestsAtSweep = -1
  requests = 0
  #longRun = 0

  constructor(order: LaneOrder, terms: LaneTerms, trunk: Trunk, tools: LaneTools) {
    super(order, trunk, tools)
    this.#terms = terms
  }

  changed(isLast: boolean): void {
    this.#isVisitorReady = true
    this.#isVisitorLeaving ||= isLast
    if (!this.#isAsked && !this.hasLeft) this.#takeRequest()
  }

  roomAgain(): void {
    if (!this.#isAsked && this.#isVisitorReady) this.#takeRequest()
  }

  finish(hasFailed = false): void {
    this.#end({ hasFailed })
  }

  // ── One exchange ───────────────────────────────────────────────────────────────────────────────────────────

  #takeRequest(): void {
    const { kernel, request, requestHead } = this.tools
    const { trunk } = this
    const { routingEpoch, grantedEpoch, reportsLeft, limits, hop, isReported, log } = this.#terms
    const { descriptor } = this.order
    const isTold = isReported || log !== undefined
    if (isTold && this.tools.slots.isBacklogFull) return this.finish()
    const at = trunk.reserve(this, maxForwardedBytes(EASY_REQUEST_BYTES))
    if (at === -1) return
    this.#isVisitorReady = false
    const before = this.#requestBytes
    copyBytes(this.#request, 0, before, request.bytes, 0)
    const count = kernel.receive(descriptor, request, EASY_REQUEST_BYTES - before, before)
    if (count === WOULD_BLOCK) return this.#isVisitorLeaving ? this.finish() : undefined
    if (count === 0) return this.finish()
    // After a reset the runtime reads too, even if paused: bytes before these may be missing. If the end is noticed
    // only now, the runtime reads everything at once, which is more than a lane handles.
    if (count < 0 || (this.#isVisitorLeaving && !kernel.isConnected(descriptor))) return this.finish(true)
    const end = before + count
    this.#keep(request.bytes, end)
    const headEnd = parseRequestHead(requestHead, request.bytes, 0, end, limits)
    if (headEnd <= 0 || !isEasyRequest(requestHead, this.#terms)) return this.finish()
    const wholeEnd = headEnd + requestHead.contentLength
    const isAwaited = before === 0 && end < wholeEnd && wholeEnd <= EASY_REQUEST_BYTES
    if (isAwaited && !this.#isVisitorLeaving) return this.tools.forgetHeads()
    if (end !== wholeEnd || Atomics.load(routingEpoch, 0) !== grantedEpoch || !takeOne(this.#terms.allotted))
      return this.finish()
    requestHead.requestId = ''
    if (this.#terms.tracing !== undefined) identify(requestHead, this.#terms.tracing, '1')
    this.#requestId = requestHead.requestId
    const bodyAt = forwardRequestHead(requestHead, hop, trunk.out.bytes, at)
    copyBytes(request.bytes, headEnd, end, trunk.out.bytes, bodyAt)
    const length = bodyAt - at + end - headEnd
    this.#isAsked = true
    this.sentBytes += length
    trunk.commit(this.lane, length)
    this.#mayReport = isReported || Atomics.load(reportsLeft, 0) > 0
    if (!this.#mayReport && !isTold && !this.#terms.isMeasured) return
    this.#askedAt = performance.now()
    this.#method = requestHead.method
    this.#targetStart = requestHead.targetStart
    this.#targetEnd = requestHead.targetEnd
  }

  #keep(bytes: Uint8Array, count: number): void {
    if (count > this.#request.length) this.#request = new Uint8Array(EASY_REQUEST_BYTES)
    copyBytes(bytes, 0, count, this.#request, 0)
    this.#requestBytes = count
  }

  received({ bytes }: Room, start: number, end: number): void {
    if (this.hasLeft) return this.tellMore(bytes, start, end)
    if (!this.#isAsked) return this.#handBack(bytes, start, end)
    const held = this.#held
    if (held === undefined) return this.#takeAnswer(bytes, start, end)
    if (!this.tools.held.add(held, bytes, start, end)) return this.#handBack(bytes, start, end)
    this.heldSince = performance.now()
    if (held.mayBeWhole) this.#takeAnswer(held.room.bytes, held.start, held.end)
  }

  /** Passes on a complete response, and holds an incomplete one. */
  #takeAnswer(bytes: Uint8Array, start: number, end: number): void {
    const { kernel, answer, answerHead, framer, slots } = this.tools
    // The methods that lanes serve do not change how a response is read.
    const headEnd = parseResponseHead(answerHead, bytes, start, end, this.#terms.limits, 'GET')
    if (headEnd === 0) return this.#hold(bytes, start, end, undefined)
    const isHeadLong = headEnd - start > MAX_LANE_FRAME_BYTES
    if (headEnd === -1 || isHeadLong || !isEasyAnswer(answerHead)) return this.#handBack(bytes, start, end)
    framer.begin(answerHead.body, answerHead.contentLength)
    const bodyEnd = framer.feed(bytes, headEnd, end)
    if (bodyEnd === end && !framer.complete) {
      const { body, contentLength } = answerHead
      return this.#hold(bytes, start, end, body === 'length' ? headEnd - start + contentLength : undefined)
    }
    if (bodyEnd !== end || framer.cleaned !== undefined) return this.#handBack(bytes, start, end)
    const headAt = forwardResponseHead(answerHead, STAY_OPEN, answer.bytes, 0)
    const bodyAt = this.#requestId === '' ? headAt : addRequestId(answer.bytes, headAt, this.#requestId)
    const length = bodyAt + end - headEnd
    const room = this.#held?.room ?? answer
    // A held body stays in place, and the head is written before it.
    const from = room === answer ? 0 : headEnd - bodyAt
    if (room === answer) copyBytes(bytes, headEnd, end, answer.bytes, bodyAt)
    else copyBytes(answer.bytes, 0, bodyAt, room.bytes, from)
    this.receivedBytes += end - start
    // Counted before it is sent, so that a visitor that has the response finds it in the counters.
    const { status } = answerHead
    const isReported = this.#takeReport()
    if (this.#terms.isMeasured)
      slots.measured(this.order.slot, status, performance.now() - this.#askedAt, length)
    slots.served(this.order.slot, this.#requestBytes, length, isReported, status >= 500)
    this.requests++
    const { descriptor } = this.order
    const sent = kernel.send(descriptor, room, length, from)
    if (this.#terms.log !== undefined) this.#log(this.#terms.log, status, length)
    if (isReported) this.#tell(status, length)
    this.#isAsked = false
    this.#requestBytes = 0
    this.#longRun = length > LONG_ANSWER_BYTES ? this.#longRun + 1 : 0
    const taken = Math.max(sent, 0)
    const unsent = taken < length ? copyOf(room.bytes, from + taken, from + length) : undefined
    this.#forgetHeld()
    // The request counts as served, although the visitor is gone.
    if (sent < 0 && sent !== WOULD_BLOCK) return this.finish(true)
    if (unsent !== undefined) this.#end({ unsent })
    else if (this.#longRun === MAX_LONG_RUN) this.finish()
    else if (this.#isVisitorReady) this.#takeRequest()
    else if (this.#isVisitorLeaving) this.finish()
  }

  /** Whether this exchange is reported. Several lanes share the number that is left, and only one gets the last report. */
  #takeReport(): boolean {
    const { isReported, reportsLeft } = this.#terms
    return isReported || (this.#mayReport && Atomics.sub(reportsLeft, 0, 1) > 0)
  }

  #log(log: LaneLog, status: number, responseBytes: number): void {
    if (status < 500 && log.sample < 1 && Math.random() >= log.sample) return
    this.tools.events.logged(this, log, {
      requestId: this.#requestId,
      bytes: this.#request,
      start: this.#targetStart,
      end: this.#targetEnd,
      status,
      durationMs: performance.now() - this.#askedAt,
      requestBytes: this.#requestBytes,
      responseBytes,
    })
  }

  #tell(status: number, bytes: number): void {
    const durationMs = performance.now() - this.#askedAt
    this.tools.events.exchanged(this, {
      requestId: this.#requestId,
      method: this.#method,
      target: latin1(this.#request, this.#targetStart, this.#targetEnd),
      status,
      durationMs,
      requestBytes: this.#requestBytes,
      bytes,
    })
  }

  /**
   * Holds the beginning of a response, because most apps write head and body one after the other. If the rest takes
   * longer than `HOLD_MS`, the bytes are returned to the main thread.
   */
  #hold(bytes: Uint8Array, start: number, end: number, wholeBytes: number | undefined): void {
    this.tools.forgetHeads()
    this.heldSince = performance.now()
    if (this.#held === undefined) {
      this.#held = this.tools.held.hold(bytes, start, end)
      if (this.#held === undefined) return this.#handBack(bytes, start, end)
      this.heldFrom = this.heldSince
      this.tools.holding.add(this)
    }
    if (!this.#held.waitsFor(wholeBytes)) this.finish()
  }

  #forgetHeld(): void {
    if (this.#held === undefined) return
    this.tools.holding.delete(this)
    this.tools.held.give(this.#held)
    this.#held = undefined
  }

  override crash(error: unknown): void {
    this.#forgetHeld()
    super.crash(error)
  }

  #handBack(bytes: Uint8Array, start: number, end: number): void {
    const isHeld = bytes === this.#held?.room.bytes
    this.finish()
    if (!isHeld) this.tellMore(bytes, start, end)
  }

  #end(over: Partial<LaneOver>): void {
    this.tools.forgetHeads()
    this.tellOver({
      request: this.#requestBytes > 0 ? copyOf(this.#request, 0, this.#requestBytes) : undefined,
      isAsked: this.#isAsked,
      ...over,
    })
    const held = this.#held
    if (held !== undefined) this.tellMore(held.room.bytes, held.start, held.end)
    this.#forgetHeld()
    this.leave()
  }
}

/** Inserts the line before the blank line of a head that ends at `end`. Returns the new end. */
function addRequestId(bytes: Uint8Array, end: number, id: string): number {
  const line = requestIdLine(id)
  bytes.copyWithin(end - 2 + line.length, end - 2, end)
  bytes.set(line, end - 2)
  return end + line.length
}

/** Takes one from each allotment, or none. */
function takeOne(allotted: readonly Int32Array<SharedArrayBuffer>[]): boolean {
  for (let index = 0; index < allotted.length; index++) {
    if (Atomics.sub(allotted[index]!, 0, 1) > 0) continue
    for (let back = index; back >= 0; back--) Atomics.add(allotted[back]!, 0, 1)
    return false
  }
  return true
}

function isEasyRequest(head: RequestHead, { hostWithPort, limits, isForGets }: LaneTerms): boolean {
  const isAsked = isForGets ? head.method === 'GET' && head.body === 'none' : head.method !== 'HEAD'
  return (
    isAsked &&
    head.body !== 'chunked' &&
    (limits.maxBodyBytes === 0 || head.contentLength <= limits.maxBodyBytes) &&
    head.hostWithPort === hostWithPort &&
    head.minorVersion === 1 &&
    head.keepAlive &&
    head.upgrade === '' &&
    !head.expectsContinue &&
    !head.fields.logsConnectionIn &&
    head.pathStart === head.targetStart
  )
}

/** Whether a lane can pass on the response. A connection with a login leaves the pool, which only the main thread can do. */
function isEasyAnswer({ status, keepAlive, body, fields }: ResponseHead): boolean {
  return status >= 200 && keepAlive && body !== 'close' && !fields.logsConnectionIn
}
