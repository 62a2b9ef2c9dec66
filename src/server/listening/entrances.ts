// How connections come in: from visitors themselves, or from trusted proxies whose PROXY header names the visitor.

import type { Socket, SocketHandler } from '../../socket.ts'
import type { ServerContext } from '../context/server-context.ts'
import type { Entrance } from '../contracts/protocol.ts'
import type { AdmittedConnection } from '../limits/admission.ts'
import { acceptProxied, type ProxiedHost } from './proxied.ts'

/** Takes a connection of a public port, with where it is counted. */
export type AcceptVisitor = (
  socket: Socket,
  entrance: Entrance,
  admitted: AdmittedConnection | undefined,
) => SocketHandler

/** Passes connections to `accept`, after the PROXY header if one is required. `proto`: their protocol. */
export function acceptThrough(
  context: ServerContext,
  proto: Entrance['proto'],
  accept: AcceptVisitor,
): (socket: Socket, admitted: AdmittedConnection | undefined) => SocketHandler {
  const direct = entranceOf(context, proto)
  const overTls = entranceOf(context, 'https')
  // A header without an address leaves the proxy's own. Forwarding headers behind it are the visitor's words, not the proxy's.
  const untrusted: Entrance = { ...direct, isTrusted: () => false }
  const proxied: ProxiedHost = {
    deadlines: context.deadlines,
    get headerTimeoutMs() {
      return context.limits.headTimeoutMs
    },
    isTrusted: address => context.isTrusted(address),
    accept(socket, header, admitted) {
      if (header === undefined) return accept(socket, direct, admitted)
      return accept(
        socket,
        header.route === undefined ? untrusted : header.isTls ? overTls : direct,
        admitted,
      )
    },
    failed: error => context.failed(error),
  }
  return (socket, admitted) =>
    context.settings.acceptsProxyProtocol
      ? acceptProxied(socket, proxied, admitted)
      : accept(socket, direct, admitted)
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
