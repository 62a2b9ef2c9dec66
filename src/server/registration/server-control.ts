// The operations of the server for the control host.

import type { Branding } from '../../branding.ts'
import type { ErrorCode } from '../../errors.ts'
import type { Socket, SocketHandler } from '../../socket.ts'
import { VERSION } from '../../version.ts'
import type { ServerRoom } from '../context/room.ts'
import type { TokenGate } from '../limits/token-gate.ts'
import type { ControlHost } from '../routing/control.ts'
import type { Rule } from '../settings/policy.ts'
import type { ClientDesk } from './client-desk.ts'
import type { SessionLinks } from './links.ts'
import type { Applicant } from './upgrade.ts'

export class ServerControl implements ControlHost {
  readonly version: string = VERSION
  readonly tokenGate: TokenGate
  readonly #room: ServerRoom
  readonly #clients: ClientDesk

  constructor(room: ServerRoom, clients: ClientDesk) {
    this.tokenGate = clients.tokenGate
    this.#room = room
    this.#clients = clients
  }

  get basePath(): string {
    return this.#room.settings.basePath
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

  get hasJsonWire(): boolean {
    return this.#room.parts.adopt !== undefined
  }

  adopt(socket: Socket, applicant: Applicant, rule: Rule): SocketHandler {
    return this.#clients.adopt(socket, applicant, rule)
  }

  linksOf(secret: string): SessionLinks | undefined {
    return this.#clients.linkGate.find(secret)
  }

  isKnownHost(host: string): boolean {
    return this.#room.isKnownHost(host)
  }
}
