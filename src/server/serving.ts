// Where each request goes: to the control host, to a tunnel's client, into a wait, or to an error page.

import type { Branding } from '../branding.ts'
import { Booking, type BookingDesk, type BookingHost } from './booking.ts'
import { type ControlHost, controlRoute } from './control.ts'
import type { Exchanges } from './exchanges.ts'
import { type Arrival, type Route, refusal } from './front.ts'
import type { Parts } from './parts.ts'
import { proberOf, probeUpstream } from './probe.ts'
import type { ServerRoom } from './room.ts'
import type { NamedTunnel } from './route.ts'
import type { StartupHold } from './startup-hold.ts'
import type { Tunnel } from './tunnel.ts'
import { refusalOfName } from './tunnels.ts'
import type { VisitorGate } from './visitor-gate.ts'

export class Serving implements BookingDesk, BookingHost {
  readonly books: Exchanges
  readonly gate: VisitorGate
  readonly #room: ServerRoom
  readonly #startupHold: StartupHold
  readonly #control: ControlHost

  constructor(
    room: ServerRoom,
    books: Exchanges,
    gate: VisitorGate,
    startupHold: StartupHold,
    control: ControlHost,
  ) {
    this.#room = room
    this.books = books
    this.gate = gate
    this.#startupHold = startupHold
    this.#control = control
  }

