// Routes each request: to the control host, a tunnel's client, a wait, or an error page.

import type { Branding } from '../../branding.ts'
import { errorOf } from '../../errors.ts'
import type { RequestHead } from '../../http/head.ts'
import { PROBE_HEADER } from '../../wire/control.ts'
import type { ServerContext } from '../context/server-context.ts'
import { type Arrival, type Route, refusal } from '../contracts/front.ts'
import { DEAD_EXCHANGE, type Exchange, type Upstream, type Visit } from '../contracts/upstream.ts'
import type { Member } from '../tunnels/member.ts'
import type { Tunnel } from '../tunnels/tunnel.ts'
import { type NamedTunnel, refusalOfName } from '../tunnels/tunnels.ts'
import type { Exchanges } from './exchanges.ts'
import { type RequestHost, RoutedRequest } from './routed-request.ts'
import type { StartupHold } from './startup-hold.ts'

export class Serving implements RequestHost {
  readonly books: Exchanges
  readonly context: ServerContext
  readonly #startupHold: StartupHold
  /** Routes requests to the control host. */
  readonly #control: (arrival: Arrival) => Route

  constructor(
    context: ServerContext,
    books: Exchanges,
    startupHold: StartupHold,
    control: (arrival: Arrival) => Route,
  ) {
    this.context = context
    this.books = books
    this.#startupHold = startupHold
    this.#control = control
  }

  accept(arrival: Arrival): RoutedRequest {
    const request = new RoutedRequest(arrival, this)
    request.route = this.routeSafely(() => this.#route(request))
    return request
  }

  routeSafely(route: () => Route): Route {
    try {
      return route()
    } catch (cause) {
      this.failed(cause)
      return refusal('INTERNAL')
    }
  }

  failed(cause: unknown): void {
    this.context.failed(errorOf(cause))
  }

  get branding(): Branding | undefined {
    return this.context.settings.branding
  }

  routeAgain(request: RoutedRequest): Route {
    return this.#route(request)
  }

  #route(request: RoutedRequest): Route {
    const { arrival, head } = request
    const { limits, settings, state } = this.context
    if (limits.maxBodyBytes > 0 && head.contentLength > limits.maxBodyBytes) return refusal('BODY_TOO_LARGE')
    // A server that drains still serves requests on open connections, but no WebSocket begins.
    if (state === 'stopped') return leaving(request)
    const isDraining = state === 'draining'
    const destination = this.context.destinationOf(head.host)
    if (destination.kind === 'control') {
      // Visitors of other servers may still be sent here.
      const entered = head.upgrade === '' ? undefined : this.context.parts.enter(arrival)
      if (entered !== undefined) return entered
      if (head.upgrade !== '' && settings.clientCa && !arrival.isCertified)
        return refusal('CLIENT_CERTIFICATE_MISSING')
      if (head.upgrade !== '' && isDraining) return refusal('SERVER_DRAINING')
      return this.#control(arrival)
    }
    if (isDraining && head.upgrade !== '') return leaving(request)
    if (arrival.isRefused()) return refusal('VISITOR_LIMIT')
    if (destination.kind === 'unknown') return this.#routeToUnknown(request)
    return this.#routeToTunnel(request, destination)
  }

