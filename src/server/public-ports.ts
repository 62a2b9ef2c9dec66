// Opens the public ports of TCP and UDP tunnels.

import { TunnelError } from '../errors.ts'
import { eventLoop } from '../event-loop.ts'
import { Turns } from '../session/turns.ts'
import type { Admission } from './admission.ts'
import type { ClaimHost } from './claims.ts'
import { listenTcp } from './fronts/tcp.ts'
import type { Holder } from './holdings.ts'
import type { RawVisits } from './raw-visits.ts'
import type { ServerRoom } from './room.ts'
import type { PortFront, Tunnel } from './tunnels.ts'

type PortOpeners = ClaimHost['open']

export class PublicPorts implements PortOpeners {
  readonly #room: ServerRoom
  readonly #visits: RawVisits
  readonly #admission: Admission
  readonly #udpTurns: Turns

  constructor(room: ServerRoom, visits: RawVisits, admission: Admission) {
    this.#room = room
    this.#visits = visits
    this.#admission = admission
    this.#udpTurns = new Turns(eventLoop, error => room.failed(error))
  }

  tcp(tunnel: Tunnel): PortFront {
    this.#checkRoom(tunnel)
    return listenTcp(tunnel, this.#room, this.#visits, this.#admission)
  }

  async udp(tunnel: Tunnel): Promise<PortFront> {
    this.#checkRoom(tunnel)
    const { listenUdp } = await import('./fronts/udp.ts')
    return listenUdp(tunnel, this.#room, this.#visits.gate, this.#udpTurns)
  }

  /** Whether one more connection or port of a client leaves enough descriptors for others. */
  hasRoomFor(holder: Holder): boolean {
    return this.#admission.hasRoomForClient(holder.descriptorCount, this.#room.holdings.descriptorCount)
  }

  #checkRoom({ members: [first] }: Tunnel): void {
    if (first !== undefined && !this.hasRoomFor(first.holder)) throw new TunnelError('CLIENT_LIMIT')
  }
}
