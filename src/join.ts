// Joins one stream to one socket and moves bytes both ways, understanding none of them: at the client towards the
// origin, at the server towards the visitor of a raw tunnel.

import { type Account, SendQueue } from './bytes.ts'
import { type ErrorCode, TunnelError } from './errors.ts'
import type { ByteStream, StreamHandler } from './session/byte-stream.ts'
import type { Socket, SocketHandler, Splice, SpliceDone } from './socket.ts'

/**
 * Pieces one way after which a raw connection is a conversation: from then on another thread moves them, where the platform
 * can, and no main thread wakes up for each.
 */
const CONVERSATION_PIECES = 64

/**
 * A stream's handler; `socketHandler` is that of the socket. Either side may come first. Bytes of the stream wait until there
 * is a socket, bounded by the stream's first credit; a socket that comes first must be paused until then.
 */
export class Join implements StreamHandler {
  readonly socketHandler: SocketHandler
  #stream: ByteStream | undefined
  #socket: Socket | undefined
  /** Bytes for the socket that its kernel buffer has no room for yet. */
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
   * Joins a stream to a socket. `brokenCode` is the code for the far end of the stream if the socket breaks with an error that
   * has no code of its own. `isRaw`: the stream carries one raw connection, and no requests. `closed`: the socket is gone, with
   * the error that ended it; called once.
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

  /** Whether there is nothing left to do: a dial in progress may stop. */
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

  /** The socket, when nothing waits here either way. */
  get idleSocket(): Socket | undefined {
    const isIdle = !this.#isOver && this.#unsent.isEmpty && this.#stream?.isBackedUp === false
    return isIdle ? this.#socket : undefined
  }

  /** Charges bytes that wait for the socket. When the account is over, the next one that has to wait ends the connection. */
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

  /** Ends the join: there will be no socket, or the one there is is cut. */
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

  /** Lets bytes of the socket move to a link from its next turn on, if the stream has a link by then. */
  #moveToLink(): void {
    if (this.#socket?.requestSplice?.()) this.#stream?.moveToLink()
  }

  // ── To and from the socket ─────────────────────────────────────────────────────────────────────────────────

  #drain(socket: Socket): void {
    this.#consumed(this.#unsent.flush(socket))
    if (this.#hasStreamEnded && this.#unsent.isEmpty) socket.end()
  }

  /** Gives credit for bytes in a kernel buffer only, so that a slow reader stops the writer at the other end. */
  #consumed(count: number): void {
    if (count > 0) this.#stream?.consumed(count)
  }

  #socketClosed(error: Error | undefined): void {
    if (this.#isOver) return
    this.#isOver = true
    const isWhole = error === undefined && this.#unsent.isEmpty
    this.#unsent.clear()
    if (isWhole) return this.#stream?.end()
    // Bytes that were never taken make a clean end a lie.
    this.failure = error instanceof TunnelError ? error.code : this.#brokenCode
    this.#stream?.reset(this.failure)
  }
}
