// Origin as a function: requests go straight to a `fetch` handler, without a port and without a socket.

import { HandlerConnection } from '../../http/handler.ts'
import type { Socket, SocketHandler } from '../../socket.ts'
import type { FetchHandler } from '../options.ts'
import type { Origin } from '../origin.ts'

export class HandlerOrigin implements Origin {
  readonly label: string
  readonly url = 'http://localhost'
  readonly #fetch: FetchHandler

  constructor(fetch: FetchHandler, label = 'fetch handler') {
    this.#fetch = fetch
    this.label = label
  }

  connect(handler: SocketHandler): Promise<Socket> {
    return Promise.resolve(new HandlerSocket(this.#fetch, handler))
  }
}

/** The handler's end of a connection, in the shape of a socket. */
class HandlerSocket implements Socket {
  readonly remoteAddress = ''
  readonly #connection: HandlerConnection
  readonly #handler: SocketHandler
  #isPaused = false
  #isInputPaused = false
  #isClosed = false

  constructor(fetch: FetchHandler, handler: SocketHandler) {
    this.#handler = handler
    this.#connection = new HandlerConnection(fetch, {
      write: bytes => {
        handler.received(bytes)
        return !this.#isPaused
      },
      end: () => {
        handler.ended()
        this.#close()
      },
      terminate: () => this.#close(new Error('the fetch handler gave up in the middle of its answer')),
      pause: () => {
        this.#isInputPaused = true
      },
      resume: () => {
        this.#isInputPaused = false
        handler.drained()
      },
    })
  }

  write(bytes: Uint8Array, start = 0, end: number = bytes.length): number {
    if (this.#isClosed || this.#isInputPaused) return 0
    this.#connection.received(bytes.subarray(start, end))
    return end - start
  }

  end(): void {
    if (!this.#isClosed) this.#connection.ended()
  }

  terminate(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#connection.aborted()
  }

  endpoints(): undefined {}

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    if (!this.#isClosed) this.#connection.drained()
  }

  #close(error?: Error): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#handler.closed(error)
  }
}
