// A connection in addition to the carrier. In each direction it carries the bytes of one stream at a time, without
// frames.
//
// Large transfers use it: nothing is copied into batches, nothing else waits behind them, and TCP is the flow
// control. The sender decides: a LINK frame names the stream whose bytes follow, and an UNLINK frame says where they
// end. Link and carrier have no common order, so a direction carries the next stream only after LINK_FREE. All bytes
// before it belong to the earlier stream.
//
//   sender   ── LINK ──▶ bytes … ── UNLINK ──▶          (direction still in use)          ◀── LINK_FREE

import { copyOf, SendQueue } from '../bytes.ts'
import type { Socket, SocketHandler, Splice, SpliceDone } from '../socket.ts'
import type { Stream } from './stream.ts'

/** The number of bytes passed to a stream but not consumed at which reading stops: about one kernel buffer. */
const MAX_UNCONSUMED_BYTES = 524_288

/**
 * The silence in milliseconds before the system probes the far side. A link has no heartbeat of its own, and its path
 * may break while the carrier's does not.
 */
const KEEP_ALIVE_IDLE_MS = 10_000

/** The stream that the far side's direction carries. */
interface Binding {
  /** The stream. `undefined` if it is gone; then its bytes are dropped. */
  readonly stream: Stream | undefined
  readonly streamId: number
  /** The position on the link after the stream's last byte. Unknown until UNLINK. */
  to: number
}

export interface LinkOwner {
  /** Called with bytes of a stream. */
  linkReceived(stream: Stream, bytes: Uint8Array): void
  /** Called when all bytes of the stream have arrived: its END can be handled, and the far side's direction is free. */
  linkFinished(link: Link, stream: Stream | undefined): void
  linkClosed(link: Link, streams: readonly Stream[]): void
  /** Called when a stream's handler threw. The error must not reach the event loop. */
  linkFailed(error: unknown): void
  /** Called when the far side sent more bytes than it announced. */
  linkBroken(): void
}

export class Link {
  readonly number: number
  readonly socketHandler: SocketHandler
  sender: Stream | undefined
  /** The number of bytes given to this side's direction, sent or waiting. */
  sentBytes = 0
  readonly #socket: Socket
  readonly #owner: LinkOwner
  readonly #over: (() => void) | undefined
  readonly #unsent: SendQueue = new SendQueue()
  #receivedBytes = 0
  #binding: Binding | undefined
  /** Whether a stream has left this side's direction but its last bytes may be in transit. */
  #isSettling = false
  /** Whether this side puts no more streams on the link. The far side may, until it learns that this side wants to close it. */
  isRetired = false
  /** Bytes that arrived before the LINK frame that names their stream. Until then, reading is paused. */
  #early: Uint8Array[] = []
  #isPaused = false
  #isClosed = false
  /** Whether the link is lent for good, and carries no streams any more. */
  #isLent = false
  /** The splice that moves bytes of the sender here, and the callbacks for its end. */
  #outgoing: Splice | undefined
  #left: (() => void) | undefined
  /** The splice that moves bytes from the link to the stream's handler. */
  #incoming: Splice | undefined

