// Joins one stream to one connection to the origin and moves bytes both ways, understanding none of them.

import { type ErrorCode, TunnelError } from '../errors.ts'
import type { Stream, StreamHandler } from '../session/stream.ts'
import type { Socket, SocketHandler } from '../socket.ts'
import { Unsent } from '../unsent.ts'
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
  readonly #unsent: Unsent = new Unsent()
  #hasVisitorEnded = false
  #isOver = false

  constructor(stream: Stream, origin: Origin, failed: (error: TunnelError) => void) {
    this.#stream = stream
    origin.connect(this.#originHandler()).then(
      socket => this.#connected(socket),
      (cause: unknown) => {
        // Nobody waits for it any more: a server that opens and resets streams must not flood the listeners.
        if (this.#isOver) return
        const error =
          cause instanceof TunnelError ? cause : new TunnelError('ORIGIN_UNREACHABLE', undefined, { cause })
        this.#fail(error.code)
        failed(error)
      },
    )
  }

  // ── From the server ────────────────────────────────────────────────────────────────────────────────────────

  received(bytes: Uint8Array): void {
    if (this.#socket === undefined) return this.#unsent.keep(bytes)
    this.#consumed(this.#unsent.send(this.#socket, bytes))
  }

  writable(): void {
    this.#socket?.resume()
  }

  ended(): void {
    this.#hasVisitorEnded = true
    if (this.#unsent.isEmpty) this.#socket?.end()
  }

  reset(): void {
    this.#isOver = true
    this.#unsent.clear()
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

  #drain(socket: Socket): void {
    this.#consumed(this.#unsent.flush(socket))
    if (this.#hasVisitorEnded && this.#unsent.isEmpty) socket.end()
  }

  /** Credit goes back only for what the origin's kernel buffer holds: a slow origin stops the visitor. */
  #consumed(count: number): void {
    if (count > 0) this.#stream.consumed(count)
  }

  #originClosed(error: Error | undefined): void {
    if (this.#isOver) return
    this.#isOver = true
    // Bytes that the origin never took make a clean end a lie.
    if (error !== undefined || !this.#unsent.isEmpty) this.#stream.reset('ORIGIN_CLOSED')
    else this.#stream.end()
  }

  #fail(code: ErrorCode): void {
    this.#isOver = true
    this.#stream.reset(code)
  }
}
