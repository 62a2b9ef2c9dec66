// Ends what the operator takes back: a tunnel, or all that a new ban is about.

import type { Ban } from '../operations.ts'
import type { ClientConnection } from './clients.ts'
import type { ServerRoom } from './room.ts'
import type { Tunnel } from './tunnel.ts'

/** Its clients get the reason; one that is away finds it gone. */
export function closeTunnel(room: ServerRoom, tunnel: Tunnel): void {
  room.closing = tunnel.name
  try {
    for (const { client } of [...tunnel.members]) client?.reloaded()
    tunnel.remove('BLOCKED')
  } finally {
    room.closing = undefined
  }
}

/** Visitors and clients that it is about are cut, as far as the server knows them by it. */
export function cutBanned(
  room: ServerRoom,
  clients: ReadonlySet<ClientConnection>,
  { kind, value }: Ban,
): void {
  if (kind === 'tunnel') {
    const tunnel = room.tunnels.find(value)
    if (tunnel !== undefined) closeTunnel(room, tunnel)
  } else for (const client of [...clients]) if (room.isBanned(client.remoteAddress)) client.close('BLOCKED')
}
