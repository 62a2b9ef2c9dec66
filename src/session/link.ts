// A connection beside the carrier that carries the bytes of one stream at a time each way, without frames.
//
// Bulk goes this way: nothing is copied into batches, and nothing else waits behind it. TCP itself is the flow
// control. Who sends decides: a LINK frame says from which byte of the link on it carries which stream, an UNLINK
// frame where that ends. Both ends count, so a byte never lands on the wrong stream.

import type { Socket, SocketHandler } from '../socket.ts'
import { Unsent } from '../unsent.ts'
import type { Stream } from './stream.ts'

/** Bytes handed to a stream that are not consumed yet before reading stops: about one kernel buffer. */
const MAX_UNCONSUMED_BYTES = 524_288

/** The stream that the far side sends on its half. */
interface Binding {
  /** `undefined`: it was gone before; its bytes are counted and dropped. */
  readonly stream: Stream | undefined
  readonly streamId: number
  /** The byte behind its last one; unknown until UNLINK. */
  to: number
}

/** What a link tells its session. */
export interface LinkOwner {
  /** Bytes for a stream. */
  linkReceived(stream: Stream, bytes: Uint8Array): void
  /** All bytes of the stream have come: its END may be acted on, and the far side told that the half is free. */
  linkFinished(link: Link, stream: Stream | undefined): void
  /** The link is gone; these streams were on it. */
  linkClosed(link: Link, streams: readonly Stream[]): void
}

export class Link {
  readonly number: number
  readonly socketHandler: SocketHandler
  /** The stream that this side sends on it. */
  sender: Stream | undefined
  /** UNLINK went out and LINK_FREE has not come yet. */
  isSettling = false
  /** Bytes given to this side's half so far, sent or waiting. */
  sentBytes = 0
  readonly #socket: Socket
  readonly #owner: LinkOwner
  readonly #unsent: Unsent = new Unsent()
  #receivedBytes = 0
  #binding: Binding | undefined
  /** Bytes that came before the LINK frame that says whose they are. Reading is paused meanwhile. */
  #early: Uint8Array[] = []
  #isPaused = false
  #isClosed = false

  constructor(number: number, socket: Socket, owner: LinkOwner) {
    this.number = number
    this.#socket = socket
    this.#owner = owner
    this.socketHandler = {
      received: bytes => this.#received(bytes),
      drained: () => this.#drained(),
      ended: () => this.close(),
      closed: () => this.close(),
    }
  }

  /** Whether a stream may be sent on it. */
  get isFree(): boolean {
    return this.sender === undefined && !this.isSettling
  }

  /** Nobody uses it, either way. */
  get isIdle(): boolean {
    return this.isFree && this.#binding === undefined && this.#unsent.isEmpty
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Sends bytes of `sender`. `false`: wait for its `writable`. */
  send(bytes: Uint8Array, isScratch: boolean): boolean {
    this.sentBytes += bytes.length
    return this.#unsent.send(this.#socket, bytes, isScratch) === bytes.length
  }

  /** From here on the far side's half carries a stream. `false`: the far side broke the rules. */
  bind(stream: Stream | undefined, streamId: number, from: number): boolean {
    if (this.#binding !== undefined || from !== this.#receivedBytes) return false
    this.#binding = { stream, streamId, to: Number.POSITIVE_INFINITY }
    const early = this.#early
    if (early.length === 0) return true
    this.#early = []
    this.#resume()
    for (const bytes of early) this.#received(bytes)
    return true
  }

  /** The stream's bytes end at `to`. `false`: the far side broke the rules. */
  unbind(streamId: number, to: number): boolean {
    const binding = this.#binding
    if (
      binding?.streamId !== streamId ||
      binding.to !== Number.POSITIVE_INFINITY ||
      to < this.#receivedBytes
    ) {
      return false
    }
    binding.to = to
    this.#finishBinding(binding)
    return true
  }

  /** The stream consumed bytes: perhaps reading may go on. */
  consumed(stream: Stream): void {
    if (this.#isPaused && this.#early.length === 0 && unconsumed(stream) < MAX_UNCONSUMED_BYTES / 2)
      this.#resume()
  }

  /** The stream that it brought is gone: what still comes for it is dropped, so nothing may hold it up. */
  dropReceived(): void {
    if (this.#early.length === 0) this.#resume()
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#unsent.clear()
    this.#early = []
    this.#socket.terminate()
    const streams = new Set([this.sender, this.#binding?.stream])
    streams.delete(undefined)
    this.sender = undefined
    this.#binding = undefined
    this.#owner.linkClosed(this, [...streams] as Stream[]) // `undefined` was just deleted
  }

  #received(bytes: Uint8Array): void {
    if (this.#isClosed) return
    const binding = this.#binding
    if (binding === undefined) {
      this.#early.push(bytes)
      return this.#pause()
    }
    const count = Math.min(bytes.length, binding.to - this.#receivedBytes)
    this.#receivedBytes += count
    const { stream } = binding
    if (stream !== undefined && !stream.isClosed) {
      this.#owner.linkReceived(stream, count === bytes.length ? bytes : bytes.subarray(0, count))
      if (!stream.isClosed && unconsumed(stream) > MAX_UNCONSUMED_BYTES) this.#pause()
    }
    this.#finishBinding(binding)
    // Bytes behind the end: of the next stream, which is not named yet. An honest far side waits for LINK_FREE.
    if (count < bytes.length) this.#received(bytes.subarray(count))
  }

  #finishBinding(binding: Binding): void {
    if (this.#binding !== binding || binding.to > this.#receivedBytes) return
    this.#binding = undefined
    // Whoever was too slow for it no longer is.
    if (this.#early.length === 0) this.#resume()
    this.#owner.linkFinished(this, binding.stream)
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
