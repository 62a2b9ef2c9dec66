// A copy of a request for one client: the visitor's side of an exchange whose answer may or may not reach the visitor.

import type { ErrorCode } from '../../errors.ts'
import { latin1 } from '../../http/characters.ts'
import type { Hop } from '../../http/forward.ts'
import type { RequestHead } from '../../http/head.ts'
import { COUNTS_HEADER, type PeerNote } from '../cluster/peer-wire.ts'
import type { Exchange, Rewrite, Upstream, Visit } from '../upstream.ts'
import type { CopyEnd, Recipient } from './copying.ts'

/** Of an answer that may still count; then the app waits. */
const MAX_KEPT_BYTES = 65_536
/** Of an answer that does not count: an app that sends without end is cut. */
const MAX_DROPPED_BYTES = 1_048_576
/** How a client says that its filter does not take the request. */
const NOT_TAKEN = /^x-localtunnels-error:[ \t]*NOT_TAKEN[ \t]*$/im

/** How another server says whose its answer is. Its own line is the last one: an app may send others. */
const COUNTS = new RegExp(`^${COUNTS_HEADER}: ([01])\r\n(?![^]*^${COUNTS_HEADER}:)`, 'im')

export interface CopyListener {
  /** Its outcome is there. */
  answered(copy: Copy): void
  /** Nothing of it is under way any more. */
  ended(): void
}

export class Copy implements Visit {
  readonly recipient: Recipient
  readonly peerNote: PeerNote = { isCopy: true }
  readonly head: RequestHead
  readonly answerLines: Uint8Array | undefined
  readonly hstsLine: Uint8Array | undefined
  readonly keepsAlive: boolean
  readonly isCertified: boolean
  /** It is the client whose answer counts; of another server known with its answer. */
  isNamed: boolean
  /** `answered`: its final head is there. */
  outcome: 'pending' | 'answered' | 'not taken' | 'failed' = 'pending'
  status = 0
  /** Why it failed. */
  code: ErrorCode | undefined
  readonly #listener: CopyListener
  readonly #end: CopyEnd
  readonly #seen: Hop
  /** Who gets the answer. */
  #visitor: Visit | undefined
  #isDropped = false
  #kept: Uint8Array[] = []
  #keptBytes = 0
  #answerBytes = 0
  /** The app waits until more of its answer is wanted. */
  #isBackedUp = false
  #isOver = false
  #keepAlive = false
  #exchange: Exchange | undefined
  #pieces: readonly Uint8Array[] = []
  #next = 0
  #isPaused = false
  #isSending = false
  #isSent = false
  /** The app's side calls: it hears by what `write` returns whether to wait. */
  #isWriting = false

  constructor(
    recipient: Recipient,
    head: RequestHead,
    visitor: Visit,
    listener: CopyListener,
    isNamed: boolean,
    isForServer: boolean,
  ) {
    this.recipient = recipient
    this.isNamed = isNamed
    this.head = head
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
    this.#end = recipient.began()
  }

  begin(upstream: Upstream, pieces: readonly Uint8Array[]): void {
    this.#pieces = pieces
    const exchange = upstream.begin(this)
    if (this.#isOver) return
    this.#exchange = exchange
    this.#send()
  }

  /** The visitor gets this answer: what came of it so far, and the rest as it comes. */
  answerTo(visitor: Visit): void {
    this.#visitor = visitor
    const kept = this.#kept
    this.#kept = []
    visitor.answered(this.status)
    let isTaking = true
    for (const piece of kept) isTaking = visitor.write(piece)
    if (this.#isOver) visitor.done(this.#keepAlive)
    else if (this.#isWriting) this.#isBackedUp = !isTaking
    else if (isTaking) this.drained()
  }

  /** Its answer is not wanted. */
  drop(): void {
    this.#visitor = undefined
    this.#isDropped = true
    this.#answerBytes += this.#keptBytes
    this.#keptBytes = 0
    this.#kept = []
    this.drained()
  }

  drained(): void {
    if (!this.#isBackedUp) return
    this.#isBackedUp = false
    this.#exchange?.drained()
  }

  /** As much of the request as the client takes. */
  #send(): void {
    const exchange = this.#exchange
    if (exchange === undefined || this.#isSending || this.#isSent) return
    this.#isSending = true
    while (!this.#isPaused && !this.#isOver && this.#next < this.#pieces.length) {
      const piece = this.#pieces[this.#next++]
      if (piece !== undefined) exchange.body(piece)
    }
    this.#isSending = false
    if (this.#isOver || this.#next < this.#pieces.length) return
    this.#isSent = true
    exchange.bodyEnded()
  }

  // ── Visit ──────────────────────────────────────────────────────────────────────────────────────────────────

  hop(rewrite: Rewrite | undefined): Hop {
    const { address, proto, trusted } = this.#seen
    return { address, proto, trusted, hostHeader: rewrite?.host ?? '', origin: rewrite?.origin ?? '' }
  }

  write(bytes: Uint8Array, isScratch = false, start = 0, end: number = bytes.length): boolean {
    // Interim answers are those of one app: the visitor gets none of them.
    if (this.#isOver || this.status === 0) return true
    this.#answerBytes += end - start
    if (this.#visitor !== undefined) {
      this.#isBackedUp = !this.#visitor.write(bytes, isScratch, start, end)
      return !this.#isBackedUp
    }
    if (this.#isDropped) return this.#passOver()
    this.#kept.push(bytes.slice(start, end))
    this.#keptBytes += end - start
    if (this.outcome === 'pending') {
      this.#isWriting = true
      this.#judge()
      this.#isWriting = false
      if (this.#visitor !== undefined) return !this.#isBackedUp
      if (this.#isDropped) return true
    }
    this.#isBackedUp = this.#keptBytes >= MAX_KEPT_BYTES
    return !this.#isBackedUp
  }

  #passOver(): boolean {
    if (this.#answerBytes <= MAX_DROPPED_BYTES || this.#exchange === undefined) return true
    const exchange = this.#exchange
    this.#over(undefined)
    exchange.abandoned()
    return true
  }

  #judge(): void {
    if (this.recipient.isServer === true) this.#takeCounts()
    const text = this.#kept.map(piece => latin1(piece, 0, piece.length)).join('')
    const isTaken = this.status !== 404 || !NOT_TAKEN.test(text.split('\r\n\r\n', 1)[0] ?? '')
    this.outcome = isTaken ? 'answered' : 'not taken'
    this.#listener.answered(this)
  }

  /** Takes the line out that is for this server alone. */
  #takeCounts(): void {
    const bytes = Buffer.concat(this.#kept)
    const headEnd = bytes.indexOf('\r\n\r\n') + 2
    const line = COUNTS.exec(latin1(bytes, 0, headEnd))
    if (line === null) return
    this.isNamed = line[1] === '1'
    this.#kept = [bytes.subarray(0, line.index), bytes.subarray(line.index + line[0].length)]
  }

  answered(status: number): void {
    this.status = status
  }

  /** The head asks for no other protocol. */
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
    this.#isPaused = true
  }

  resume(): void {
    this.#isPaused = false
    this.#send()
  }

  #over(code: ErrorCode | undefined): void {
    this.#isOver = true
    this.#exchange = undefined
    this.#pieces = []
    this.#end(this.status, this.#answerBytes, code)
    this.#listener.ended()
  }
}
