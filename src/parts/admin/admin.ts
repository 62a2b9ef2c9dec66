// The operator's admin listener. Loaded only if the server has one.

import type { AuditLog } from '../../operations.ts'
import type { PartServer, WholeServer } from '../../server/contracts/part.ts'
import { AdminApi } from './api.ts'
import type { FarRows } from './far-rows.ts'
import { AdminSocket } from './listener.ts'
import { metricsOf } from './measuring.ts'
import { Metrics } from './metrics.ts'
import type { AdminSettings } from './options.ts'
import { AdminService } from './service.ts'

export class Admin {
  readonly service: AdminService
  readonly #socket: AdminSocket

  /** Begins to listen. `far`: the reports of other servers. Throws `PORT_IN_USE` or `OPTION_INVALID`. */
  constructor(
    server: PartServer,
    whole: WholeServer,
    settings: AdminSettings,
    far: () => FarRows | undefined,
  ) {
    const metrics = metricsOf(server) ?? new Metrics(settings.maxMetricTunnels, () => false)
    this.service = new AdminService(server, whole, settings, metrics, far)
    if (settings.audit !== undefined) audit(whole, new AuditNotes(settings.audit, this.service.failed))
    const { fetch } = new AdminApi(this.service, settings.token)
    try {
      const isTrusted = (address: string) => server.settings.trusted?.has(address) === true
      this.#socket = new AdminSocket({ ...settings, isTrusted, fetch, failed: this.service.failed })
    } catch (error) {
      this.service.stop()
      throw error
    }
  }

  get url(): string | undefined {
    return this.#socket.url
  }

  close(): void {
    this.#socket.close()
  }

  async stop(): Promise<void> {
    this.service.stop()
    await this.#socket.stop()
  }
}

/** Writes registrations and refusals to the audit log, in addition to the operator's actions. */
function audit(server: WholeServer, notes: AuditNotes): void {
  server.on('connection', ({ remoteAddress, subdomain, wire, kind, token }) =>
    notes.note(
      kind === 'connect' ? 'private.connect' : 'tunnel.open',
      token ?? remoteAddress,
      subdomain,
      `${wire} from ${remoteAddress}`,
    ),
  )
  server.on('disconnection', ({ subdomain, reason, kind }) =>
    notes.note(kind === 'connect' ? 'private.end' : 'tunnel.end', 'server', subdomain, reason),
  )
  server.on('refused', ({ remoteAddress, kind = '', name = '', code }) =>
    notes.note('client.refuse', remoteAddress, name || kind, code),
  )
}

/** The maximum number of lines per second. Further ones are counted, and the next line contains the count. */
export const MAX_NOTES_PER_SECOND = 20

export class AuditNotes {
  readonly #log: AuditLog
  readonly #failed: (cause: unknown) => void
  #second = 0
  #left = MAX_NOTES_PER_SECOND
  #dropped = 0

  /** Makes the notes. `failed` is called if the log cannot be written, which does not affect clients. */
  constructor(log: AuditLog, failed: (cause: unknown) => void) {
    this.#log = log
    this.#failed = failed
  }

  note(action: string, actor: string, subject: string, detail: string, nowMs: number = Date.now()): void {
    const second = Math.floor(nowMs / 1_000)
    if (second !== this.#second) {
      this.#second = second
      this.#left = MAX_NOTES_PER_SECOND
    }
    if (this.#left === 0) {
      this.#dropped++
      return
    }
    this.#left--
    const missing = this.#dropped === 0 ? '' : ` (${this.#dropped} lines before were left out)`
    this.#dropped = 0
    try {
      this.#log.note({ atMs: nowMs, action, actor, subject, detail: `${detail}${missing}` })
    } catch (cause) {
      this.#failed(cause)
    }
  }
}
