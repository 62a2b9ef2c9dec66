// How connections come in: from visitors themselves, or from trusted proxies whose PROXY header names the visitor.

import type { Socket, SocketHandler } from '../../socket.ts'
import type { ServerRoom } from '../context/room.ts'
import type { Entrance } from '../contracts/protocol.ts'
import type { Seat } from '../limits/admission.ts'
import { acceptProxied, type ProxiedHost } from './proxied.ts'

/** Takes a connection of a public port, with where it is counted. */
export type AcceptVisitor = (socket: Socket, entrance: Entrance, seat: Seat | undefined) => SocketHandler

/** Hands connections to `accept`, without the PROXY header where there has to be one. `proto`: what they speak to this server. */
export function acceptThrough(
  room: ServerRoom,
  proto: Entrance['proto'],
  accept: AcceptVisitor,
): (socket: Socket, seat: Seat | undefined) => SocketHandler {
  const direct = entranceOf(room, proto)
  const overTls = entranceOf(room, 'https')
  // A header without an address leaves the proxy's own. Forwarding headers behind it are the visitor's words, not the proxy's.
  const untrusted: Entrance = { ...direct, isTrusted: () => false }
  const proxied: ProxiedHost = {
    deadlines: room.deadlines,
    get headerTimeoutMs() {
      return room.limits.headTimeoutMs
    },
    isTrusted: address => room.isTrusted(address),
    accept(socket, header, seat) {
      if (header === undefined) return accept(socket, direct, seat)
      return accept(socket, header.route === undefined ? untrusted : header.isTls ? overTls : direct, seat)
    },
    failed: error => room.failed(error),
  }
  return (socket, seat) =>
    room.settings.acceptsProxyProtocol ? acceptProxied(socket, proxied, seat) : accept(socket, direct, seat)
}

/** Returns the entrance of visitors that come with `proto`, without anything in between. */
export function entranceOf(room: ServerRoom, proto: Entrance['proto']): Entrance {
  return {
    proto,
    isTrusted: address => room.isTrusted(address),
    hstsLine: () => (proto === 'https' ? room.settings.hstsLine : undefined),
    altSvcLine: () => (proto === 'https' ? room.altSvcLine : undefined),
    isTraced: () => room.settings.isTraced,
  }
}
