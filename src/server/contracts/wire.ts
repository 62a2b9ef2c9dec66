// Contract between the server and a wire besides that of streams: for clients that agree on no subprotocol.

import type { Socket, SocketHandler } from '../../socket.ts'
import type { ClientHost } from '../registration/client-host.ts'
import type { Rule } from '../settings/policy.ts'
import type { ClientConnection } from './clients.ts'

/** Makes the socket a client's connection, after the upgrade was answered. `handler` gets the events of the socket. */
export type Adopt = (
  socket: Socket,
  remoteAddress: string,
  host: ClientHost,
  rule: Rule,
) => { readonly client: ClientConnection; readonly handler: SocketHandler }
