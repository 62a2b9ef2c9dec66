// One virtual byte connection inside a session: credit both ways, half-close, failure kept apart from end.

import type { ErrorCode } from '../errors.ts'
import type { Socket, Splice, SpliceDone } from '../socket.ts'
import { INITIAL_CREDIT_BYTES } from '../wire/frame.ts'
import type { ByteStream, LendableStream, StreamHandler } from './byte-stream.ts'
import { Held } from './held.ts'
import type { Link } from './link.ts'

/** The operations of the session that a stream needs. */
export interface StreamOwner {
  sendData(stream: Stream, bytes: Uint8Array, start: number, end: number): boolean
  sendEnd(stream: Stream): void
  sendReset(stream: Stream, code: ErrorCode): void
  /** Fills the other side's credit up to the window again. */
  giveCredit(stream: Stream): void
  moveToLink(stream: Stream): void
  /** Bytes of a stream that is lent came another way. */
  broughtElsewhere(stream: Stream, bytes: Uint8Array): void
  /** No more come another way: what waited behind them arrives. */
  giveBack(stream: Stream, isTorn: boolean): void
}

/**
 * A stream. Sending is bounded by the other side's credit: what lacks it is queued, at most one piece per `write`
 * that returned `true` before, because a caller stops at `false`.
 */
export class Stream implements ByteStream, LendableStream {
  readonly id: number
  readonly tunnel: number
  handler: StreamHandler
  /** Bytes given to `write` or moved so far. */
  #writtenBytes = 0
  /** Bytes of the other side that were passed on here, but for those that are being moved. */
  #consumedBytes = 0
  /** Whether each side has ended its direction. Session and stream only. */
  hasEnded = false
  peerEnded = false
  isClosed = false

  // Sending. Package-private to the session, which moves the bytes.
  /** Bytes that may be sent now. */
  credit: number = INITIAL_CREDIT_BYTES
  readonly queue: Uint8Array[] = []
  /** Bytes of `queue[0]` already sent. */
  queueOffset = 0
  /** Bytes sent since the other side last sent any: a long run of them is bulk. */
  runBytes = 0
  /** The link on which this side's bytes travel instead of in frames. */
  sendingLink: Link | undefined
  /** The splice that moves this side's bytes to the link. */
  #outgoing: Splice | undefined

  // Receiving.
  /** Bytes the other side may still send. */
  allowance: number = INITIAL_CREDIT_BYTES
  /** The allowance that credit fills up to. Grows with bandwidth × delay. */
  window: number = INITIAL_CREDIT_BYTES
  /** Bytes handed to the handler so far. */
  receivedBytes = 0
  /** The consumed bytes for which no credit was given yet. */
  unacknowledged = 0
  lastCreditAt = 0
  /** The link of the other side's bytes, until the last of them came. */
  receivingLink: Link | undefined
  /** The splice that moves the other side's bytes from the link. */
  #incoming: Splice | undefined
  /** The count of an END that arrived before the last bytes on the link. */
  earlyEnd: number | undefined

  gone: (() => void) | undefined
  /** The frames that wait during a loan. */
  held: Held | undefined

  readonly #owner: StreamOwner

  constructor(owner: StreamOwner, id: number, tunnel: number, handler: StreamHandler) {
    this.#owner = owner
    this.id = id
    this.tunnel = tunnel
    this.handler = handler
  }

  write(bytes: Uint8Array, start = 0, end: number = bytes.length): boolean {
    if (this.isClosed || this.hasEnded) return true
    const count = end - start
    if (count === 0) return this.queue.length === 0
    if (this.#incoming?.isPrompt === false) this.#incoming.stop()
    this.#writtenBytes += count
    this.runBytes += count
    return this.#owner.sendData(this, bytes, start, end)
  }

  writeFrom(from: Pick<Socket, 'spliceTo'>, limitBytes: number, done: SpliceDone): Splice | undefined {
    if (this.isClosed || this.hasEnded || this.#outgoing !== undefined) return undefined
    this.#outgoing = this.sendingLink?.sendFrom(from, limitBytes, movedBytes => {
      this.#outgoing = undefined
      this.#writtenBytes += movedBytes
      done(movedBytes)
    })
    return this.#outgoing
  }

  /** Sends on a link of its own from now on, small as the pieces are, if there is one for it. */
  moveToLink(): void {
    if (!this.isClosed && !this.hasEnded && this.sendingLink === undefined) this.#owner.moveToLink(this)
  }

  requestSplice(): void {
    this.receivingLink?.requestSplice()
  }

  end(): void {
    if (this.isClosed || this.hasEnded) return
    this.hasEnded = true
    this.#owner.sendEnd(this)
  }

  reset(code: ErrorCode): void {
    if (!this.isClosed) this.#owner.sendReset(this, code)
  }

  giveUp(code: ErrorCode): void {
    const delivered = this.sentBytes - this.queuedBytes
    this.reset(code)
    this.handler.reset(code, delivered)
  }

  consumed(count: number): void {
    this.#consumedBytes += count
    if (this.isClosed || this.peerEnded) return
    // On a link TCP is the flow control, and credit is not used up.
    if (this.receivingLink !== undefined) return this.receivingLink.consumed(this)
    this.unacknowledged += count
    // Half a window at a time: few CREDIT frames, and the sender still never runs dry.
    if (this.unacknowledged * 2 >= this.window) this.#owner.giveCredit(this)
  }

  get sentBytes(): number {
    return this.#outgoing === undefined ? this.#writtenBytes : this.#writtenBytes + this.#outgoing.takenBytes
  }

  get deliveredBytes(): number {
    return this.#incoming === undefined
      ? this.#consumedBytes
      : this.#consumedBytes + this.#incoming.takenBytes
  }

  // ── Lent ───────────────────────────────────────────────────────────────────────────────────────────────────

  lend(): void {
    this.held ??= new Held()
  }

  moved(sentBytes: number, receivedBytes: number): void {
    this.#writtenBytes += sentBytes
    this.#consumedBytes += receivedBytes
    this.receivedBytes += receivedBytes
  }

  brought(bytes: Uint8Array): void {
    this.#owner.broughtElsewhere(this, bytes)
  }

  giveBack(isTorn: boolean): void {
    this.#owner.giveBack(this, isTorn)
  }

  /** Called by session and link when the other side has its turn. */
  heard(count: number): void {
    this.receivedBytes += count
    this.runBytes = 0
    if (this.#outgoing?.isPrompt === false) this.#outgoing.stop()
  }

  /** Moves bytes of the link's socket to where the handler wants them. Called by the link. */
  receiveFrom(from: Socket, limitBytes: number, done: SpliceDone): Splice | undefined {
    this.#incoming = this.handler.receivedFrom?.(from, limitBytes, movedBytes => {
      this.#incoming = undefined
      this.#consumedBytes += movedBytes
      this.receivedBytes += movedBytes
      done(movedBytes)
    })
    return this.#incoming
  }

  get lendable(): LendableStream {
    return this
  }

  get isBackedUp(): boolean {
    return this.queue.length > 0
  }

  get isAtRest(): boolean {
    const isOnLink = this.sendingLink !== undefined || this.receivingLink !== undefined
    return !this.isBackedUp && !isOnLink && !this.peerEnded && this.held === undefined
  }

  get waitingBytes(): number {
    return this.queuedBytes + (this.sendingLink?.unsentBytes ?? 0)
  }

  /** Bytes given to `write` that are on no frame yet. */
  get queuedBytes(): number {
    let queued = 0
    for (const piece of this.queue) queued += piece.length
    return queued - this.queueOffset
  }
}
