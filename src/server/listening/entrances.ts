// How connections come in, and what is believed of what comes on them.

import type { Socket, SocketHandler } from '../../socket.ts'
import type { ServerContext } from '../context/server-context.ts'
import type { Entrance } from '../contracts/protocol.ts'
import type { AdmittedConnection } from '../limits/admission.ts'

/** Takes a connection of a public port, with where it is counted. */
export type AcceptVisitor = (
  socket: Socket,
  entrance: Entrance,
  admitted: AdmittedConnection | undefined,
) => SocketHandler

/** Passes connections to `accept`, after what parts do with them before. `proto`: their protocol. */
export function acceptThrough(
  context: ServerContext,
  proto: Entrance['proto'],
  accept: AcceptVisitor,
): (socket: Socket, admitted: AdmittedConnection | undefined) => SocketHandler {
  const direct = entranceOf(context, proto)
  const ways = {
    direct,
    https: entranceOf(context, 'https'),
    untrusted: { ...direct, isTrusted: () => false },
  }
  return (socket, admitted) =>
    context.parts.enterPort(socket, admitted, (one, way) => accept(one, ways[way], admitted)) ??
    accept(socket, direct, admitted)
}

/** Returns the entrance of visitors that come with `proto`, without anything in between. */
export function entranceOf(context: ServerContext, proto: Entrance['proto']): Entrance {
  return {
    proto,
    isTrusted: address => context.isTrusted(address),
    hstsLine: () => (proto === 'https' ? context.settings.hstsLine : undefined),
    altSvcLine: () => (proto === 'https' ? context.altSvcLine : undefined),
    isTraced: () => context.settings.isTraced,
  }
}
