// Joins one stream to one connection to the origin and moves bytes both ways, understanding none of them.

import { type ErrorCode, TunnelError } from '../errors.ts'
import type { Stream, StreamHandler } from '../session/stream.ts'
import type { Socket, SocketHandler } from '../socket.ts'
import type { Origin } from './origin.ts'

/**
 * Dials the origin for a stream. What the server sends meanwhile waits here, bounded by the stream's first credit.
 * `failed` learns why the origin could not be reached.
 */
export function join(stream: Stream, origin: Origin, failed: (error: TunnelError) => void): StreamHandler {
  return new Join(stream, origin, failed)
}

class Join implements StreamHandler {
  readonly #stream: Stream
  #socket: Socket | undefined
  /** Bytes for the origin that its kernel buffer has no room for yet. */
  readonly #unsent: Uint8Array[] = []
  #hasVisitorEnded = false
  #isOver = false

  constructor(stream: Stream, origin: Origin, failed: (error: TunnelError) => void) {
    this.#stream = stream
    origin.connect(this.#originHandler()).then(
      socket => this.#connected(socket),
      (cause: unknown) => {
        const error =
          cause instanceof TunnelError ? cause : new TunnelError('ORIGIN_UNREACHABLE', undefined, { cause })
        this.#fail(error.code)
        failed(error)
      },
    )
  }

  // ── From the server ────────────────────────────────────────────────────────────────────────────────────────

  received(bytes: Uint8Array): void {
    if (this.#socket === undefined || this.#unsent.length > 0) this.#unsent.push(bytes)
    else this.#send(this.#socket, bytes)
  }

  writable(): void {
    this.#socket?.resume()
  }

  ended(): void {
    this.#hasVisitorEnded = true
    if (this.#unsent.length === 0) this.#socket?.end()
  }

  reset(): void {
    this.#isOver = true
    this.#unsent.length = 0
    this.#socket?.terminate()
  }

  // ── To and from the origin ─────────────────────────────────────────────────────────────────────────────────

  #connected(socket: Socket): void {
    if (this.#isOver) return socket.terminate()
    this.#socket = socket
    this.#drain(socket)
  }

  #originHandler(): SocketHandler {
    return {
      received: bytes => {
        if (!this.#stream.write(bytes)) this.#socket?.pause()
      },
      drained: () => {
        if (this.#socket !== undefined) this.#drain(this.#socket)
      },
      ended: () => this.#stream.end(),
      closed: error => this.#originClosed(error),
    }
  }

  #send(socket: Socket, bytes: Uint8Array): void {
    const taken = socket.write(bytes)
    if (taken < bytes.length) this.#unsent.push(bytes.subarray(taken))
    // Credit goes back only for what the origin's kernel buffer holds: a slow origin stops the visitor.
    if (taken > 0) this.#stream.consumed(taken)
  }

  #drain(socket: Socket): void {
    while (this.#unsent.length > 0) {
      const first = this.#unsent[0]!
      const taken = socket.write(first)
      if (taken > 0) this.#stream.consumed(taken)
      if (taken < first.length) {
        this.#unsent[0] = first.subarray(taken)
        return
      }
      this.#unsent.shift()
    }
    if (this.#hasVisitorEnded) socket.end()
  }

  #originClosed(error: Error | undefined): void {
    if (this.#isOver) return
    this.#isOver = true
    // Bytes that the origin never took make a clean end a lie.
    if (error !== undefined || this.#unsent.length > 0) this.#stream.reset('ORIGIN_CLOSED')
    else this.#stream.end()
  }

  #fail(code: ErrorCode): void {
    this.#isOver = true
    this.#stream.reset(code)
  }
}
