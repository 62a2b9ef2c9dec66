// The parts that a server has only when its settings ask for them: each is loaded then.

import type { Admin } from './admin/admin.ts'
import type { AuditNotes } from './admin/audit-notes.ts'
import type { AdminSettings } from './admin/options.ts'
import type { WholeServer } from './contracts/part.ts'
import type { ServerRoom } from './room.ts'
import type { Serving } from './serving.ts'
import type { ServerSettings } from './settings.ts'

export class OptionalParts {
  /** `undefined`: there is none, or not yet. */
  admin: Admin | undefined
  readonly #room: ServerRoom
  readonly #serving: Serving
  readonly #server: WholeServer

  constructor(room: ServerRoom, serving: Serving, server: WholeServer) {
    this.#room = room
    this.#serving = serving
    this.#server = server
  }

  /** The server did not start, or has stopped. */
  async stop(): Promise<void> {
    await this.admin?.stop()
    this.admin = undefined
  }

  /** Webhooks for clients that are away are kept from now on. */
  async openInbox({ inbox: settings }: ServerSettings): Promise<void> {
    if (settings === undefined) return
    const room = this.#room
    const { Inbox } = await import('./inbox/inbox.ts')
    const host = {
      isSecure: room.isSecure,
      deadlines: room.deadlines,
      get pauseMs() {
        return room.limits.headTimeoutMs
      },
      isThere(name: string, owner: string) {
        const tunnel = room.tunnels.find(name)
        return tunnel?.upstream !== undefined && tunnel.holder?.rule.id === owner
      },
      delivers(name: string) {
        const { servers } = room
        const isAlone = servers === undefined || servers.shared !== undefined
        return isAlone || room.tunnels.find(name)?.pool === undefined || servers.isFirst(name)
      },
      isElsewhere(name: string) {
        const found = room.servers?.find(name)
        return found instanceof Promise ? found.then(nodes => nodes.length > 0) : (found?.length ?? 0) > 0
      },
      count(outcome: 'kept' | 'delivered' | 'dropped' | 'full') {
        room.parts.noted({ kind: 'webhook', outcome })
      },
      failed: (error: Error) => room.failed(error),
    }
    room.inbox = new Inbox(settings, host, this.#serving)
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
