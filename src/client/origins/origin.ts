// Contract: what the client forwards to. Implementations: origins/address.ts, parts/functions/origin.ts.

import type { Socket, SocketHandler } from '../../socket.ts'

/** The app as the destination of connections. */
export interface Origin {
  /** The name for messages: `localhost:3000`, a path, `fetch handler`. */
  readonly label: string
  /** The scheme and host of the app's own URLs, for a rewritten Host and Origin. */
  readonly url: string
  /** The number of a service's datagrams that were dropped because the path to the server was full. */
  readonly droppedDatagrams?: number
  /** Opens one connection. Rejects with a TunnelError of an ORIGIN_* code. */
  connect(handler: SocketHandler): Promise<Socket>
}
