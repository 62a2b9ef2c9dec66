// The public port of TLS tunnels: reads which name a visitor asks for, and passes its bytes on as they are. The server
// has no key to any of them.

import type { ErrorCode } from '../../errors.ts'
import type { Socket, SocketHandler } from '../../socket.ts'
import type { Seat } from '../admission.ts'
import { type Continuation, type Hello, HelloConnection, type HelloHost } from '../hello.ts'
import { RawVisitor } from '../raw-visitor.ts'
import type { RawVisits } from '../raw-visits.ts'
import type { ServerRoom } from '../room.ts'
import type { Tunnel } from '../tunnels.ts'

/** As for TCP tunnels: who is silent may still be there. */
const KEEP_ALIVE_MS = 60_000

/** What a TLS front needs of its server. */
export type TlsRoom = Pick<ServerRoom, 'deadlines' | 'destinationOf' | 'limits' | 'tunnels' | 'turns'>

/** What ends TLS of connections that are for no TLS tunnel. */
export interface Terminator extends Pick<HelloHost, 'foreign'> {
  /** Whether TLS tunnels are on this port, too. */
  readonly sharesPort: boolean
  read(hello: Hello): Exclude<Continuation, (...passed: never) => unknown>
}

export class TlsFront {
  readonly #room: TlsRoom
  readonly #visits: RawVisits
  /** Connections whose hello is not complete, in the order in which they came; above `maxHellos` the oldest is cut. */
  readonly #hellos = new Set<HelloConnection>()
  /** Those whose bytes wait for their turn. */
  #waitingCount = 0
  readonly #visitors = new Map<Tunnel, Set<RawVisitor>>()

  constructor(room: TlsRoom, visits: RawVisits) {
    this.#room = room
    this.#visits = visits
  }

  /** `terminator`: for names of the server's own; without it they are as unknown as any other. */
  accept(socket: Socket, seat: Seat | undefined, terminator?: Terminator): SocketHandler {
    const connection = new HelloConnection(socket, {
      deadlines: this.#room.deadlines,
      turns: this.#room.turns,
      waits: () => {
        // It sent its part in time, so it is not cut for being the oldest. Those that come last have no place then.
        if (this.#waitingCount >= this.#room.limits.maxHellos) return false
        this.#waitingCount++
        this.#hellos.delete(connection)
        return true
      },
      waited: () => {
        this.#waitingCount--
        this.#hellos.add(connection)
      },
      read: hello => {
        const isTunnels = terminator?.sharesPort !== false && hello.name !== ''
        const tunnel = isTunnels ? this.#find(hello.name) : undefined
        if (tunnel === undefined) return terminator?.read(hello)
        if (seat?.isRefused()) return undefined
        return (passed, first) => this.#visit(tunnel, passed, first, seat)
      },
      foreign: first => terminator?.foreign?.(first),
      settled: () => this.#hellos.delete(connection),
    })
    this.#hellos.add(connection)
    const { deadlines, limits } = this.#room
    deadlines.arm(connection, limits.headTimeoutMs)
    // The oldest one is cut: the hello of an honest visitor arrives within a round trip.
    const [oldest] = this.#hellos
    if (this.#hellos.size > limits.maxHellos) oldest?.drop()
    return connection
  }

  /** Cuts those whose handshake has not begun. Visitors are their tunnels' business. */
  stop(): void {
    for (const connection of [...this.#hellos]) connection.drop()
  }

  /** The TLS tunnel that has this name. */
  #find(name: string): Tunnel | undefined {
    const destination = this.#room.destinationOf(name)
    if (destination.kind !== 'tunnel') return undefined
    const tunnel = this.#room.tunnels.find(destination.name)
    if (tunnel?.kind !== 'tls') return undefined
    return destination.isBelow && !tunnel.isWildcard ? undefined : tunnel
  }

  #visit(tunnel: Tunnel, socket: Socket, first: Uint8Array, seat: Seat | undefined): SocketHandler {
    seat?.stay()
    socket.keepAlive?.(KEEP_ALIVE_MS)
    const visitors = this.#visitorsOf(tunnel)
    const leave = () => visitors.delete(visitor)
    const visitor: RawVisitor = new RawVisitor(socket, tunnel, this.#visits, leave, first)
    visitors.add(visitor)
    visitor.start(visitors.size > this.#room.limits.maxStreams ? 'TUNNEL_BUSY' : undefined)
    return visitor.socketHandler
  }

  /** The visitors of a tunnel; they go when it does. */
  #visitorsOf(tunnel: Tunnel): Set<RawVisitor> {
    const known = this.#visitors.get(tunnel)
    if (known !== undefined) return known
    const visitors = new Set<RawVisitor>()
    this.#visitors.set(tunnel, visitors)
    tunnel.front = {
      // The port is the server's.
      drain() {},
      release: () => void this.#visitors.delete(tunnel),
      stop: (code: ErrorCode) => {
        this.#visitors.delete(tunnel)
        for (const visitor of [...visitors]) visitor.cut(code)
      },
    }
    return visitors
  }
}
