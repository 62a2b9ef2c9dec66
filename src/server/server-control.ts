// What the control host may ask of its server.

import type { Branding } from '../branding.ts'
import type { ErrorCode } from '../errors.ts'
import type { Socket, SocketHandler } from '../socket.ts'
import { VERSION } from '../version.ts'
import type { ClientDesk } from './client-desk.ts'
import { peerRoute } from './cluster/peer-door.ts'
import type { RawPassenger } from './cluster/peer-wire.ts'
import { rawRoute } from './cluster/raw-door.ts'
import type { ControlHost } from './control.ts'
import { entranceOf } from './entrances.ts'
import type { Arrival, Route } from './front.ts'
import type { HttpFront } from './fronts/http.ts'
import { tlsTunnelOf } from './fronts/tls.ts'
import type { SessionLinks } from './links.ts'
import type { Rule } from './policy.ts'
import type { RawVisits } from './raw-visits.ts'
import type { ServerRoom } from './room.ts'
import type { TokenGate } from './token-gate.ts'
import type { Tunnel } from './tunnel.ts'
import type { Applicant } from './upgrade.ts'

export class ServerControl implements ControlHost {
  readonly version: string = VERSION
  readonly tokenGate: TokenGate
  readonly #room: ServerRoom
  readonly #clients: ClientDesk
  readonly #rawVisits: RawVisits
  readonly #httpFront: () => HttpFront

  /** `httpFront`: it is made later. */
  constructor(room: ServerRoom, clients: ClientDesk, rawVisits: RawVisits, httpFront: () => HttpFront) {
    this.#httpFront = httpFront
    this.#rawVisits = rawVisits
    this.tokenGate = clients.tokenGate
    this.#room = room
    this.#clients = clients
  }

  get branding(): Branding | undefined {
    return this.#room.settings.branding
  }

  get isOpen(): boolean {
    return this.#room.settings.policy.isOpen
  }

  isTrusted(address: string): boolean {
    return this.#room.isTrusted(address)
  }

  clientRefusal(rule: Rule, address: string): ErrorCode | undefined {
    return this.#clients.refusalOfClient(rule, address)
  }

  refused(applicant: Applicant, code: ErrorCode): void {
    const { remoteAddress, wire } = applicant
    this.#room.emit('refused', { remoteAddress, wire, code })
  }

  adopt(socket: Socket, applicant: Applicant, rule: Rule): SocketHandler {
    return this.#clients.adopt(socket, applicant, rule)
  }

  linksOf(secret: string): SessionLinks | undefined {
    return this.#clients.linkGate.find(secret)
  }

  peerRoute(arrival: Arrival): Route {
    const room = this.#room
    return peerRoute(arrival, {
      cluster: room.cluster,
      httpFront: this.#httpFront(),
      entranceOf: proto => entranceOf(room, proto),
    })
  }

  rawRoute(arrival: Arrival): Route {
    const room = this.#room
    const find = ({ kind, wanted }: RawPassenger): Tunnel | undefined =>
      kind === 'tls' ? tlsTunnelOf(room, wanted) : room.tunnels.find(`${kind}-${wanted}`)
    return rawRoute(arrival, { cluster: room.cluster, rawVisits: this.#rawVisits, find })
  }

  isKnownHost(host: string): boolean {
    return this.#room.isKnownHost(host)
  }
}
