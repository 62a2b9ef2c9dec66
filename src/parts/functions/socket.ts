// A connection to an app that is a function, in the form of a socket.

import { copyOf } from '../../bytes.ts'
import type { WebSocketHandlers } from '../../client/contracts/handler.ts'
import type { FetchHandler } from '../../client/options.ts'
import { TunnelError } from '../../errors.ts'
import { HandlerConnection, type HandlerSink } from '../../handler/connection.ts'
import type { Socket, SocketHandler } from '../../socket.ts'
import { handlerServer, offerUpgrade, takeUpgrade } from './upgrades.ts'

export class HandlerSocket implements Socket {
  readonly remoteAddress = ''
  readonly #connection: HandlerConnection
  readonly #handler: SocketHandler
  #isPaused = false
  #isInputPaused = false
  #isClosed = false

  constructor(fetch: FetchHandler, websocket: WebSocketHandlers | undefined, handler: SocketHandler) {
    this.#handler = handler
    let failure: TunnelError | undefined
    const sink: HandlerSink = {
      write: bytes => {
        handler.received(bytes)
        return !this.#isPaused
      },
      end: () => {
        handler.ended()
        this.#close()
      },
      terminate: () => this.#close(failure ?? new Error('the request was cut or malformed')),
      pause: () => {
        this.#isInputPaused = true
      },
      resume: () => {
        this.#isInputPaused = false
        handler.drained()
      },
    }
    const failed = (cause: unknown, request: string) => {
      // `String` of a value that is not an Error may itself throw.
      const reason = cause instanceof Error ? cause.message : `a ${typeof cause}`
      const detail = `${request}: the fetch handler threw: ${reason}.`
      failure = new TunnelError('HANDLER_FAILED', detail, { cause })
    }
    const server = handlerServer(websocket)
    this.#connection = new HandlerConnection(request => fetch(request, server), sink, {
      failed,
      offers: request =>
        offerUpgrade(request, cause => failed(cause, `WebSocket ${new URL(request.url).pathname}`)),
      upgraded: takeUpgrade,
    })
  }

  write(bytes: Uint8Array, start = 0, end: number = bytes.length): number {
    if (this.#isClosed || this.#isInputPaused) return 0
    // The handler may keep its body, and the array belongs to the caller.
    this.#connection.received(copyOf(bytes, start, end))
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
