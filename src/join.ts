// Joins one stream to one socket and moves bytes both ways without parsing them: at the client to the origin, at the
// server to the visitor of a raw tunnel.

import { type Account, SendQueue } from './bytes.ts'
import { type ErrorCode, TunnelError } from './errors.ts'
import type { ByteStream, StreamHandler } from './session/byte-stream.ts'
import type { Socket, SocketHandler, Splice, SpliceDone } from './socket.ts'

/**
 * The number of pieces in one direction after which a raw connection counts as interactive. From then on another
 * thread moves them, if the platform allows it, and no main thread wakes up for each.
 */
const CONVERSATION_PIECES = 64

/**
 * Handles a stream; `socketHandler` handles the socket. Either may exist first. Bytes of the stream wait for the
 * socket, limited by the stream's initial credit; a socket that exists first must be paused until then.
 */
export class Join implements StreamHandler {
  readonly socketHandler: SocketHandler
  #stream: ByteStream | undefined
  #socket: Socket | undefined
  /** Bytes for the socket for which its kernel buffer has no room yet. */
  readonly #unsent: SendQueue = new SendQueue()
  readonly #brokenCode: ErrorCode
  readonly #isRaw: boolean
  #sentPieces = 0
  #receivedPieces = 0
  failure: ErrorCode | undefined
  #hasStreamEnded = false
  #hasSocketEnded = false
  #isOver = false

  /**
   * Makes a join. `brokenCode` is sent to the far end of the stream if the socket fails with an error that has no
   * code. `isRaw`: the stream carries one raw connection rather than requests. `closed` is called once when the
   * socket is gone, with the error that ended it.
   */
  constructor(brokenCode: ErrorCode, isRaw: boolean, closed?: (error?: Error) => void) {
    this.#brokenCode = brokenCode
    this.#isRaw = isRaw
    this.socketHandler = {
      received: bytes => {
        if (this.#stream?.write(bytes) === false) this.#socket?.pause()
        else if (this.#isRaw && ++this.#sentPieces % CONVERSATION_PIECES === 0) this.#moveToLink()
      },
      drained: () => {
        if (this.#socket !== undefined) this.#drain(this.#socket)
      },
      ended: () => {
        this.#hasSocketEnded = true
        this.#stream?.end()
      },
      spliceable: () => {
        if (this.#socket !== undefined)
          this.#stream?.writeFrom(this.#socket, Number.POSITIVE_INFINITY, () => {})
      },
      closed: error => {
        this.#socketClosed(error)
        closed?.(error)
      },
    }
  }

  /** Whether nothing is left to do, so that a dial in progress may stop. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** The first bytes that wait for the socket. */
  get firstUnsent(): Uint8Array | undefined {
    return this.#unsent.first
  }

  get stream(): ByteStream | undefined {
    return this.#stream
  }

  /** The socket, if no bytes wait in either direction. */
  get idleSocket(): Socket | undefined {
    const isIdle = !this.#isOver && this.#unsent.isEmpty && this.#stream?.isBackedUp === false
    return isIdle ? this.#socket : undefined
  }

  /**
   * Sets the account for bytes that wait for the socket. When it is over its limit, the next bytes that must wait end
   * the connection.
   */
  charge(account: Account): void {
    this.#unsent.account = account
  }

  useStream(stream: ByteStream): void {
    this.#stream = stream
    if (this.#hasSocketEnded) stream.end()
  }

  useSocket(socket: Socket): void {
    if (this.#isOver) return socket.terminate(this.failure)
    this.#socket = socket
    this.#drain(socket)
  }

  /** Ends the join: cuts the socket, or expects none any more. */
  fail(code: ErrorCode): void {
    if (this.#isOver) return
    this.#isOver = true
    this.failure = code
    this.#unsent.clear()
    this.#stream?.reset(code)
    this.#socket?.terminate(code)
  }

  // ── From the stream ────────────────────────────────────────────────────────────────────────────────────────

  received(bytes: Uint8Array, start: number, end: number): void {
    if (this.#socket === undefined) return this.#unsent.keep(bytes, start, end)
    const taken = this.#unsent.send(this.#socket, bytes, start, end)
    this.#consumed(taken)
    if (taken < end - start && this.#unsent.account?.isOver === true) return this.fail('BUFFERS_FULL')
    if (this.#isRaw && ++this.#receivedPieces % CONVERSATION_PIECES === 0) this.#stream?.requestSplice()
  }

  receivedFrom(from: Socket, limitBytes: number, done: SpliceDone): Splice | undefined {
    const socket = this.#socket
    if (socket === undefined || !this.#unsent.isEmpty) return undefined
    return socket.spliceFrom === undefined
      ? from.spliceTo?.(socket, limitBytes, done)
      : socket.spliceFrom(from, limitBytes, done)
  }

  writable(): void {
    this.#socket?.resume()
  }

  ended(): void {
    this.#hasStreamEnded = true
    if (this.#unsent.isEmpty) this.#socket?.end()
  }

  reset(code: ErrorCode): void {
    this.#isOver = true
    this.failure = code
    this.#unsent.clear()
    this.#socket?.terminate(code)
  }

  /** Lets the socket's bytes move to a link from its next turn on, if the stream has a link by then. */
  #moveToLink(): void {
    if (this.#socket?.requestSplice?.()) this.#stream?.moveToLink()
  }

  // ── To and from the socket ─────────────────────────────────────────────────────────────────────────────────

  #drain(socket: Socket): void {
    this.#consumed(this.#unsent.flush(socket))
    if (this.#hasStreamEnded && this.#unsent.isEmpty) socket.end()
  }

  /** Gives credit only for bytes in a kernel buffer, so that a slow reader stops the writer at the other end. */
  #consumed(count: number): void {
    if (count > 0) this.#stream?.consumed(count)
  }

  #socketClosed(error: Error | undefined): void {
    if (this.#isOver) return
    this.#isOver = true
    const isWhole = error === undefined && this.#unsent.isEmpty
    this.#unsent.clear()
    if (isWhole) return this.#stream?.end()
    // Bytes that were never taken would make a clean end false.
    this.failure = error instanceof TunnelError ? error.code : this.#brokenCode
    this.#stream?.reset(this.failure)
  }
}
