// A stream of a client as a visitor's connection. The bytes between it and another client's stream may move from one
// link to another without the main thread, as between a link and a socket.

import { copyOf } from '../../bytes.ts'
import { type ErrorCode, isErrorCode, TunnelError } from '../../errors.ts'
import type { ByteStream, StreamHandler } from '../../session/byte-stream.ts'
import type { Socket, SocketHandler, Splice, SpliceDone } from '../../socket.ts'

/** The number of pieces to the client after which a link is requested: as many as `Join` passes in the other direction. */
const CONVERSATION_PIECES = 64
/** Bytes that arrive on a link, while the handler is asked for their destination. */
interface Offered {
  readonly from: Socket
  readonly limitBytes: number
  readonly done: SpliceDone
  splice?: Splice | undefined
}

export class StreamSocket implements Socket, StreamHandler {
  readonly remoteAddress: string
  #stream: ByteStream | undefined
  #handler: SocketHandler | undefined
  /** The pieces that arrived while reading is paused. No credit is given for them, so the stream's window limits them. */
  readonly #waiting: Uint8Array[] = []
  #isPaused = false
  #isFull = false
  #hasEnded = false
  #hasPeerEnded = false
  #isClosed = false
  #error: Error | undefined
  #offered: Offered | undefined
  #writtenPieces = 0

  readonly #over: () => void

  private constructor(remoteAddress: string, over: () => void) {
    this.remoteAddress = remoteAddress
    this.#over = over
  }

  /**
   * Opens a stream. `accept` gets the connection and returns its handler; `over` is called when the connection is
   * gone. Returns `false` if the client accepts no stream.
   */
  static open(
    open: (handler: StreamHandler) => ByteStream | ErrorCode,
    remoteAddress: string,
    accept: (socket: Socket) => SocketHandler,
    over: () => void,
  ): boolean {
    const socket = new StreamSocket(remoteAddress, over)
    const stream = open(socket)
    if (typeof stream === 'string') return false
    socket.#stream = stream
    const handler = accept(socket)
    socket.#handler = handler
    if (socket.#isClosed) handler.closed(socket.#error)
    return true
  }

  // ── Socket ─────────────────────────────────────────────────────────────────────────────────────────────────

  write(bytes: Uint8Array, start = 0, end: number = bytes.length): number {
    const stream = this.#stream
    if (this.#isFull || this.#isClosed || stream === undefined) return 0
    // The stream stores what it cannot send: the next piece waits for `writable`.
    this.#isFull = !stream.write(bytes, start, end)
    if (!this.#isFull && ++this.#writtenPieces % CONVERSATION_PIECES === 0) stream.moveToLink()
    return end - start
  }

  end(): void {
    if (this.#hasEnded || this.#isClosed) return
    this.#hasEnded = true
    this.#stream?.end()
    if (this.#hasPeerEnded) this.#close()
  }

  terminate(code?: string): void {
    if (this.#isClosed) return
    this.#stream?.reset(isErrorCode(code) ? code : 'TUNNEL_NOT_FOUND')
    this.#close(new TunnelError('CANCELLED'))
  }

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    this.#isPaused = false
    while (!this.#isPaused && !this.#isClosed) {
      const bytes = this.#waiting.shift()
      if (bytes === undefined) break
      this.#deliver(bytes)
    }
    if (this.#waiting.length === 0 && this.#hasPeerEnded) this.#tellEnd()
  }

  /** Returns nothing, because a stream has no address of its own. */
  endpoints(): undefined {}

  requestSplice(): boolean {
    this.#stream?.requestSplice()
    return true
  }

  spliceFrom(from: Socket, limitBytes: number, done: SpliceDone): Splice | undefined {
    return this.#isFull ? undefined : this.#stream?.writeFrom(from, limitBytes, done)
  }

  spliceTo(to: Socket, limitBytes: number, done: SpliceDone): Splice | undefined {
    const offered = this.#offered
    if (offered === undefined || offered.splice !== undefined) return undefined
    offered.splice = offered.from.spliceTo?.(to, Math.min(limitBytes, offered.limitBytes), movedBytes => {
      done(movedBytes)
      offered.done(movedBytes)
    })
    return offered.splice
  }

  // ── StreamHandler ──────────────────────────────────────────────────────────────────────────────────────────

  received(bytes: Uint8Array, start: number, end: number): void {
    if (this.#isClosed) return
    if (!this.#isPaused && this.#waiting.length === 0) return this.#deliver(bytes.subarray(start, end))
    this.#waiting.push(copyOf(bytes, start, end))
  }

  receivedFrom(from: Socket, limitBytes: number, done: SpliceDone): Splice | undefined {
    if (this.#isPaused || this.#waiting.length > 0) return undefined
    const offered: Offered = { from, limitBytes, done }
    this.#offered = offered
    this.#handler?.spliceable?.()
    this.#offered = undefined
    return offered.splice
  }

  writable(): void {
    if (!this.#isFull) return
    this.#isFull = false
    this.#handler?.drained()
  }

  ended(): void {
    this.#hasPeerEnded = true
    if (this.#waiting.length === 0) this.#tellEnd()
  }

  reset(code: ErrorCode): void {
    this.#close(new TunnelError(code === 'CANCELLED' ? code : 'CARRIER_LOST'))
  }

  #deliver(bytes: Uint8Array): void {
    this.#handler?.received(bytes)
    this.#stream?.consumed(bytes.length)
  }

  #tellEnd(): void {
    if (this.#isClosed) return
    this.#handler?.ended()
    if (this.#hasEnded) this.#close()
  }

  #close(error?: Error): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#error = error
    this.#waiting.length = 0
    this.#handler?.closed(error)
    this.#over()
  }
}