  book(arrival: Arrival): Booking {
    const booking = new Booking(arrival, this)
    booking.route = this.routeSafely(() => this.#route(arrival, booking))
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
    this.#room.failed(cause instanceof Error ? cause : new Error(String(cause)))
  }

  get branding(): Branding | undefined {
    return this.#room.settings.branding
  }

  get isSecure(): boolean {
    return this.#room.isSecure
  }

  isSecureBefore({ head, remoteAddress }: Arrival): boolean {
    return this.#room.isTrusted(remoteAddress) && head.header('x-forwarded-proto')?.toLowerCase() === 'https'
  }

  get parts(): Parts {
    return this.#room.parts
  }

  addressOf(arrival: Arrival): string {
    return this.#room.addressOf(arrival)
  }

  routeAgain(arrival: Arrival, booking: Booking): Route {
    return this.#route(arrival, booking)
  }

  #route(arrival: Arrival, booking: Booking): Route {
    const { head } = arrival
    const { limits, settings, state } = this.#room
    if (limits.maxBodyBytes > 0 && head.contentLength > limits.maxBodyBytes) return refusal('BODY_TOO_LARGE')
    // While it drains, requests are served on the connections that are there. What could last is not begun.
    if (state === 'stopped') return leaving(arrival, booking)
    const isDraining = state === 'draining'
    const destination = this.#room.destinationOf(head.host)
    if (destination.kind === 'control') {
      // Of other servers, visitors still come here.
      const entered = head.upgrade === '' ? undefined : this.parts.enter(arrival)
      if (entered !== undefined) return entered
      if (head.upgrade !== '' && settings.clientCa && !arrival.isCertified)
        return refusal('CLIENT_CERTIFICATE_MISSING')
      if (head.upgrade !== '' && isDraining) return refusal('SERVER_DRAINING')
      return controlRoute(arrival, this.#control)
    }
    if (isDraining && head.upgrade !== '') return leaving(arrival, booking)
    if (arrival.isRefused()) return refusal('VISITOR_LIMIT')
    if (destination.kind === 'unknown') return this.#routeToUnknown(arrival, booking)
    return this.#routeToTunnel(arrival, booking, destination)
  }

  /** After a restart it may be the host of a tunnel whose client is on its way back. */
  #routeToUnknown(arrival: Arrival, booking: Booking): Route {
    const { host } = arrival.head
    const banned = this.#judge(arrival)
    if (banned !== undefined) return banned
    if (!this.#room.settings.policy.opensHosts) return refusal('HOST_UNKNOWN')
    return this.parts.nameRouter({
      request: booking,
      name: host,
      here: () => this.#routeToAwaited(arrival, booking),
      again: () => this.#route(arrival, booking),
      kept: () => undefined,
    })
  }

  #routeToAwaited(arrival: Arrival, booking: Booking): Route {
    const { host } = arrival.head
    if (!this.#startupHold.isAwaited(host)) return refusal('HOST_UNKNOWN')
    return this.#startupHold.holding(host, this.#ownAddress(arrival), () => {
      const destination = this.#room.destinationOf(host)
      return destination.kind === 'tunnel'
        ? this.#routeToTunnel(arrival, booking, destination)
        : refusal('HOST_UNKNOWN')
    })
  }

  #routeToTunnel(arrival: Arrival, booking: Booking, named: NamedTunnel): Route {
    const { name } = named
    const tunnel = this.#room.tunnels.find(name)
    // With its client there, the tunnel's gate judges. Without one nothing waits for it, and no webhook is kept.
    const banned = tunnel?.upstream === undefined ? this.#judge(arrival) : undefined
    if (banned !== undefined) return banned
    if (tunnel !== undefined || !this.#mayBeClaimed(name)) return this.#routeHere(arrival, booking, named)
    return this.parts.nameRouter({
      request: booking,
      name,
      here: () => this.#routeHere(arrival, booking, named),
      again: () => this.#route(arrival, booking),
      kept: () => (named.isBelow ? undefined : this.#kept(arrival, name, undefined)),
    })
  }

  #routeHere(arrival: Arrival, booking: Booking, { name, isBelow }: NamedTunnel): Route {
    const tunnel = this.#room.tunnels.find(name)
    const { keptFor, isCopy } = arrival.from ?? {}
    // It was kept for another client than the one that has the name by now.
    if (keptFor !== undefined && tunnel !== undefined && tunnel.holder?.rule.id !== keptFor)
      return booking.moved()
    const kept = isBelow ? undefined : this.#kept(arrival, name, tunnel)
    if (kept !== undefined) return kept
    if (isCopy === true && tunnel?.kind === 'http') return booking.to(tunnel, isBelow)
    if (tunnel === undefined && this.#startupHold.isAwaited(name) && this.#mayBeClaimed(name))
      return this.#startupHold.holding(name, this.#ownAddress(arrival), () =>
        this.#routeToTunnel(arrival, booking, { name, isBelow }),
      )
    if (isBelow && tunnel?.isWildcard !== true) return refusal('HOST_UNKNOWN')
    if (tunnel?.kind !== 'http') return refusal('TUNNEL_NOT_FOUND')
    const prober = proberOf(arrival.head, tunnel)
    if (prober !== undefined) return { kind: 'upstream', upstream: probeUpstream(prober) }
    return booking.to(tunnel, isBelow)
  }

  /** Where it goes while the client of the name is away; `undefined`: it waits. */
  #kept(arrival: Arrival, name: string, tunnel: Tunnel | undefined): Route | undefined {
    if (arrival.from?.keptFor !== undefined || tunnel?.upstream !== undefined) return undefined
    const token = tunnel && (tunnel.holder?.rule.id ?? '')
    const upstream = this.parts.kept(name, token, arrival.head, this.#room.addressOf(arrival))
    return upstream && { kind: 'upstream', upstream }
  }

  /** The operator keeps the visitor away; `undefined`: it may come. */
  #judge(arrival: Arrival): Route | undefined {
    const code = this.parts.judge(this.#room.addressOf(arrival))
    return code && refusal(code)
  }

  /** Of the visitor, also behind trusted proxies; `''` where a proxy does not name it. */
  #ownAddress(arrival: Arrival): string {
    const address = this.#room.addressOf(arrival)
    return this.#room.isTrusted(address) ? '' : address
  }

  /** Whether a client could have this name: for no other it is worth while to wait. */
  #mayBeClaimed(name: string): boolean {
    return refusalOfName(name) === undefined && !this.#room.settings.reservedNames.has(name)
  }
}

/** The server stops. Of the cluster's other servers each finds out where the client goes. */
function leaving(arrival: Arrival, booking: Booking): Route {
  return arrival.from?.moved === undefined ? refusal('SERVER_DRAINING') : booking.moved()
}
