// Where each request goes: to the control host, to a tunnel's client, into a wait, or to an error page.

import type { Branding } from '../../branding.ts'
import type { RequestHead } from '../../http/head.ts'
import { PROBE_HEADER } from '../../wire/control.ts'
import type { ServerRoom } from '../context/room.ts'
import { type Arrival, type Route, refusal } from '../contracts/front.ts'
import { DEAD_EXCHANGE, type Exchange, type Upstream, type Visit } from '../contracts/upstream.ts'
import type { Member } from '../tunnels/member.ts'
import type { Tunnel } from '../tunnels/tunnel.ts'
import { type NamedTunnel, refusalOfName } from '../tunnels/tunnels.ts'
import { Booking, type BookingHost } from './booking.ts'
import type { Exchanges } from './exchanges.ts'
import type { StartupHold } from './startup-hold.ts'

export class Serving implements BookingHost {
  readonly books: Exchanges
  readonly room: ServerRoom
  readonly #startupHold: StartupHold
  /** Where requests to the control host go. */
  readonly #control: (arrival: Arrival) => Route

  constructor(
    room: ServerRoom,
    books: Exchanges,
    startupHold: StartupHold,
    control: (arrival: Arrival) => Route,
  ) {
    this.room = room
    this.books = books
    this.#startupHold = startupHold
    this.#control = control
  }

  book(arrival: Arrival): Booking {
    const booking = new Booking(arrival, this)
    booking.route = this.routeSafely(() => this.#route(booking))
    return booking
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
    this.room.failed(cause instanceof Error ? cause : new Error(String(cause)))
  }

  get branding(): Branding | undefined {
    return this.room.settings.branding
  }

  routeAgain(booking: Booking): Route {
    return this.#route(booking)
  }

  #route(booking: Booking): Route {
    const { arrival, head } = booking
    const { limits, settings, state } = this.room
    if (limits.maxBodyBytes > 0 && head.contentLength > limits.maxBodyBytes) return refusal('BODY_TOO_LARGE')
    // While it drains, requests are served on the connections that are there. A request that could last does not begin.
    if (state === 'stopped') return leaving(booking)
    const isDraining = state === 'draining'
    const destination = this.room.destinationOf(head.host)
    if (destination.kind === 'control') {
      // Of other servers, visitors still come here.
      const entered = head.upgrade === '' ? undefined : this.room.parts.enter(arrival)
      if (entered !== undefined) return entered
      if (head.upgrade !== '' && settings.clientCa && !arrival.isCertified)
        return refusal('CLIENT_CERTIFICATE_MISSING')
      if (head.upgrade !== '' && isDraining) return refusal('SERVER_DRAINING')
      return this.#control(arrival)
    }
    if (isDraining && head.upgrade !== '') return leaving(booking)
    if (arrival.isRefused()) return refusal('VISITOR_LIMIT')
    if (destination.kind === 'unknown') return this.#routeToUnknown(booking)
    return this.#routeToTunnel(booking, destination)
  }

