// The admin listener of a server: a port of its own, for the operator alone. Loaded when the server has one.

import { TunnelError } from '../../errors.ts'
import type { Metrics } from '../metrics.ts'
import { AdminApi, MAX_BODY_BYTES } from './api.ts'
import { AuditNotes } from './audit-notes.ts'
import { Bans } from './bans.ts'
import { AdminDesk, type AdminHost } from './desk.ts'
import type { AdminSettings } from './options.ts'

export { AuditNotes, Bans }

export class Admin {
  readonly desk: AdminDesk
  readonly #server: ReturnType<typeof Bun.serve>

  /** Listens. Throws `PORT_IN_USE` or `OPTION_INVALID`. */
  constructor(host: AdminHost, settings: AdminSettings, metrics: Metrics, bans: Bans) {
    const { port, host: hostname, token } = settings
    this.desk = new AdminDesk(host, settings, metrics, bans)
    const api = new AdminApi(this.desk, token)
    try {
      this.#server = Bun.serve({
        hostname,
        port,
        maxRequestBodySize: MAX_BODY_BYTES,
        fetch: api.fetch,
        error: error => {
          this.desk.failed(error)
          return new Response(null, { status: 500 })
        },
      })
    } catch (cause) {
      this.desk.stop()
      throw listenError(cause, hostname, port)
    }
  }

  get url(): string {
    const { hostname = '', port = 0 } = this.#server
    return `http://${hostname.includes(':') ? `[${hostname}]` : hostname}:${port}`
  }

  async stop(): Promise<void> {
    this.desk.stop()
    await this.#server.stop(true)
  }
}

function listenError(cause: unknown, hostname: string, port: number): TunnelError {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
  if (code === 'EADDRINUSE')
    return new TunnelError('PORT_IN_USE', `Port ${port} on ${hostname}, for admin, is in use.`, { cause })
  return new TunnelError(
    'OPTION_INVALID',
    `admin cannot listen on ${hostname}:${port} (${code || String(cause)}): give an address of this machine.`,
    { cause },
  )
}
