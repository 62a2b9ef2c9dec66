// Datagrams as fast as one machine sends them, from one port and from thousands.

import type { Attack, Tally, Target } from '../scene/attack.ts'
import { add } from '../scene/wire.ts'

const DATAGRAMS_AT_ONCE = 200
const SOCKETS = 2_000

/** Sends from as many sockets as it is given, in turn. */
async function flood(
  target: Target,
  tally: Tally,
  until: AbortSignal,
  sockets: number,
  bytes: number,
): Promise<void> {
  const payload = Buffer.alloc(bytes, 'd')
  const open = await Promise.all(
    Array.from({ length: sockets }, () =>
      Bun.udpSocket({
        hostname: '127.0.0.66',
        connect: { hostname: '127.0.0.1', port: target.honestUdpPort },
        socket: { data() {}, error() {} },
      }),
    ),
  )
  for (let turn = 0; !until.aborted; turn++) {
    for (let count = 0; count < DATAGRAMS_AT_ONCE; count++) {
      open[(turn * DATAGRAMS_AT_ONCE + count) % open.length]?.send(payload)
    }
    add(tally, 'datagrams', DATAGRAMS_AT_ONCE)
    await Bun.sleep(0)
  }
  for (const socket of open) socket.close()
}

export const attacks: readonly Attack[] = [
  {
    name: 'datagrams-one-port',
    does: 'datagrams of 1,200 bytes from one port, to the UDP tunnel of the honest client',
    attack: (target, tally, until) => flood(target, tally, until, 1, 1_200),
  },
  {
    name: 'datagrams-many-ports',
    does: `small datagrams from ${SOCKETS} ports, each of which is a visitor of the UDP tunnel`,
    // A visitor is remembered for a minute, as a router's NAT does: `maxFlows` of them, each a socket at the client.
    bounds: { keptFiles: 1_100 },
    attack: (target, tally, until) => flood(target, tally, until, SOCKETS, 32),
  },
]