  /** Routes a request for an unknown host: after a restart its client may still be on the way. */
  #routeToUnknown(booking: Booking): Route {
    const { host } = booking.head
    const banned = this.#judge(booking)
    if (banned !== undefined) return banned
    if (!this.room.settings.policy.opensHosts) return refusal('HOST_UNKNOWN')
    return this.room.parts.nameRouter({
      request: booking,
      name: host,
      here: () => this.#routeToAwaited(booking),
      again: () => this.#route(booking),
      kept: () => undefined,
    })
  }

  #routeToAwaited(booking: Booking): Route {
    const { host } = booking.head
    if (!this.#startupHold.isAwaited(host)) return refusal('HOST_UNKNOWN')
    return this.#startupHold.holding(host, this.#ownAddress(booking), () => {
      const destination = this.room.destinationOf(host)
      return destination.kind === 'tunnel'
        ? this.#routeToTunnel(booking, destination)
        : refusal('HOST_UNKNOWN')
    })
  }

  #routeToTunnel(booking: Booking, named: NamedTunnel): Route {
    const { name } = named
    const tunnel = this.room.tunnels.find(name)
    // With its client there, the tunnel's gate judges. Without one nothing waits for it, and no webhook is kept.
    const banned = tunnel?.upstream === undefined ? this.#judge(booking) : undefined
    if (banned !== undefined) return banned
    if (tunnel !== undefined || !this.#mayBeClaimed(name)) return this.#routeHere(booking, named)
    return this.room.parts.nameRouter({
      request: booking,
      name,
      here: () => this.#routeHere(booking, named),
      again: () => this.#route(booking),
      kept: () => (named.isBelow ? undefined : this.#kept(booking, name, undefined)),
    })
  }

  #routeHere(booking: Booking, { name, isBelow }: NamedTunnel): Route {
    const { arrival, head } = booking
    const tunnel = this.room.tunnels.find(name)
    const keptFor = arrival.from?.keptFor
    // It was kept for another client than the one that has the name by now.
    if (keptFor !== undefined && tunnel !== undefined && tunnel.holder?.rule.id !== keptFor)
      return booking.moved()
    const kept = isBelow ? undefined : this.#kept(booking, name, tunnel)
    if (kept !== undefined) return kept
    if (arrival.from?.isCopy === true && tunnel?.kind === 'http') return booking.to(tunnel, isBelow)
    if (tunnel === undefined && this.#startupHold.isAwaited(name) && this.#mayBeClaimed(name))
      return this.#startupHold.holding(name, this.#ownAddress(booking), () =>
        this.#routeToTunnel(booking, { name, isBelow }),
      )
    if (isBelow && tunnel?.isWildcard !== true) return refusal('HOST_UNKNOWN')
    if (tunnel?.kind !== 'http') return refusal('TUNNEL_NOT_FOUND')
    const prober = proberOf(head, tunnel)
    if (prober !== undefined) return { kind: 'upstream', upstream: probeUpstream(prober) }
    return booking.to(tunnel, isBelow)
  }

  /** Returns the route while the client of the name is away. `undefined` if the request waits. */
  #kept(booking: Booking, name: string, tunnel: Tunnel | undefined): Route | undefined {
    if (booking.arrival.from?.keptFor !== undefined || tunnel?.upstream !== undefined) return undefined
    const token = tunnel && (tunnel.holder?.rule.id ?? '')
    // Its address is looked for only here: requests whose client is there do not need it.
    const upstream = this.room.parts.kept(name, token, booking.head, booking.address)
    return upstream && { kind: 'upstream', upstream }
  }

  /** The operator keeps the visitor away; `undefined`: it may come. */
  #judge({ address }: Booking): Route | undefined {
    const code = this.room.parts.judge(address)
    return code && refusal(code)
  }

  /** Returns the address of the visitor, also behind trusted proxies. Empty if a proxy does not name it. */
  #ownAddress({ address }: Booking): string {
    return this.room.isTrusted(address) ? '' : address
  }

  /** Whether a client could have this name: for no other it is worth while to wait. */
  #mayBeClaimed(name: string): boolean {
    return refusalOfName(name) === undefined && !this.room.settings.reservedNames.has(name)
  }
}

/** The server stops. Of the cluster's other servers each finds out where the client goes. */
function leaving(booking: Booking): Route {
  return booking.arrival.from?.moved === undefined ? refusal('SERVER_DRAINING') : booking.moved()
}

/**
 * Whose own probe the request is, if it is one of a client that holds the tunnel. Only who knows the resume secret can ask, so nothing of the
 * app is shadowed; only HEAD is looked at, so that other requests do not pay for the look.
 */
export function proberOf(head: RequestHead, tunnel: Tunnel): Member | undefined {
  return head.method === 'HEAD' ? tunnel.memberProbedBy(head.header(PROBE_HEADER)) : undefined
}

/** Answers 204 after a round trip to the client. */
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
