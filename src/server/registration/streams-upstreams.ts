// The upstreams of one client's tunnels on the streams wire: one for each tunnel, and one for each of its routes.

import type { Session } from '../../session/session.ts'
import type { Register, RegisterRoute } from '../../wire/control.ts'
import type { SessionLanes } from '../contracts/laning.ts'
import type { TunnelUpstream } from '../contracts/upstream.ts'
import { RoutedUpstream } from '../upstreams/routed.ts'
import { IdleStreams, StreamsUpstream } from '../upstreams/streams.ts'
import type { StreamsHost } from './streams-tunnels.ts'

export class StreamsUpstreams {
  readonly #session: Session
  readonly #host: StreamsHost
  readonly #lanes: SessionLanes | undefined
  readonly #idle = new IdleStreams()
  #nextTunnel = 1

  constructor(session: Session, host: StreamsHost, lanes: SessionLanes | undefined) {
    this.#session = session
    this.#host = host
    this.#lanes = lanes
  }

  /**
   * Makes the upstreams of a registration. `isShared`: other clients also have the tunnel. The upstreams of routes
   * get the numbers after the tunnel's.
   */
  make(message: Register, isShared: boolean): { readonly number: number; readonly upstream: TunnelUpstream } {
    const { routes = [], proxyProtocol } = message
    const number = this.#nextTunnel
    this.#nextTunnel += 1 + routes.length
    const of = (offset: number, app: Omit<RegisterRoute, 'path'>) =>
      this.#one(number + offset, app, isShared, proxyProtocol)
    const own = of(0, message)
    if (routes.length === 0) return { number, upstream: own }
    const ways = routes.map((route, index) => ({
      path: route.path,
      upstream: of(1 + index, route),
    }))
    return { number, upstream: new RoutedUpstream(own, ways) }
  }

  /** Makes one upstream. It is not inside of `make`, where it would keep the whole message in memory as long as its tunnel. */
  #one(
    tunnel: number,
    { hostHeader, protocol, wishes }: Omit<RegisterRoute, 'path'>,
    isShared: boolean,
    proxyProtocol: 1 | 2 | undefined,
  ): TunnelUpstream {
    const { server } = this.#host
    const session = this.#session
    const upstream = new StreamsUpstream({
      session,
      apps:
        protocol === undefined
          ? undefined
          : server.parts.appsOf?.({
              session,
              server,
              scheme: protocol === 'h2' ? 'https' : 'http',
            }),
      lanes: this.#lanes,
      tunnel,
      server,
      isShared,
      rewrite: hostHeader === undefined ? undefined : { host: hostHeader },
      proxyProtocol,
      idle: this.#idle,
      isStopped: false,
    })
    return server.parts.before(upstream, wishes)
  }
}
