// A copy of a request for one client: the visitor's side of an exchange whose response may not reach the visitor.

import { copyOf } from '../../bytes.ts'
import type { ErrorCode } from '../../errors.ts'
import { latin1 } from '../../http/characters.ts'
import type { Hop } from '../../http/forward.ts'
import type { RequestHead } from '../../http/head.ts'
import type { CopyEnd } from '../../server/contracts/layer.ts'
import type { PeerNote } from '../../server/contracts/peer-note.ts'
import type { Exchange, Rewrite, Upstream, Visit } from '../../server/contracts/upstream.ts'
import type { Recipient } from './copying.ts'

/** The number of dropped bytes of a response that does not count, after which an app that sends without end is cut. */
const MAX_DROPPED_BYTES = 1_048_576
export interface CopyListener {
  answered(copy: Copy): void
  /** Called when the copy is not in progress any more. */
  ended(): void
}

export class Copy implements Visit {
  readonly recipient: Recipient
  readonly from: PeerNote = { isCopy: true }
  readonly head: RequestHead
  readonly answerLines: Uint8Array | undefined
  readonly hstsLine: Uint8Array | undefined
  readonly keepsAlive: boolean
  readonly originTimeoutMs: number | undefined
  readonly isCertified: boolean
  /** Whether it goes to the client whose response counts. For another server this is known with its response. */
  isNamed: boolean
  /** The outcome. `answered`: the final head of the response has arrived. */
  outcome: 'pending' | 'answered' | 'not taken' | 'failed' = 'pending'
  status = 0
  code: ErrorCode | undefined
  readonly #listener: CopyListener
  readonly #end: CopyEnd
  readonly #seen: Hop
  #visitor: Visit | undefined
  #isDropped = false
  readonly #kept = new CopyAnswer()
  #responseBytes = 0
  /** Whether the app waits until more of its response is needed. */
  #isBackedUp = false
  #isOver = false
  #keepAlive = false
  #exchange: Exchange | undefined
  readonly #sender: PiecesSender
  /** Whether the app's side is calling `write`, whose result says whether to wait. */
  #isWriting = false

  /** Makes a copy. `pieces`: those of the request's body. */
  constructor(
    recipient: Recipient,
    head: RequestHead,
    pieces: readonly Uint8Array[],
    visitor: Visit,
    listener: CopyListener,
    isNamed: boolean,
    isForServer: boolean,
  ) {
    this.recipient = recipient
    this.isNamed = isNamed
    this.head = head
    this.originTimeoutMs = visitor.originTimeoutMs
    const { answerLines } = visitor
    this.answerLines = isForServer
      ? Buffer.concat([
          answerLines ?? new Uint8Array(),
          Buffer.from(`${COUNTS_HEADER}: ${isNamed ? 1 : 0}\r\n`),
        ])
      : answerLines
    this.hstsLine = visitor.hstsLine
    this.keepsAlive = visitor.keepsAlive
    this.isCertified = visitor.isCertified === true
    this.#seen = visitor.hop(undefined)
    this.#listener = listener
    this.#sender = new PiecesSender(pieces)
    this.#end = recipient.began()
  }

