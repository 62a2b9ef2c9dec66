// The admin listener of a server: a port of its own, for the operator alone. Loaded when the server has one.

import { TunnelError } from '../../errors.ts'
import type { Metrics } from '../metrics.ts'
import { AdminApi, MAX_BODY_BYTES } from './api.ts'
import { AuditNotes } from './audit-notes.ts'
import { Bans } from './bans.ts'
import { AdminDesk, type AdminHost } from './desk.ts'
import type { AdminSettings } from './options.ts'

export { AuditNotes, Bans }

/** More than a new program gets to start. */
const UPGRADE_ANSWER_S = 60

export class Admin {
  readonly desk: AdminDesk
  readonly #server: ReturnType<typeof Bun.serve>

  /** Listens. Throws `PORT_IN_USE` or `OPTION_INVALID`. */
  constructor(host: AdminHost, settings: AdminSettings, metrics: Metrics, bans: Bans) {
    const { port, host: hostname, token, upgrade } = settings
    this.desk = new AdminDesk(host, settings, metrics, bans)
    const api = new AdminApi(this.desk, token)
    try {
      // Two programs have the port while one replaces the other. Whoever is not replaced must not have it.
      if (upgrade !== undefined && !upgrade.isSuccessor) void probe(hostname, port).stop(true)
      this.#server = Bun.serve({
        hostname,
        port,
        ...(upgrade !== undefined && { reusePort: true }),
        // A program that starts takes a while.
        ...(upgrade !== undefined && { idleTimeout: UPGRADE_ANSWER_S }),
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

  /** Takes no new connections. */
  close(): void {
    void this.#server.stop(false)
  }

  async stop(): Promise<void> {
    this.desk.stop()
    await this.#server.stop(true)
  }
}

/** Throws when the port is another program's. */
function probe(hostname: string, port: number) {
  return Bun.serve({ hostname, port, fetch: () => new Response(null, { status: 503 }) })
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
