// The public port of TLS tunnels: reads the name that a visitor asks for, and passes its bytes on unchanged. The
// server has no key for them.

import type { Place } from '../../directory.ts'
import type { Socket, SocketHandler } from '../../socket.ts'
import type { ServerContext } from '../context/server-context.ts'
import type { AdmittedConnection } from '../limits/admission.ts'
import type { Tunnel } from '../tunnels/tunnel.ts'
import { refusalOfName } from '../tunnels/tunnels.ts'
import { type Continuation, type Hello, HelloConnection, type HelloHost } from './hello.ts'
import type { RawVisits } from './raw-visits.ts'

export type TlsContext = Pick<ServerContext, 'deadlines' | 'destinationOf' | 'limits' | 'tunnels' | 'turns'> &
  Partial<Pick<ServerContext, 'servers' | 'settings'>>

/** Ends TLS for connections that belong to no TLS tunnel. */
export interface Terminator extends Pick<HelloHost, 'foreign'> {
  readonly sharesPort: boolean
  read(hello: Hello): Exclude<Continuation, (...passed: never) => unknown>
}

export class TlsFront {
  readonly #context: TlsContext
  readonly #visits: RawVisits
  /** Connections whose hello is not complete, in the order in which they came; above `maxHellos` the oldest is cut. */
  readonly #hellos = new Set<HelloConnection>()
  /** The number of connections whose bytes wait for their turn. */
  #waitingCount = 0

  constructor(context: TlsContext, visits: RawVisits) {
    this.#context = context
    this.#visits = visits
  }

  /** Accepts a connection. `terminator` serves the server's own names; without it, they count as unknown. */
  accept(socket: Socket, admitted: AdmittedConnection | undefined, terminator?: Terminator): SocketHandler {
    const connection = new HelloConnection(socket, {
      deadlines: this.#context.deadlines,
      helloTimeoutMs: this.#context.limits.headTimeoutMs,
      turns: this.#context.turns,
      waits: () => {
        // This connection sent its hello in time, so it is not cut for being the oldest. New connections are refused instead.
        if (this.#waitingCount >= this.#context.limits.maxHellos) return false
        this.#waitingCount++
        this.#hellos.delete(connection)
        return true
      },
      waited: () => {
        this.#waitingCount--
        this.#hellos.add(connection)
      },
      read: hello => {
        const mayBeTunnels = terminator?.sharesPort !== false && hello.name !== ''
        const isTunnels = mayBeTunnels && this.#isTunnels(hello.name)
        const goOn = (isTunnelsNow: boolean) => {
          if (!isTunnelsNow) return terminator?.read(hello)
          if (admitted?.isRefused()) return undefined
          return (passed: Socket, first: Uint8Array) => this.#visit(hello.name, passed, first, admitted)
        }
        return isTunnels instanceof Promise ? isTunnels.then(goOn) : goOn(isTunnels)
      },
      foreign: first => terminator?.foreign?.(first),
      settled: () => this.#hellos.delete(connection),
    })
    this.#hellos.add(connection)
    const { deadlines, limits } = this.#context
    deadlines.arm(connection, limits.idleTimeoutMs)
    // Cuts the oldest connection: the hello of an honest visitor arrives within a round trip.
    const [oldest] = this.#hellos
    if (this.#hellos.size > limits.maxHellos) oldest?.drop()
    return connection
  }

  /** Cuts connections whose handshake has not begun. Visitors of tunnels end with their tunnels. */
  stop(): void {
    for (const connection of [...this.#hellos]) connection.drop()
  }

  /** Whether TLS for this host goes to a tunnel unchanged. In a cluster this may need the directory. */
  #isTunnels(host: string): boolean | Promise<boolean> {
    if (tlsTunnelOf(this.#context, host) !== undefined) return true
    const { servers, settings } = this.#context
    const name = directoryNameOf(this.#context, host)
    const isAsked = name !== undefined && (name !== host || settings?.policy.opensHosts === true)
    const found = isAsked ? servers?.find(name) : undefined
    if (found === undefined) return false
    const isTls = (places: readonly Place[]) => places.some(place => place.isTls === true)
    // If the directory does not respond, hosts that are not known as a tunnel's are served here.
    return found instanceof Promise ? found.then(isTls, () => false) : isTls(found)
  }

  #visit(
    host: string,
    socket: Socket,
    first: Uint8Array,
    admitted: AdmittedConnection | undefined,
  ): SocketHandler {
    admitted?.stay()
    const find = () => tlsTunnelOf(this.#context, host)
    const name = directoryNameOf(this.#context, host) ?? host
    return this.#visits.accept(socket, { kind: 'tls', wanted: host, name, find }, first)
  }
}

export function tlsTunnelOf(
  context: Pick<TlsContext, 'destinationOf' | 'tunnels'>,
  host: string,
): Tunnel | undefined {
  const destination = context.destinationOf(host)
  if (destination.kind !== 'tunnel') return undefined
  const tunnel = context.tunnels.find(destination.name)
  if (tunnel?.kind !== 'tls') return undefined
  return destination.isBelow && !tunnel.isWildcard ? undefined : tunnel
}

/** Returns the name that a host's tunnel has in the directory. `undefined` if it has none. */
function directoryNameOf(context: Pick<TlsContext, 'destinationOf'>, host: string): string | undefined {
  const destination = context.destinationOf(host)
  if (destination.kind === 'tunnel')
    return refusalOfName(destination.name) === undefined ? destination.name : undefined
  return destination.kind === 'unknown' ? host : undefined
}