  begin(upstream: Upstream): void {
    const exchange = upstream.begin(this)
    if (this.#isOver) return
    this.#exchange = exchange
    this.#sender.start(exchange)
  }

  /** Sends this response to the visitor: the part so far, and then the rest unchanged. */
  answerTo(visitor: Visit): void {
    this.#visitor = visitor
    visitor.answered(this.status)
    let isTaking = true
    for (const piece of this.#kept.take()) isTaking = visitor.write(piece)
    if (this.#isOver) visitor.done(this.#keepAlive)
    else if (this.#isWriting) this.#isBackedUp = !isTaking
    else if (isTaking) this.drained()
  }

  drop(): void {
    this.#visitor = undefined
    this.#isDropped = true
    this.#kept.take()
    this.drained()
  }

  drained(): void {
    if (!this.#isBackedUp) return
    this.#isBackedUp = false
    this.#exchange?.drained()
  }

  // ── Visit ──────────────────────────────────────────────────────────────────────────────────────────────────

  hop(rewrite: Rewrite | undefined): Hop {
    const { address, proto, trusted } = this.#seen
    return { address, proto, trusted, hostHeader: rewrite?.host ?? '' }
  }

  write(bytes: Uint8Array, start = 0, end: number = bytes.length): boolean {
    // Interim responses belong to one app, so the visitor gets none.
    if (this.#isOver || this.status === 0) return true
    this.#responseBytes += end - start
    if (this.#visitor !== undefined) {
      this.#isBackedUp = !this.#visitor.write(bytes, start, end)
      return !this.#isBackedUp
    }
    if (this.#isDropped) return this.#passOver()
    this.#kept.keep(bytes, start, end)
    if (this.outcome === 'pending') {
      this.#isWriting = true
      this.#judge()
      this.#isWriting = false
      if (this.#visitor !== undefined) return !this.#isBackedUp
      if (this.#isDropped) return true
    }
    this.#isBackedUp = this.#kept.isFull
    return !this.#isBackedUp
  }

  #passOver(): boolean {
    if (this.#responseBytes <= MAX_DROPPED_BYTES || this.#exchange === undefined) return true
    const exchange = this.#exchange
    this.#over(undefined)
    exchange.abandoned()
    return true
  }

  #judge(): void {
    if (this.recipient.isServer === true) this.isNamed = this.#kept.takeCounts() ?? this.isNamed
    const isNotTaken = this.status === 404 && this.#kept.isNotTaken
    this.outcome = isNotTaken ? 'not taken' : 'answered'
    this.#listener.answered(this)
  }

  answered(status: number): void {
    this.status = status
  }

  /** Does nothing, because the request asks for no other protocol. */
  switched(): void {
    this.fail('ORIGIN_INVALID')
  }

  endAnswer(): void {}

  done(keepAlive: boolean): void {
    if (this.#isOver) return
    this.#keepAlive = keepAlive
    const visitor = this.#visitor
    this.#over(undefined)
    visitor?.done(keepAlive)
  }

  fail(code: ErrorCode): void {
    if (this.#isOver) return
    const visitor = this.#visitor
    this.outcome = 'failed'
    this.code = code
    this.#over(code)
    if (visitor !== undefined) visitor.fail(code)
    else this.#listener.answered(this)
  }

  pause(): void {
    this.#sender.pause()
  }

  resume(): void {
    this.#sender.resume()
  }

  #over(code: ErrorCode | undefined): void {
    this.#isOver = true
    this.#exchange = undefined
    this.#sender.stop()
    this.#end(this.status, this.#responseBytes, code)
    this.#listener.ended()
  }
}

/** The header in the response to another server's copy: 1 if it is that of the client whose response counts, otherwise 0. */
export const COUNTS_HEADER = 'localtunnels-counts'
/** The number of stored bytes of a response that may still count. With more, the app waits. */
const MAX_KEPT_BYTES = 65_536
/** A pattern for the response of a client whose filter refused the request. */
const FILTERED_OUT = /^x-localtunnels-error:[ \t]*FILTERED_OUT[ \t]*$/im
/** A pattern for another server's mark. Its own line is the last one, because an app may send others. */
const COUNTS = new RegExp(`^${COUNTS_HEADER}: ([01])\r\n(?![^]*^${COUNTS_HEADER}:)`, 'im')

export class CopyAnswer {
  #pieces: Uint8Array[] = []
  #bytes = 0

  get isFull(): boolean {
    return this.#bytes >= MAX_KEPT_BYTES
  }

  keep(bytes: Uint8Array, start: number, end: number): void {
    this.#pieces.push(copyOf(bytes, start, end))
    this.#bytes += end - start
  }

  /** Returns the stored bytes, and forgets them. */
  take(): Uint8Array[] {
    const pieces = this.#pieces
    this.#pieces = []
    this.#bytes = 0
    return pieces
  }

  /** Whether the client's filter refused the request. */
  get isNotTaken(): boolean {
    const text = this.#pieces.map(piece => latin1(piece, 0, piece.length)).join('')
    return FILTERED_OUT.test(text.split('\r\n\r\n', 1)[0] ?? '')
  }

  /** Removes the mark of another server, and returns whether this is the named client's response. `undefined` without a mark. */
  takeCounts(): boolean | undefined {
    const bytes = Buffer.concat(this.#pieces)
    const headEnd = bytes.indexOf('\r\n\r\n') + 2
    const line = COUNTS.exec(latin1(bytes, 0, headEnd))
    if (line === null) return undefined
    this.#pieces = [bytes.subarray(0, line.index), bytes.subarray(line.index + line[0].length)]
    return line[1] === '1'
  }
}

export class PiecesSender {
  #exchange: Exchange | undefined
  #pieces: readonly Uint8Array[]
  #next = 0
  #isPaused = false
  #isSending = false

  constructor(pieces: readonly Uint8Array[]) {
    this.#pieces = pieces
  }

  start(exchange: Exchange): void {
    this.#exchange = exchange
    this.#send()
  }

  stop(): void {
    this.#exchange = undefined
    this.#pieces = []
  }

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    this.#isPaused = false
    this.#send()
  }

  #send(): void {
    // An exchange may pause, resume and end while it is given a piece.
    if (this.#isSending) return
    this.#isSending = true
    while (!this.#isPaused && this.#exchange !== undefined && this.#next < this.#pieces.length) {
      const piece = this.#pieces[this.#next++]
      if (piece !== undefined) this.#exchange.body(piece)
    }
    this.#isSending = false
    if (this.#exchange === undefined || this.#next < this.#pieces.length) return
    const exchange = this.#exchange
    this.stop()
    exchange.bodyEnded()
  }
}
