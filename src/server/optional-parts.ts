// The parts that a server has only when its settings ask for them: each is loaded then.

import type { Admin } from './admin/admin.ts'
import type { AuditNotes } from './admin/audit-notes.ts'
import type { AdminSettings } from './admin/options.ts'
import type { Sharing } from './cluster/sharing.ts'
import type { WholeServer } from './contracts/part.ts'
import type { PublicPorts } from './public-ports.ts'
import { takeBack } from './reload.ts'
import type { ServerRoom } from './room.ts'
import type { Serving } from './serving.ts'
import type { ServerSettings } from './settings.ts'
import type { StartupHold } from './startup-hold.ts'

/** What they need of the server. */
export interface PartNeeds {
  readonly serving: Serving
  readonly ports: PublicPorts
  readonly startupHold: StartupHold
  readonly server: WholeServer
}

export class OptionalParts {
  /** `undefined`: there is none, or not yet. */
  admin: Admin | undefined
  /** What the servers of a cluster share besides names; `undefined` likewise. */
  sharing: Sharing | undefined
  readonly #room: ServerRoom
  readonly #needs: PartNeeds

  constructor(room: ServerRoom, needs: PartNeeds) {
    this.#room = room
    this.#needs = needs
  }

  /** The server did not start, or has stopped. */
  async stop(): Promise<void> {
    this.sharing?.stop()
    this.#room.cluster?.stop()
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
        const { cluster } = room
        const isAlone = cluster === undefined || cluster.tables !== undefined
        return isAlone || room.tunnels.find(name)?.pool === undefined || cluster.isFirst(name)
      },
      isElsewhere(name: string) {
        const found = room.cluster?.find(name)
        return found instanceof Promise ? found.then(nodes => nodes.length > 0) : (found?.length ?? 0) > 0
      },
      count(outcome: 'kept' | 'delivered' | 'dropped' | 'full') {
        room.parts.noted({ kind: 'webhook', outcome })
      },
      failed: (error: Error) => room.failed(error),
    }
    room.inbox = new Inbox(settings, host, this.#needs.serving)
  }

  /** From now on the other servers send requests here. */
  async joinCluster({ cluster: options, hostname, domains }: ServerSettings): Promise<void> {
    if (options === undefined) return
    const room = this.#room
    const { Cluster, peerUrlOf } = await import('./cluster/cluster.ts')
    const cluster = new Cluster(options, {
      get limits() {
        return room.limits
      },
      deadlines: room.deadlines,
      turns: room.turns,
      controlHost: domains[0] ?? 'localhost',
      lost: name => room.lost(name),
      claimedElsewhere: name => {
        this.#needs.startupHold.isElsewhere(name)
        room.inbox?.claimedElsewhere(name)
      },
      isServedHere: name => {
        const { name: tunnel } = room.tunnels.hostNames.destinationOf(name) ?? { name }
        return room.tunnels.find(tunnel)?.upstream !== undefined
      },
      // The servers of one machine have the same ports: the one that has the tunnel listens.
      ports: options.peerUrl?.startsWith('unix:')
        ? undefined
        : {
            isOffered: (kind, port) => room.settings.ports[kind].includes(port),
            open: (kind, port) => this.#needs.ports.openElsewhere(kind, port),
            close: (kind, port) => this.#needs.ports.closeElsewhere(kind, port),
          },
      failed: error => room.failed(error),
    })
    const { tables } = cluster
    if (tables !== undefined) {
      const { Sharing } = await import('./cluster/sharing.ts')
      this.sharing = new Sharing(cluster.node, tables, {
        room,
        store: options.tokens ?? room.settings.admin?.tokens,
        changed: () => this.#allowanceChanged(),
        stats: () => this.#needs.server.stats(),
        recent: () => this.admin?.desk.recent,
        failed: error => room.failed(error),
      })
    }
    await cluster.start(options.peerUrl ?? peerUrlOf(hostname, this.#needs.server.port, room.settings.isTls))
    this.sharing?.begin()
    room.joined(cluster)
  }

  /** Some visitor, client or token may be another's by now: what is not allowed any more is taken back. */
  #allowanceChanged(): void {
    const room = this.#room
    takeBack(room.settings, this.#needs.server.clients, room.tunnels)
    room.tunnels.routesChanged()
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
        clients: this.#needs.server.clients,
        visitorCount: () => this.#needs.server.visitorCount,
        stats: () => this.#needs.server.stats(),
        urlOf: tunnel => this.#needs.server.urlOf(tunnel),
      },
      settings,
    )
  }

  /** Registrations and refusals are written down, with what the operator does. */
  #audit(notes: AuditNotes): void {
    this.#needs.server.on('connection', ({ remoteAddress, subdomain, wire }) =>
      notes.note('tunnel.open', remoteAddress, subdomain, wire),
    )
    this.#needs.server.on('disconnection', ({ subdomain, reason }) =>
      notes.note('tunnel.end', 'server', subdomain, reason),
    )
    this.#needs.server.on('refused', ({ remoteAddress, kind = '', name = '', code }) =>
      notes.note('client.refuse', remoteAddress, name || kind, code),
    )
  }
}

function asError(cause: unknown): Error {
  return cause instanceof Error ? cause : new Error(String(cause))
}
