// One virtual byte connection in a session: credit both ways, half-close, and failures that are distinct from ends.

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
  /** Called with bytes of a lent stream that arrived on the other route. */
  broughtElsewhere(stream: Stream, bytes: Uint8Array): void
  /** Ends a loan: handles the frames that waited. */
  giveBack(stream: Stream, isTorn: boolean): void
}

/**
 * A stream. The other side's credit limits sending: bytes without credit are queued, at most one piece per `write`
 * that returned `true` before, because a caller stops at `false`.
 */
export class Stream implements ByteStream, LendableStream {
  readonly id: number
  readonly tunnel: number
  handler: StreamHandler
  /** The number of bytes given to `write`, or moved by a splice. */
  #writtenBytes = 0
  /** The number of the other side's bytes that were passed on here, except for those in a splice. */
  #consumedBytes = 0
  /** Whether each side has ended its direction. Only session and stream set it. */
  hasEnded = false
  peerEnded = false
  isClosed = false

  // Sending. Only the session, which moves the bytes, uses these.
  /** The number of bytes that may be sent now. */
  credit: number = INITIAL_CREDIT_BYTES
  readonly queue: Uint8Array[] = []
  /** The number of bytes of `queue[0]` that were sent. */
  queueOffset = 0
  /** The number of bytes sent since the other side last sent any. Many mean a large transfer. */
  runBytes = 0
  /** The link that carries this side's bytes in place of frames. */
  sendingLink: Link | undefined
  /** The splice that moves this side's bytes to the link. */
  #outgoing: Splice | undefined

  // Receiving.
  /** The number of bytes that the other side may still send. */
  allowance: number = INITIAL_CREDIT_BYTES
  /** The size up to which credit refills the allowance. Grows with bandwidth × delay. */
  window: number = INITIAL_CREDIT_BYTES
  /** The number of bytes passed to the handler. */
  receivedBytes = 0
  /** The number of consumed bytes for which no credit was given yet. */
  unacknowledged = 0
  lastCreditAt = 0
  /** The link that carries the other side's bytes, until the last one arrived. */
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

  /** Moves this side's bytes to a link of their own, although they come in small pieces, if one is free. */
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
    // On a link, TCP is the flow control, and no credit is used.
    if (this.receivingLink !== undefined) return this.receivingLink.consumed(this)
    this.unacknowledged += count
    // Credit is given for half a window at a time: few CREDIT frames, and the sender still never runs out.
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

  /** Called by session and link when bytes of the other side arrived. */
  heard(count: number): void {
    this.receivedBytes += count
    this.runBytes = 0
    if (this.#outgoing?.isPrompt === false) this.#outgoing.stop()
  }

  /** Called by the link. Moves bytes from its socket to the handler's destination. */
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

  /** The number of bytes given to `write` that are in no frame yet. */
  get queuedBytes(): number {
    let queued = 0
    for (const piece of this.queue) queued += piece.length
    return queued - this.queueOffset
  }
}
