// A connection next to the carrier that carries the bytes of one stream at a time each way, without frames.
//
// Bulk goes this way: nothing is copied into batches, and nothing else waits behind it. TCP itself is the flow
// control. The sender decides: a LINK frame says which stream's bytes follow, an UNLINK frame where they end. Link and
// carrier overtake each other, so a half carries the next stream only after LINK_FREE: all that comes before it can
// belong to no other stream.
//
//   sender   ── LINK ──▶ bytes … ── UNLINK ──▶          (half still taken)          ◀── LINK_FREE

import { copyOf, SendQueue } from '../bytes.ts'
import type { Socket, SocketHandler, Splice, SpliceDone } from '../socket.ts'
import type { Stream } from './stream.ts'

/** Bytes handed to a stream that are not consumed yet before reading stops: about one kernel buffer. */
const MAX_UNCONSUMED_BYTES = 524_288

/**
 * The silence in milliseconds before the system probes the far side. A link has no heartbeat of its own, and the path that it
 * takes may break while the carrier's does not.
 */
const KEEP_ALIVE_IDLE_MS = 10_000

/** The stream whose bytes come on the far side's half. */
interface Binding {
  /** The stream. `undefined` if it was gone before; its bytes are dropped. */
  readonly stream: Stream | undefined
  readonly streamId: number
  /** The byte of the link behind the last one. Not known until UNLINK. */
  to: number
}

export interface LinkOwner {
  /** Bytes for a stream. */
  linkReceived(stream: Stream, bytes: Uint8Array): void
  /** All bytes of the stream have come: its END may be acted on, and the far side's half is free. */
  linkFinished(link: Link, stream: Stream | undefined): void
  linkClosed(link: Link, streams: readonly Stream[]): void
  /** A stream's handler threw. It must not reach the event loop. */
  linkFailed(error: unknown): void
  /** The far side sent more than it says. */
  linkBroken(): void
}

export class Link {
  readonly number: number
  readonly socketHandler: SocketHandler
  sender: Stream | undefined
  /** Bytes given to this side's half so far, sent or waiting. */
  sentBytes = 0
  readonly #socket: Socket
  readonly #owner: LinkOwner
  readonly #over: (() => void) | undefined
  readonly #unsent: SendQueue = new SendQueue()
  #receivedBytes = 0
  #binding: Binding | undefined
  /** A stream left this side's half, and its last bytes may still be in transit. */
  #isSettling = false
  /** Whether this side puts no more streams on it. The far side may, until it hears that this side wants to close the link. */
  isRetired = false
  /** Bytes that came before the LINK frame that says whose they are. Reading is paused in the meantime. */
  #early: Uint8Array[] = []
  #isPaused = false
  #isClosed = false
  /** Whether it is lent for good, and carries no streams any more. */
  #isLent = false
  /** The splice that moves bytes of the sender here, and the callbacks for its end. */
  #outgoing: Splice | undefined
  #left: (() => void) | undefined
  /** The splice that moves bytes from here to the stream's handler. */
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

  /** Whether this side's half may carry a stream. */
  get isFree(): boolean {
    return this.sender === undefined && !this.#isSettling && !this.isRetired && !this.#isLent
  }

  /** Whether it is unused in both directions. */
  get isIdle(): boolean {
    const isFree = this.sender === undefined && !this.#isSettling && !this.#isLent
    return isFree && this.#binding === undefined
  }

  /** The far side has said where the stream's bytes end. */
  get isEnding(): boolean {
    return this.#binding !== undefined && this.#binding.to !== Number.POSITIVE_INFINITY
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Bytes that came so far, while more of a stream that ended must come and nothing here holds them up; otherwise -1. */
  get awaitedFrom(): number {
    return this.isEnding && !this.#isPaused ? this.#receivedBytes : -1
  }

  get unsentBytes(): number {
    return this.#unsent.length
  }

  /** The far side has retired it: closes once this side has no use for it either. */
  closeWhenIdle(): void {
    this.isRetired = true
    if (this.isIdle) this.close()
  }

  /** Gives the connection of a link that has carried nothing to `take`, for good. `undefined`: it stays a link. */
  lend<Taken>(take: (socket: Socket) => Taken | undefined): Taken | undefined {
    if (this.#isClosed || this.#receivedBytes > 0 || this.#early.length > 0) return undefined
    const taken = take(this.#socket)
    this.#isLent = taken !== undefined
    return taken
  }

  /** Sends bytes[start, end) of `sender`. `false`: wait for its `writable`. */
  send(bytes: Uint8Array, start: number, end: number): boolean {
    const count = end - start
    this.sentBytes += count
    return this.#unsent.send(this.#socket, bytes, start, end) === count
  }

  /** Sends the bytes of a socket, up to `limitBytes`, after earlier ones; not while bytes wait here. */
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
   * The sender sends no more. Waiting bytes are still sent, unless it was reset. `left` is called once it is known how many
   * bytes there were: at once, unless they are being moved.
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

  /** The far side has all bytes of the stream that left. */
  freed(): boolean {
    if (!this.#isSettling) return false
    this.#isSettling = false
    if (this.isRetired && this.isIdle) this.close()
    return true
  }

  /** The far side's bytes from `from` on belong to a stream. */
  bind(stream: Stream | undefined, streamId: number, from: number): boolean {
    if (this.#binding !== undefined || this.#isLent || from !== this.#receivedBytes) return false
    this.#binding = { stream, streamId, to: Number.POSITIVE_INFINITY }
    const early = this.#early
    this.#early = []
    if (early.length > 0) this.#resume()
    for (const bytes of early) this.#received(bytes)
    return true
  }

  /** The stream's bytes end at `to`. */
  unbind(streamId: number, to: number): boolean {
    const binding = this.#binding
    if (binding === undefined || binding.streamId !== streamId || this.isEnding) return false
    if (to < this.#receivedBytes) return false
    binding.to = to
    // How many are missing shows when no more are moved.
    if (this.#incoming !== undefined) this.#incoming.stop()
    else if (to === this.#receivedBytes) this.#finish(binding)
    return true
  }

  /** Lets bytes be moved from the next turn on. */
  requestSplice(): void {
    if (!this.#isPaused) this.#socket.requestSplice?.()
  }

  /** The stream consumed bytes: possibly reading may go on. */
  consumed(stream: Stream): void {
    if (this.#isPaused && this.#binding?.stream === stream && unconsumed(stream) < MAX_UNCONSUMED_BYTES / 2)
      this.#resume()
  }

  /** The stream is gone: what still comes for it is dropped, so nothing may hold it up. */
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
    // The handler may have closed the session in the middle.
    if (this.#isClosed) return
    if (this.#receivedBytes === to) this.#finish(binding)
    if (count < bytes.length) this.#received(bytes.subarray(count))
  }

  #finish({ stream }: Binding): void {
    this.#binding = undefined
    // A stream that was too slow for it no longer is.
    this.#resume()
    this.#owner.linkFinished(this, stream)
    if (this.isRetired && this.isIdle) this.close()
  }

  /** The stream may have another thread move its bytes, once all that came before was passed on. */
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
