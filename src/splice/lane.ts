// A lane: one visitor's easy requests, served by the thread on a stream of its own, without the program.
//
//   visitor ── request head ──▶ parse, forward ──▶ stream            (a link's socket, see session/link.ts)
//   visitor ◀── answer, whole ── parse, forward ◀── stream
//
// Easy is a GET without a body that came in one piece, and an answer that did. The parsers are those of the program,
// and as strict. Whatever else comes is handed back with every byte of it, before any of its answer was passed on: the
// program goes on as if it had read those bytes itself.

import { copyBytes, copyOf } from '../bytes.ts'
import { ResponseHead } from '../http/answer-head.ts'
import { BodyFramer } from '../http/body.ts'
import { forwardRequestHead, forwardResponseHead, maxForwardedBytes } from '../http/forward.ts'
import { parseRequestHead, parseResponseHead, RequestHead } from '../http/head.ts'
import type { LaneTerms } from '../socket.ts'
import { type Kernel, type Room, WOULD_BLOCK } from './kernel.ts'
import type { LaneBoard } from './lane-board.ts'

/** A request with a longer head is the program's. A lane keeps its request until it is answered. */
const REQUEST_BYTES = 16_384
/** An answer that does not fit is the program's. */
const ANSWER_BYTES = 65_536

/**
 * Requests under way at once in all lanes of the thread, on average. Above it is better to share the carrier's writes.
 */
const MAX_CONCURRENCY = 2.5
/** Each request moves the average by so much of the way. */
const SHARE = 1 / 64

const STAY_OPEN = { close: false, keepAlive10: false }

/** What a lane begins with: three descriptors, of which the last two may be one. */
export interface LaneOrder {
  readonly slot: number
  readonly visitor: number
  readonly to: number
  readonly from: number
  readonly terms: LaneTerms
}

/** A lane is over. What was read and is not served is the program's. */
export interface LaneOver {
  readonly lane: number
  /** Bytes of the visitor. */
  readonly request: Uint8Array<ArrayBuffer> | undefined
  /** They are a request that the stream got already, as the lane forwarded it. */
  readonly isAsked: boolean
  /** Too many requests were under way at once. */
  readonly isCrowded: boolean
  /** Only a part of it fitted: the stream is good for nothing any more. */
  readonly isTorn: boolean
  /** Bytes of the stream. */
  readonly answer: Uint8Array<ArrayBuffer> | undefined
  /** Bytes for the visitor, who has the beginning of the answer: its request is served otherwise. */
  readonly unsent: Uint8Array<ArrayBuffer> | undefined
  /** The side that broke: its error was told here, and will not be told again. */
  readonly failed: LaneSide | undefined
}

export type LaneSide = 'visitor' | 'to' | 'from'

/** What all lanes of a thread use in turn. */
export class LaneTools {
  readonly kernel: Kernel
  readonly board: LaneBoard
  readonly answer: Room
  /** What is about to be sent, either way. */
  readonly out: Room
  readonly answerHead: ResponseHead = new ResponseHead()
  readonly framer: BodyFramer = new BodyFramer()
  #underWay = 0
  #concurrency = 1

  constructor(kernel: Kernel, board: LaneBoard) {
    this.kernel = kernel
    this.board = board
    this.answer = kernel.room(ANSWER_BYTES)
    this.out = kernel.room(maxForwardedBytes(ANSWER_BYTES))
  }

  asked(): void {
    this.#concurrency += (++this.#underWay - this.#concurrency) * SHARE
  }

  answered(): void {
    this.#underWay--
  }

  get isCrowded(): boolean {
    return this.#concurrency > MAX_CONCURRENCY
  }

  /** All lanes are over. */
  clear(): void {
    this.#concurrency = 1
  }
}

export class Lane {
  readonly order: LaneOrder
  readonly #tools: LaneTools
  readonly #request: Room
  readonly #head: RequestHead = new RequestHead()
  #requestBytes = 0
  #isAsked = false
  /** The visitor sent something while its last request was not answered yet: it stays in the kernel until then. */
  #isVisitorReady = false
  /** The visitor sends no more than what is there already. */
  #isVisitorLeaving = false
  /** For the thread: exchanges at its last look. */
  requestsAtSweep = -1
  requests = 0
  /** What is left to tell, once it is over. */
  over: LaneOver | undefined

  constructor(order: LaneOrder, tools: LaneTools) {
    this.order = order
    this.#tools = tools
    this.#request = tools.kernel.room(REQUEST_BYTES)
  }

  // ── What the thread calls; after each, the lane may be over ────────────────────────────────────────────────

