// The public port of a TCP tunnel: each connection to it becomes a stream to the origin.

import { TunnelError } from '../../errors.ts'
import { type Listening, type ListenOptions, listenBun } from '../../sockets/bun.ts'
import type { Admission, Seat } from '../admission.ts'
import { RawVisitor } from '../raw-visitor.ts'
import type { RawVisits } from '../raw-visits.ts'
import type { ServerRoom } from '../room.ts'
import type { PortFront, Tunnel } from '../tunnels.ts'

/**
 * A raw connection may be silent for as long as it likes, as that of a shell is. A visitor whose machine is gone is
 * noticed by the system, which asks after this long.
 */
const KEEP_ALIVE_MS = 60_000

/** Listens for a tunnel's visitors. Throws `PORT_TAKEN` or `PORT_NOT_ALLOWED`. */
export function listenTcp(
  tunnel: Tunnel,
  room: ServerRoom,
  visits: RawVisits,
  admission: Admission,
): PortFront {
  const visitors = new Set<RawVisitor>()
  const listening = listen(tunnel.port, room, admission, (socket, seat) => {
    seat?.stay()
    socket.keepAlive?.(KEEP_ALIVE_MS)
    const visitor: RawVisitor = new RawVisitor(socket, tunnel, visits, () => visitors.delete(visitor))
    visitors.add(visitor)
    visitor.start(visitors.size > room.limits.maxStreams ? 'TUNNEL_BUSY' : undefined)
    return visitor.socketHandler
  })
  return {
    get descriptor() {
      return listening.descriptor
    },
    drain: () => listening.stop(),
    release: () => listening.stop(),
    stop(code) {
      listening.stop()
      for (const visitor of [...visitors]) visitor.cut(code)
    },
  }
}

type Accept = ListenOptions<Seat>['accept']

function listen(port: number, room: ServerRoom, admission: Admission, accept: Accept): Listening {
  try {
    return listenBun({
      hostname: room.settings.hostname,
      port,
      inherited: room.inheritance?.take(port),
      admit: socket => admission.admit(socket, false),
      accept,
      failed: error => room.failed(error),
    })
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
    throw new TunnelError(code === 'EACCES' ? 'PORT_NOT_ALLOWED' : 'PORT_TAKEN', undefined, { cause })
  }
}
