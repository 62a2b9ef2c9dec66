// Origin as a function: requests go straight to a `fetch` handler, without a port and without a socket.

import type { Socket, SocketHandler } from '../../socket.ts'
import type { FetchHandler } from '../options.ts'
import type { WebSocketHandlers } from './app-websocket.ts'
import type { Origin } from './origin.ts'

export class HandlerOrigin implements Origin {
  readonly label: string
  readonly url = 'http://localhost'
  readonly #fetch: FetchHandler
  readonly #websocket: WebSocketHandlers | undefined

  constructor(fetch: FetchHandler, label = 'fetch handler', websocket?: WebSocketHandlers) {
    this.#fetch = fetch
    this.label = label
    this.#websocket = websocket
  }

  async connect(handler: SocketHandler): Promise<Socket> {
    // Not loaded for an app that has a port.
    const { HandlerSocket } = await import('./handler-socket.ts')
    return new HandlerSocket(this.#fetch, this.#websocket, handler)
  }
}
