// A control connection after its upgrade: the client's connection on it, by the wire that was agreed on.

import { eventLoop } from '../event-loop.ts'
import { WebSocketCarrier } from '../session/carriers/websocket.ts'
import type { Socket, SocketHandler } from '../socket.ts'
import type { ClientHost } from './client-host.ts'
import type { ClientConnection } from './clients.ts'
import { JsonConnection } from './json-connection.ts'
import type { Rule } from './policy.ts'
import { StreamsConnection } from './streams-connection.ts'
import type { Applicant } from './upgrade.ts'

/** Makes the socket a client's connection, with what its token opens; `joined` gets it before the first event. */
export function adopt(
  socket: Socket,
  { wire, remoteAddress }: Applicant,
  host: ClientHost,
  rule: Rule,
  joined: (client: ClientConnection) => void,
): SocketHandler {
  if (wire === 'json') {
    const connection = new JsonConnection(socket, remoteAddress, host, rule)
    joined(connection)
    return connection.socketHandler
  }
  const carrier = new WebSocketCarrier(socket, { role: 'server', scheduler: eventLoop, turns: host.turns })
  const connection = new StreamsConnection(carrier, remoteAddress, host, rule)
  carrier.handler = connection.carrierHandler
  carrier.account = connection.use
  joined(connection)
  return carrier.socketHandler
}
