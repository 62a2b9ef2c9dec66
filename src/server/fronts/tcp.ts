// A public TCP port: each connection to it becomes a stream to the origin of its tunnel.

import { TunnelError } from '../../errors.ts'
import { type Listening, listenBun } from '../../sockets/bun.ts'
import type { ServerRoom } from '../context/room.ts'
import type { RawWish } from '../contracts/raw-visit.ts'
import type { Admission } from '../limits/admission.ts'
import type { RawVisits } from './raw-visits.ts'

/** Listens for the visitors of a port. Throws `PORT_TAKEN` or `NOT_ALLOWED`. */
export function listenTcp(
  port: number,
  room: ServerRoom,
  visits: RawVisits,
  admission: Admission,
): Listening {
  const name = `tcp-${port}`
  const wish: RawWish = { kind: 'tcp', wanted: `${port}`, name, find: () => room.tunnels.find(name) }
  try {
    return listenBun({
      hostname: room.settings.hostname,
      port,
      // Workers: the client may be at this one now, while the one before is about to hear of it; and a pool has clients at several.
      sharesPort: room.servers?.isOneMachine === true,
      inherited: room.inheritance?.take(port),
      admit: socket => admission.admit(socket, false),
      accept: (socket, seat) => {
        seat?.stay()
        return visits.accept(socket, wish)
      },
      failed: error => room.failed(error),
    })
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
    throw new TunnelError(code === 'EACCES' ? 'NOT_ALLOWED' : 'PORT_TAKEN', undefined, { cause })
  }
}