  /** Routes a request for an unknown host. After a restart, its client may still be reconnecting. */
  #routeToUnknown(request: RoutedRequest): Route {
    const { host } = request.head
    const banned = this.#judge(request)
    if (banned !== undefined) return banned
    if (!this.context.settings.policy.opensHosts) return refusal('HOST_UNKNOWN')
    return this.context.parts.nameRouter({
      request: request,
      name: host,
      here: () => this.#routeToAwaited(request),
      again: () => this.#route(request),
      kept: () => undefined,
    })
  }

  #routeToAwaited(request: RoutedRequest): Route {
    const { host } = request.head
    if (!this.#startupHold.isAwaited(host)) return refusal('HOST_UNKNOWN')
    return this.#startupHold.holding(host, this.#ownAddress(request), () => {
      const destination = this.context.destinationOf(host)
      return destination.kind === 'tunnel'
        ? this.#routeToTunnel(request, destination)
        : refusal('HOST_UNKNOWN')
    })
  }

  #routeToTunnel(request: RoutedRequest, named: NamedTunnel): Route {
    const { name } = named
    const tunnel = this.context.tunnels.find(name)
    // The layers of a tunnel with a client check bans. Without one, banned visitors must not wait or store webhooks.
    const banned = tunnel?.upstream === undefined ? this.#judge(request) : undefined
    if (banned !== undefined) return banned
    if (tunnel !== undefined || !this.#mayBeClaimed(name)) return this.#routeHere(request, named)
    return this.context.parts.nameRouter({
      request: request,
      name,
      here: () => this.#routeHere(request, named),
      again: () => this.#route(request),
      kept: () => (named.isBelow ? undefined : this.#kept(request, name, undefined)),
    })
  }

  #routeHere(request: RoutedRequest, { name, isBelow }: NamedTunnel): Route {
    const { arrival, head } = request
    const tunnel = this.context.tunnels.find(name)
    const keptFor = arrival.from?.keptFor
    // The webhook was stored for another owner than the current one of the name.
    if (keptFor !== undefined && tunnel !== undefined && tunnel.holder?.rule.id !== keptFor)
      return request.moved()
    const kept = isBelow ? undefined : this.#kept(request, name, tunnel)
    if (kept !== undefined) return kept
    if (arrival.from?.isCopy === true && tunnel?.kind === 'http') return request.to(tunnel, isBelow)
    if (tunnel === undefined && this.#startupHold.isAwaited(name) && this.#mayBeClaimed(name))
      return this.#startupHold.holding(name, this.#ownAddress(request), () =>
        this.#routeToTunnel(request, { name, isBelow }),
      )
    if (isBelow && tunnel?.isWildcard !== true) return refusal('HOST_UNKNOWN')
    if (tunnel?.kind !== 'http') return refusal('TUNNEL_NOT_FOUND')
    const prober = proberOf(head, tunnel)
    if (prober !== undefined) return { kind: 'upstream', upstream: probeUpstream(prober) }
    return request.to(tunnel, isBelow)
  }

  /** Returns the route while the client of the name is away. `undefined` if the request waits. */
  #kept(request: RoutedRequest, name: string, tunnel: Tunnel | undefined): Route | undefined {
    if (request.arrival.from?.keptFor !== undefined || tunnel?.upstream !== undefined) return undefined
    const token = tunnel && (tunnel.holder?.rule.id ?? '')
    // The address is looked up only here: requests with a connected client do not need it.
    const upstream = this.context.parts.kept(name, token, request.head, request.address)
    return upstream && { kind: 'upstream', upstream }
  }

  /** Returns the refusal of a banned visitor. `undefined` if it may come. */
  #judge({ address }: RoutedRequest): Route | undefined {
    const code = this.context.parts.judge(address)
    return code && refusal(code)
  }

  /** Returns the address of the visitor, even behind trusted proxies. Empty if the proxy does not name it. */
  #ownAddress({ address }: RoutedRequest): string {
    return this.context.isTrusted(address) ? '' : address
  }

  /** Whether a client could have this name. Requests for other names do not wait. */
  #mayBeClaimed(name: string): boolean {
    return refusalOfName(name) === undefined && !this.context.settings.reservedNames.has(name)
  }
}

/** Refuses a request because the server stops. The cluster's other servers each find out where the client reconnects. */
function leaving(request: RoutedRequest): Route {
  return request.arrival.from?.moved === undefined ? refusal('SERVER_DRAINING') : request.moved()
}

/**
 * Returns the member whose client sent this request to probe its own tunnel. The proof needs the resume secret, so it
 * never hides a path of the app. Only HEAD is checked, so that other requests cost nothing.
 */
export function proberOf(head: RequestHead, tunnel: Tunnel): Member | undefined {
  return head.method === 'HEAD' ? tunnel.memberProbedBy(head.header(PROBE_HEADER)) : undefined
}

/** Returns an upstream that responds with 204 after a round trip to the client. */
export function probeUpstream(member: Member): Upstream {
  return {
    wire: 'streams',
    inFlight: 0,
    begin(visit: Visit): Exchange {
      let isOver = false
      const answer = async () => {
        const isAlive = (await member.client?.checkAlive()) ?? false
        if (isOver) return
        if (!isAlive) return visit.fail('CLIENT_GONE')
        visit.answered(204)
        visit.write(
          Buffer.from(`HTTP/1.1 204 No Content\r\n${PROBE_HEADER}: ok\r\nConnection: close\r\n\r\n`),
        )
        visit.done(false)
      }
      return {
        ...DEAD_EXCHANGE,
        bodyEnded: () => void answer(),
        abandoned: () => {
          isOver = true
        },
      }
    },
  }
}
