// A function as an origin: requests go directly to a `fetch` handler, without a port or socket.

import type { WebSocketHandlers } from '../../client/contracts/handler.ts'
import type { FetchHandler } from '../../client/options.ts'
import type { Origin } from '../../client/origins/origin.ts'
import type { Socket, SocketHandler } from '../../socket.ts'

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
    // Not loaded for an app with a port.
    const { HandlerSocket } = await import('./socket.ts')
    return new HandlerSocket(this.#fetch, this.#websocket, handler)
  }
}
