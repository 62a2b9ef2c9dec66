// The raw visitors of one tunnel. They are cut when the tunnel is removed.

import type { ErrorCode } from '../../errors.ts'
import type { Socket } from '../../socket.ts'
import { networkOf } from '../../wire/ip-address.ts'
import type { RawWay } from '../contracts/raw-visit.ts'
import { Takers } from '../limits/takers.ts'
import type { Tunnel } from '../tunnels/tunnel.ts'
import { RawVisitor } from './raw-visitor.ts'
import type { RawVisits } from './raw-visits.ts'

export class RawVisitors {
  readonly #tunnel: Tunnel
  readonly #visits: RawVisits
  readonly #open = new Set<RawVisitor>()
  readonly #takers = new Takers()

  constructor(tunnel: Tunnel, visits: RawVisits) {
    this.#tunnel = tunnel
    this.#visits = visits
  }

  /** Adds a visitor, which the caller then starts, with `refusal` if there is one. */
  add(socket: Socket, way: RawWay = {}): RawVisitor {
    const left = () => {
      this.#open.delete(visitor)
      this.#takers.delete(networkOf(visitor.address), visitor)
    }
    const visitor: RawVisitor = new RawVisitor(socket, this.#tunnel, this.#visits, left, way)
    this.#open.add(visitor)
    this.#takers.add(networkOf(visitor.address), visitor)
    return visitor
  }

  /** Returns why the visitor that was added last may not stay. `undefined` if it may. */
  refusalOf({ address }: RawVisitor): ErrorCode | undefined {
    if (this.#open.size <= this.#tunnel.tunnels.limits.maxStreams) return undefined
    return this.#takers.makeRoomFor(networkOf(address)) ? undefined : 'TUNNEL_BUSY'
  }

  cut(code: ErrorCode): void {
    for (const visitor of [...this.#open]) visitor.cut(code)
  }
}