  visitorChanged(isLast: boolean): void {
    this.#isVisitorReady = true
    this.#isVisitorLeaving ||= isLast
    if (!this.#isAsked) this.#takeRequest()
  }

  streamChanged(): void {
    this.#takeAnswer()
    if (this.over === undefined && !this.#isAsked && this.#isVisitorReady) this.#takeRequest()
  }

  /** Ends it where it is. */
  finish(failed?: LaneSide): void {
    this.#end({ failed })
  }

  // ── One exchange ───────────────────────────────────────────────────────────────────────────────────────────

  #takeRequest(): void {
    const { kernel, out, board } = this.#tools
    const { slot, visitor, to, terms } = this.order
    this.#isVisitorReady = false
    const count = kernel.receive(visitor, this.#request)
    if (count === WOULD_BLOCK) return this.#isVisitorLeaving ? this.finish() : undefined
    if (count === 0) return this.finish()
    // After a reset the runtime reads as well, paused or not: nobody knows what lay between these bytes and the last.
    if (count < 0 || !kernel.isConnected(visitor)) return this.finish('visitor')
    this.#requestBytes = count
    const head = this.#head
    const end = parseRequestHead(head, this.#request.bytes, 0, count, terms.limits)
    const isEasy = end === count && isEasyRequest(head) && head.hostWithPort === terms.hostWithPort
    if (!isEasy || Atomics.load(terms.era, 0) !== terms.since) return this.finish()
    const length = forwardRequestHead(head, terms.hop, out.bytes, 0)
    this.#isAsked = true
    board.sends(slot, length)
    const sent = kernel.send(to, out, length)
    this.#tools.asked()
    if (sent === length) return
    board.sends(slot, Math.max(sent, 0) - length)
    if (sent > 0) this.#end({ isTorn: true })
    else {
      this.#setAnswered()
      this.finish(sent === WOULD_BLOCK ? undefined : 'to')
    }
  }

  #takeAnswer(): void {
    const { kernel, answer, answerHead, framer, out, board } = this.#tools
    const { slot, visitor, from, terms } = this.order
    const count = kernel.receive(from, answer)
    if (count === WOULD_BLOCK) return
    // Links do not end in good order: whoever closes one resets it.
    if (count <= 0 || !kernel.isConnected(from)) return this.finish('from')
    board.received(slot, count)
    const { bytes } = answer
    const headEnd = this.#isAsked
      ? parseResponseHead(answerHead, bytes, 0, count, terms.limits, this.#head.method)
      : -1
    if (headEnd <= 0 || !isEasyAnswer(answerHead)) return this.#end({ answerBytes: count })
    framer.begin(answerHead.body, answerHead.contentLength)
    const isWhole = framer.feed(bytes, headEnd, count) === count && framer.complete
    if (!isWhole) return this.#end({ answerBytes: count })
    const bodyAt = forwardResponseHead(answerHead, STAY_OPEN, out.bytes, 0)
    const length = bodyAt + count - headEnd
    copyBytes(bytes, headEnd, count, out.bytes, bodyAt)
    // First: who has the answer finds it counted.
    board.served(slot, this.#requestBytes, length)
    this.requests++
    const sent = kernel.send(visitor, out, length)
    if (sent < 0 && sent !== WOULD_BLOCK) return this.finish('visitor')
    this.#setAnswered()
    this.#requestBytes = 0
    if (sent !== length) this.#end({ unsentFrom: Math.max(sent, 0), unsentTo: length })
    else if (this.#isVisitorLeaving && !this.#isVisitorReady) this.finish()
  }

  #setAnswered(): void {
    this.#isAsked = false
    this.#tools.answered()
  }

  #end(end: {
    readonly failed?: LaneSide | undefined
    readonly isTorn?: boolean
    readonly answerBytes?: number
    readonly unsentFrom?: number
    readonly unsentTo?: number
  }): void {
    const { answer, out, answerHead } = this.#tools
    const { failed, isTorn = false, answerBytes = 0, unsentFrom = 0, unsentTo = 0 } = end
    // One that is cut in the middle must not be gone on with by the next lane.
    answerHead.fields.isPartial = false
    if (this.#isAsked) this.#tools.answered()
    this.over = {
      lane: this.order.slot,
      request: copyUnlessEmpty(this.#request.bytes, 0, this.#requestBytes),
      isAsked: this.#isAsked,
      isTorn,
      isCrowded: this.#tools.isCrowded,
      answer: copyUnlessEmpty(answer.bytes, 0, answerBytes),
      unsent: copyUnlessEmpty(out.bytes, unsentFrom, unsentTo),
      failed,
    }
  }
}

function isEasyRequest(head: RequestHead): boolean {
  return (
    head.method === 'GET' &&
    head.body === 'none' &&
    head.minorVersion === 1 &&
    head.keepAlive &&
    head.upgrade === '' &&
    !head.expectsContinue &&
    head.pathStart === head.targetStart
  )
}

function isEasyAnswer({ status, keepAlive, body }: ResponseHead): boolean {
  return status >= 200 && keepAlive && body !== 'close'
}

function copyUnlessEmpty(bytes: Uint8Array, start: number, end: number): Uint8Array<ArrayBuffer> | undefined {
  return end > start ? copyOf(bytes, start, end) : undefined
}
