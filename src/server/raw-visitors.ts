// The raw visitors of one tunnel: they go when it does.

import type { ErrorCode } from '../errors.ts'
import type { Socket } from '../socket.ts'
import type { RawWay } from './raw-visit.ts'
import { RawVisitor } from './raw-visitor.ts'
import type { RawVisits } from './raw-visits.ts'
import type { Tunnel } from './tunnel.ts'

export class RawVisitors {
  readonly #tunnel: Tunnel
  readonly #visits: RawVisits
  readonly #open = new Set<RawVisitor>()

  constructor(tunnel: Tunnel, visits: RawVisits) {
    this.#tunnel = tunnel
    this.#visits = visits
  }

  /** One more; its caller starts it, with `refusal`. */
  add(socket: Socket, way: RawWay = {}): RawVisitor {
    const left = () => void this.#open.delete(visitor)
    const visitor: RawVisitor = new RawVisitor(socket, this.#tunnel, this.#visits, left, way)
    this.#open.add(visitor)
    return visitor
  }

  /** Why the one that was added last may not stay; `undefined`: it may. */
  get refusal(): ErrorCode | undefined {
    return this.#open.size > this.#tunnel.tunnels.limits.maxStreams ? 'TUNNEL_BUSY' : undefined
  }

  cut(code: ErrorCode): void {
    for (const visitor of [...this.#open]) visitor.cut(code)
  }
}
