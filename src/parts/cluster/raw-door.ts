// Takes raw visitors that other servers pass on: they are joined to the tunnel of this server, and never passed on again.

import { type Arrival, type Route, refusal } from '../../server/contracts/front.ts'
import type { WholeServer } from '../../server/contracts/part.ts'
import { UNHEARD } from '../../server/contracts/raw-visit.ts'
import type { RawPassenger } from '../../server/contracts/servers.ts'
import type { Endpoints, Socket } from '../../socket.ts'
import { provedRoute } from './challenge.ts'
import type { Cluster } from './cluster.ts'
import { FramedSocket } from './framed-socket.ts'
import { passengerOf, RAW_ANSWERS } from './peer-wire.ts'

/** The silence in milliseconds before keepalive probes, as for raw visitors. */
const KEEP_ALIVE_MS = 60_000

/** Takes a raw visitor from a server of the same cluster; others are refused. */
export function rawRoute(arrival: Arrival, cluster: Cluster, whole: WholeServer): Route {
  const passenger = passengerOf(arrival.head)
  if (passenger === undefined) return refusal('BAD_REQUEST')
  return provedRoute(arrival, cluster, socket => {
    socket.write(RAW_ANSWERS.taken)
    socket.keepAlive?.(KEEP_ALIVE_MS)
    const passed = new PassedSocket(socket, passenger.endpoints)
    enter(passed, passenger, whole)
    return passed
  })
}

function enter(passed: PassedSocket, passenger: RawPassenger, whole: WholeServer): void {
  const tunnel = whole.tunnelFor(passenger.kind, passenger.wanted)
  if (tunnel === undefined || tunnel.kind !== passenger.kind) return passed.leave('moved')
  if (passenger.kind === 'udp') {
    const { address } = passenger.endpoints.source
    const handler = tunnel.front?.takeFlow?.(passed, address, () => passed.open())
    if (handler === undefined) return passed.leave('moved')
    passed.handler = handler
    return
  }
  const way = { opened: () => passed.open(), moved: () => passed.leave('moved') }
  const visitor = whole.raw.take(passed, tunnel, way)
  passed.handler = visitor.socketHandler
  visitor.start()
}

/** The connection of a raw visitor at another server. */
class PassedSocket extends FramedSocket {
  readonly #below: Socket
  readonly #endpoints: Endpoints
  #isOpen = false

  constructor(socket: Socket, endpoints: Endpoints) {
    super(socket, UNHEARD)
    this.#below = socket
    this.#endpoints = endpoints
  }

  /** Opens the connection: from now on it carries the visitor's bytes. */
  open(): void {
    this.#isOpen = true
    this.#below.write(RAW_ANSWERS.opened)
  }

  /** Refuses the visitor. The other server closes the connection. */
  leave(why: 'moved' | 'refused'): void {
    this.handler = UNHEARD
    this.#below.write(RAW_ANSWERS[why])
    this.#below.end()
  }

  override terminate(): void {
    if (this.#isOpen) return super.terminate()
    const { handler } = this
    this.leave('refused')
    handler.closed()
  }

  override get remoteAddress(): string {
    return this.#endpoints.source.address
  }

  override endpoints(): Endpoints {
    return this.#endpoints
  }
}
