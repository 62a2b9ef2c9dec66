// Handles a connection while it is opened through a proxy. The connection's own handler gets only the events after that.

import { copyOf } from '../bytes.ts'
import { deferred } from '../deferred.ts'
import type { Opening, Socket, SocketHandler } from '../socket.ts'

export class Gate implements SocketHandler {
  readonly #opening: Opening
  /** The handler for events once the connection is open. */
  readonly #handler: SocketHandler
  readonly #over = deferred<Uint8Array>()
  #socket: Socket | undefined
  #state: 'opening' | 'handing over' | 'open' | 'failed' = 'opening'
  /** The bytes for the handler that arrived before it could know its socket. */
  #early: Uint8Array[] = []
  /** The error that the handler threw for these bytes. */
  #thrown: Error | undefined

  constructor(opening: Opening, handler: SocketHandler) {
    this.#opening = opening
    this.#handler = handler
    this.#over.promise.catch(() => {}) // `open` tells; the connection may fail before it is called
  }

  /** Runs the opening on a connection. Resolves with the bytes after it. If it fails, cuts the connection and rejects. */
  async open(socket: Socket, signal: AbortSignal | undefined): Promise<Uint8Array> {
    const abort = () => this.#fail(failure('ECONNABORTED', 'the connection is not wanted any more'))
    signal?.addEventListener('abort', abort)
    this.#socket = socket
    if (this.#state === 'failed') socket.terminate()
    else if (signal?.aborted) abort()
    else this.#step(() => this.#opening.begin())
    try {
      return await this.#over.promise
    } finally {
      signal?.removeEventListener('abort', abort)
    }
  }

  /** Gives the connection to the handler, beginning with `rest`, once the code that dials has the socket. */
  handOver(rest: Uint8Array): void {
    if (rest.length > 0) this.#early.unshift(rest)
    setImmediate(() => this.#flush())
  }

  received(bytes: Uint8Array): void {
    if (this.#state === 'open') this.#handler.received(bytes)
    else if (this.#state === 'handing over') this.#early.push(copyOf(bytes))
    else if (this.#state === 'opening') this.#step(() => this.#opening.take(bytes))
  }

  drained(): void {
    if (this.#state === 'open') this.#handler.drained()
  }

  spliceable(): void {
    if (this.#state === 'open') this.#handler.spliceable?.()
  }

  ended(): void {
    if (this.#state === 'opening') return this.#fail(failure('ECONNRESET', 'the connection ended too early'))
    this.#flush()
    if (this.#state === 'open') this.#handler.ended()
  }

  closed(error?: Error): void {
    if (this.#state === 'opening') {
      return this.#fail(error ?? failure('ECONNRESET', 'the connection closed too early'))
    }
    this.#flush()
    if (this.#state === 'open') this.#handler.closed(this.#thrown ?? error)
  }

  #step(next: () => ReturnType<Opening['take']>): void {
    try {
      const result = next()
      if (result === undefined) return
      if (!(result instanceof Uint8Array)) {
        this.#state = 'handing over'
        return this.#over.resolve(copyOf(result.rest))
      }
      // A new connection has room for so few bytes. If not, it is broken.
      if (this.#socket?.write(result) === result.length) return
      this.#fail(failure('EPIPE', 'the connection takes no bytes'))
    } catch (error) {
      this.#fail(error)
    }
  }

  #flush(): void {
    if (this.#state !== 'handing over') return
    this.#state = 'open'
    const early = this.#early
    this.#early = []
    try {
      for (const bytes of early) this.#handler.received(bytes)
    } catch (error) {
      // As for any handler, the error ends the connection. In the event loop it would end the process.
      this.#thrown = error instanceof Error ? error : new Error(String(error))
      this.#socket?.terminate()
    }
  }

  #fail(error: unknown): void {
    this.#state = 'failed'
    this.#over.reject(error)
    this.#socket?.terminate()
  }
}

export function failure(code: string, message: string): Error {
  return Object.assign(new Error(`${code}: ${message}`), { code })
}