  /** Makes a link. `over` is called once, when it closes. */
  constructor(number: number, socket: Socket, owner: LinkOwner, over?: () => void) {
    this.number = number
    this.#socket = socket
    this.#owner = owner
    this.#over = over
    socket.keepAlive?.(KEEP_ALIVE_IDLE_MS)
    const guarded = (task: () => void) => {
      try {
        task()
      } catch (error) {
        owner.linkFailed(error)
      }
    }
    this.socketHandler = {
      received: bytes => guarded(() => this.#received(bytes)),
      drained: () => guarded(() => this.#drained()),
      spliceable: () => guarded(() => this.#spliceable()),
      ended: () => guarded(() => this.close()),
      closed: () => guarded(() => this.close()),
    }
  }

  /** Whether this side's direction may carry a stream. */
  get isFree(): boolean {
    return this.sender === undefined && !this.#isSettling && !this.isRetired && !this.#isLent
  }

  /** Whether neither direction is in use. */
  get isIdle(): boolean {
    const isFree = this.sender === undefined && !this.#isSettling && !this.#isLent
    return isFree && this.#binding === undefined
  }

  /** Whether the far side has said where the stream's bytes end. */
  get isEnding(): boolean {
    return this.#binding !== undefined && this.#binding.to !== Number.POSITIVE_INFINITY
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** The number of bytes so far, if more of an ended stream must arrive and nothing here delays them; otherwise -1. */
  get awaitedFrom(): number {
    return this.isEnding && !this.#isPaused ? this.#receivedBytes : -1
  }

  get unsentBytes(): number {
    return this.#unsent.length
  }

  /** Closes the link once it is not in use, because the far side has retired it. */
  closeWhenIdle(): void {
    this.isRetired = true
    if (this.isIdle) this.close()
  }

  /** Gives the connection of an unused link to `take`, for good. If that returns `undefined`, it stays a link. */
  lend<Taken>(take: (socket: Socket) => Taken | undefined): Taken | undefined {
    if (this.#isClosed || this.#receivedBytes > 0 || this.#early.length > 0) return undefined
    const taken = take(this.#socket)
    this.#isLent = taken !== undefined
    return taken
  }

  /** Sends bytes[start, end) of `sender`. After `false`, wait for its `writable`. */
  send(bytes: Uint8Array, start: number, end: number): boolean {
    const count = end - start
    this.sentBytes += count
    return this.#unsent.send(this.#socket, bytes, start, end) === count
  }

  /** Sends up to `limitBytes` from a socket, after earlier bytes. Not possible while bytes wait here. */
  sendFrom(from: Pick<Socket, 'spliceTo'>, limitBytes: number, done: SpliceDone): Splice | undefined {
    if (this.#isClosed || !this.#unsent.isEmpty || this.#outgoing !== undefined) return undefined
    this.#outgoing = from.spliceTo?.(this.#socket, limitBytes, movedBytes => {
      this.#outgoing = undefined
      this.sentBytes += movedBytes
      const left = this.#left
      this.#left = undefined
      left?.()
      done(movedBytes)
    })
    return this.#outgoing
  }

  /**
   * Called when the sender sends no more. Waiting bytes are still sent, unless the stream was reset. `left` is called
   * when the number of its bytes is known: at once, unless a splice moves them.
   */
  leave(stream: Stream, left: () => void): void {
    this.sender = undefined
    this.#isSettling = true
    if (this.#outgoing !== undefined) {
      this.#left = left
      return this.#outgoing.stop()
    }
    if (!stream.hasEnded) {
      this.sentBytes -= this.#unsent.length
      this.#unsent.clear()
    }
    left()
  }

  /** Called when the far side has all bytes of the stream that left. */
  freed(): boolean {
    if (!this.#isSettling) return false
    this.#isSettling = false
    if (this.isRetired && this.isIdle) this.close()
    return true
  }

  /** Called when the far side's bytes from `from` on belong to a stream. */
  bind(stream: Stream | undefined, streamId: number, from: number): boolean {
    if (this.#binding !== undefined || this.#isLent || from !== this.#receivedBytes) return false
    this.#binding = { stream, streamId, to: Number.POSITIVE_INFINITY }
    const early = this.#early
    this.#early = []
    if (early.length > 0) this.#resume()
    for (const bytes of early) this.#received(bytes)
    return true
  }

  /** Called when the stream's bytes end at `to`. */
  unbind(streamId: number, to: number): boolean {
    const binding = this.#binding
    if (binding === undefined || binding.streamId !== streamId || this.isEnding) return false
    if (to < this.#receivedBytes) return false
    binding.to = to
    // The number of missing bytes is known only after the splice has stopped.
    if (this.#incoming !== undefined) this.#incoming.stop()
    else if (to === this.#receivedBytes) this.#finish(binding)
    return true
  }

  /** Allows a splice to move bytes, from the next turn on. */
  requestSplice(): void {
    if (!this.#isPaused) this.#socket.requestSplice?.()
  }

  /** Called when the stream consumed bytes: reading may continue. */
  consumed(stream: Stream): void {
    if (this.#isPaused && this.#binding?.stream === stream && unconsumed(stream) < MAX_UNCONSUMED_BYTES / 2)
      this.#resume()
  }

  /** Called when the stream is gone: its further bytes are dropped, so that they delay nothing. */
  forget(stream: Stream): void {
    if (this.#binding?.stream !== stream) return
    this.#incoming?.stop()
    this.#resume()
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#unsent.clear()
    this.#early = []
    this.#socket.terminate()
    this.#over?.()
    const streams = [...new Set([this.#binding?.stream, this.sender])].filter(one => one !== undefined)
    this.sender = undefined
    this.#binding = undefined
    this.#owner.linkClosed(this, streams)
  }

  #received(bytes: Uint8Array): void {
    if (this.#isClosed) return
    const binding = this.#binding
    if (binding === undefined) {
      this.#early.push(copyOf(bytes))
      return this.#pause()
    }
    const { stream, to } = binding
    const count = Math.min(bytes.length, to - this.#receivedBytes)
    this.#receivedBytes += count
    if (stream?.isClosed === false) {
      this.#owner.linkReceived(stream, count === bytes.length ? bytes : bytes.subarray(0, count))
      if (!stream.isClosed && unconsumed(stream) > MAX_UNCONSUMED_BYTES) this.#pause()
    }
    // The handler may have closed the session during the call.
    if (this.#isClosed) return
    if (this.#receivedBytes === to) this.#finish(binding)
    if (count < bytes.length) this.#received(bytes.subarray(count))
  }

  #finish({ stream }: Binding): void {
    this.#binding = undefined
    // If the slow stream was the reason for the pause, reading continues.
    this.#resume()
    this.#owner.linkFinished(this, stream)
    if (this.isRetired && this.isIdle) this.close()
  }

  /** Allows another thread to move the stream's bytes, once all earlier ones were passed on. */
  #spliceable(): void {
    const binding = this.#binding
    const stream = binding?.stream
    if (binding === undefined || stream === undefined || stream.isClosed) return
    if (this.#isClosed || this.#isPaused || unconsumed(stream) > 0) return
    this.#incoming = stream.receiveFrom(this.#socket, binding.to - this.#receivedBytes, movedBytes => {
      this.#incoming = undefined
      this.#receivedBytes += movedBytes
      if (this.#isClosed || this.#binding !== binding) return
      if (this.#receivedBytes > binding.to) this.#owner.linkBroken()
      else if (this.#receivedBytes === binding.to) this.#finish(binding)
    })
  }

  #drained(): void {
    this.#unsent.flush(this.#socket)
    if (this.#unsent.isEmpty) this.sender?.handler.writable()
  }

  #pause(): void {
    if (this.#isPaused) return
    this.#isPaused = true
    this.#socket.pause()
  }

  #resume(): void {
    if (!this.#isPaused || this.#isClosed) return
    this.#isPaused = false
    this.#socket.resume()
  }
}

function unconsumed(stream: Stream): number {
  return stream.receivedBytes - stream.deliveredBytes
}
