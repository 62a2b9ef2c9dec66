// The parts that a server has only when its settings ask for them: each is loaded then.

import type { Admin } from './admin/admin.ts'
import type { AuditNotes } from './admin/audit-notes.ts'
import type { AdminSettings } from './admin/options.ts'
import type { WholeServer } from './contracts/part.ts'
import type { ServerRoom } from './room.ts'

export class OptionalParts {
  /** `undefined`: there is none, or not yet. */
  admin: Admin | undefined
  readonly #room: ServerRoom
  readonly #server: WholeServer

  constructor(room: ServerRoom, server: WholeServer) {
    this.#room = room
    this.#server = server
  }

  /** The server did not start, or has stopped. */
  async stop(): Promise<void> {
    await this.admin?.stop()
    this.admin = undefined
  }

  async openAdmin(settings: AdminSettings | undefined): Promise<void> {
    const room = this.#room
    if (settings === undefined) return
    const { Admin, AuditNotes } = await import('./admin/admin.ts')
    if (settings.audit !== undefined)
      this.#audit(new AuditNotes(settings.audit, cause => room.failed(asError(cause))))
    this.admin = new Admin(
      {
        room,
        clients: this.#server.clients,
        visitorCount: () => this.#server.visitorCount,
        stats: () => this.#server.stats(),
        urlOf: tunnel => this.#server.urlOf(tunnel),
      },
      settings,
    )
  }

  /** Registrations and refusals are written down, with what the operator does. */
  #audit(notes: AuditNotes): void {
    this.#server.on('connection', ({ remoteAddress, subdomain, wire }) =>
      notes.note('tunnel.open', remoteAddress, subdomain, wire),
    )
    this.#server.on('disconnection', ({ subdomain, reason }) =>
      notes.note('tunnel.end', 'server', subdomain, reason),
    )
    this.#server.on('refused', ({ remoteAddress, kind = '', name = '', code }) =>
      notes.note('client.refuse', remoteAddress, name || kind, code),
    )
  }
}

function asError(cause: unknown): Error {
  return cause instanceof Error ? cause : new Error(String(cause))
}
