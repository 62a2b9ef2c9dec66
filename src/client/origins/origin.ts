// Contract: where the client forwards to. Implementations: origins/address.ts, parts/functions/origin.ts.

import type { Socket, SocketHandler } from '../../socket.ts'

/** The app, as something to connect to. */
export interface Origin {
  /** The name for messages: `localhost:3000`, a path, `fetch handler`. */
  readonly label: string
  /** The scheme and host as the app knows itself: for a rewritten Host and Origin. */
  readonly url: string
  /** Datagrams of a service that were dropped so far, because the way to the server was full. */
  readonly droppedDatagrams?: number
  /** Opens one connection. Rejects with a TunnelError of an ORIGIN_* code. */
  connect(handler: SocketHandler): Promise<Socket>
}
