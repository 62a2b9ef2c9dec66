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

/** Which bytes of the far side's half belong to which stream. */
interface Binding {
  /** `undefined`: the stream was gone before; its bytes are dropped. */
  readonly stream: Stream | undefined
  readonly streamId: number
  readonly from: number
  /** Unknown until UNLINK, or until the next binding begins. */
  to: number
}

/** What a link tells its session. */
export interface LinkOwner {
  /** Bytes for a stream. */
  linkReceived(stream: Stream, bytes: Uint8Array): void
  /** All bytes of the stream have come: its END may be acted on. */
  linkFinished(stream: Stream): void
  /** The link is gone; these streams were on it. */
  linkClosed(link: Link, streams: readonly Stream[]): void
}

export class Link {
  readonly number: number
  readonly socketHandler: SocketHandler
  /** The stream that this side sends on it; `undefined`: its half is free. */
  sender: Stream | undefined
  /** Bytes given to this side's half so far, sent or waiting. */
  sentBytes = 0
  readonly #socket: Socket
  readonly #owner: LinkOwner
  readonly #unsent: Unsent = new Unsent()
  #receivedBytes = 0
  readonly #bindings: Binding[] = []
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

  /** Nobody uses it, either way. */
  get isIdle(): boolean {
    const isReceiving = this.#bindings.some(({ stream }) => stream?.isClosed === false)
    return this.sender === undefined && !isReceiving && this.#unsent.isEmpty
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Sends bytes of `sender`. `false`: wait for its `writable`. */
  send(bytes: Uint8Array, isScratch: boolean): boolean {
    this.sentBytes += bytes.length
    return this.#unsent.send(this.#socket, bytes, isScratch) === bytes.length
  }

  /** Bytes of the far side's half from `from` on belong to a stream. */
  bind(stream: Stream | undefined, streamId: number, from: number): boolean {
    const last = this.#bindings.at(-1)
    if (last !== undefined) {
      // The stream before was reset, which needs no UNLINK: its bytes end where these begin.
      if (from < last.from || last.to < from) return false
      last.to = from
    } else if (from < this.#receivedBytes) return false
    this.#bindings.push({ stream, streamId, from, to: Number.POSITIVE_INFINITY })
    this.#deliverEarly()
    return true
  }

  /** The stream's bytes end at `to`. */
  unbind(streamId: number, to: number): boolean {
    const binding = this.#bindings.find(
      one => one.streamId === streamId && one.to === Number.POSITIVE_INFINITY,
    )
    if (binding === undefined || to < binding.from || to < this.#receivedBytes) return false
    binding.to = to
    this.#finishBindings()
    return true
  }

  /** The stream consumed bytes: perhaps reading may go on. */
  consumed(stream: Stream): void {
    if (this.#isPaused && this.#early.length === 0 && unconsumed(stream) < MAX_UNCONSUMED_BYTES / 2)
      this.#resume()
  }

  /** The stream is gone: what still comes for it is dropped, so nothing may hold it up. */
  forget(stream: Stream): void {
    if (this.sender === stream) this.sender = undefined
    if (this.#isPaused && this.#early.length === 0 && this.#bindings[0]?.stream === stream) this.#resume()
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#unsent.clear()
    this.#early = []
    this.#socket.terminate()
    const streams = this.#bindings.flatMap(({ stream }) => stream ?? [])
    if (this.sender !== undefined && !streams.includes(this.sender)) streams.push(this.sender)
    this.sender = undefined
    this.#bindings.length = 0
    this.#owner.linkClosed(this, streams)
  }

  #received(bytes: Uint8Array): void {
    if (this.#isClosed) return
    if (this.#bindings.length === 0 || this.#early.length > 0) this.#keepEarly(bytes)
    else this.#deliver(bytes)
  }

  #keepEarly(bytes: Uint8Array): void {
    this.#early.push(bytes)
    this.#pause()
  }

  #deliverEarly(): void {
    const early = this.#early
    if (early.length === 0) return
    this.#early = []
    this.#resume()
    for (const bytes of early) this.#received(bytes)
  }

  #deliver(bytes: Uint8Array): void {
    let at = 0
    while (at < bytes.length) {
      if (this.#isClosed) return
      const binding = this.#bindings[0]
      if (binding === undefined) return this.#keepEarly(bytes.subarray(at))
      const start = this.#receivedBytes
      // Before `from`: bytes of a stream that was reset while they were on their way.
      const isOurs = start >= binding.from
      const end = isOurs ? binding.to : binding.from
      const count = Math.min(bytes.length - at, end - start)
      const { stream } = binding
      this.#receivedBytes += count
      if (isOurs && count > 0 && stream !== undefined && !stream.isClosed) {
        this.#owner.linkReceived(stream, count === bytes.length ? bytes : bytes.subarray(at, at + count))
        if (!stream.isClosed && unconsumed(stream) > MAX_UNCONSUMED_BYTES) this.#pause()
      }
      at += count
      this.#finishBindings()
    }
  }

  #finishBindings(): void {
    for (let first = this.#bindings[0]; first !== undefined; first = this.#bindings[0]) {
      if (first.to > this.#receivedBytes) return
      this.#bindings.shift()
      // Whoever was too slow for it no longer is.
      if (this.#early.length === 0) this.#resume()
      if (first.stream !== undefined) this.#owner.linkFinished(first.stream)
    }
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
