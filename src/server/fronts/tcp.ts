// A public TCP port: each connection to it becomes a stream to the origin of its tunnel.

import { TunnelError } from '../../errors.ts'
import { type Listening, listenBun } from '../../sockets/bun.ts'
import type { ServerContext } from '../context/server-context.ts'
import type { RawWish } from '../contracts/raw-visit.ts'
import type { Admission } from '../limits/admission.ts'
import type { RawVisits } from './raw-visits.ts'

/** Listens for the visitors of a port. Throws `PORT_TAKEN` or `NOT_ALLOWED`. */
export function listenTcp(
  port: number,
  context: ServerContext,
  visits: RawVisits,
  admission: Admission,
): Listening {
  const name = `tcp-${port}`
  const wish: RawWish = { kind: 'tcp', wanted: `${port}`, name, find: () => context.tunnels.find(name) }
  try {
    return listenBun({
      hostname: context.settings.hostname,
      port,
      // Worker processes share a port: a client may have just moved to this one, and a pool has clients at several.
      sharesPort: context.servers?.isOneMachine === true,
      inherited: context.inheritance?.take(port),
      admit: socket => admission.admit(socket, false),
      accept: (socket, admitted) => {
        admitted?.stay()
        return visits.accept(socket, wish)
      },
      failed: error => context.failed(error),
    })
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
    throw new TunnelError(code === 'EACCES' ? 'NOT_ALLOWED' : 'PORT_TAKEN', undefined, { cause })
  }
}
