// The listeners through which connections reach the server, and which of their headers are trusted.

import type { Socket, SocketHandler } from '../../socket.ts'
import type { ServerContext } from '../context/server-context.ts'
import type { Entrance } from '../contracts/protocol.ts'
import type { AdmittedConnection } from '../limits/admission.ts'

/** Takes a connection of a public port. `admitted` is its place among the counted ones. */
export type AcceptVisitor = (
  socket: Socket,
  entrance: Entrance,
  admitted: AdmittedConnection | undefined,
) => SocketHandler

/** Passes connections through the parts that read them first, and then to `accept`. `proto` is their scheme. */
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

/** Returns the entrance of visitors that use `proto`, without a proxy in between. */
export function entranceOf(context: ServerContext, proto: Entrance['proto']): Entrance {
  return {
    proto,
    isTrusted: address => context.isTrusted(address),
    hstsLine: () => (proto === 'https' ? context.settings.hstsLine : undefined),
    altSvcLine: () => (proto === 'https' ? context.altSvcLine : undefined),
    isTraced: () => context.settings.isTraced,
  }
}
