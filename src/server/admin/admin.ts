// The admin listener of a server: for the operator alone. Loaded when the server has one.

import { Bans } from '../../parts/bans/bans.ts'
import { bansOf } from '../../parts/bans/install.ts'
import { metricsOf } from '../../parts/metrics/install.ts'
import { Metrics } from '../../parts/metrics/metrics.ts'
import { AdminApi } from './api.ts'
import { AuditNotes } from './audit-notes.ts'
import { AdminDesk, type AdminHost } from './desk.ts'
import { AdminSocket } from './listener.ts'
import type { AdminSettings } from './options.ts'

export { AuditNotes }

export class Admin {
  readonly desk: AdminDesk
  readonly #socket: AdminSocket

  /** Listens. Throws `PORT_IN_USE` or `OPTION_INVALID`. */
  constructor(host: AdminHost, settings: AdminSettings) {
    const bans = bansOf(host.room) ?? new Bans(settings.store, { changed() {}, added() {} })
    const metrics = metricsOf(host.room) ?? new Metrics(settings.maxMetricTunnels, () => false)
    this.desk = new AdminDesk(host, settings, metrics, bans)
    const { fetch } = new AdminApi(this.desk, settings.token)
    try {
      this.#socket = new AdminSocket({ ...settings, fetch, failed: error => this.desk.failed(error) })
    } catch (error) {
      this.desk.stop()
      throw error
    }
  }

  /** `undefined`: it is a Unix socket. */
  get url(): string | undefined {
    return this.#socket.url
  }

  /** Takes no new connections. */
  close(): void {
    this.#socket.close()
  }

  async stop(): Promise<void> {
    this.desk.stop()
    await this.#socket.stop()
  }
}
