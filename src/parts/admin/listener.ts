// Where the admin API listens: a port of its own, or a Unix socket.

import { optionInvalid, TunnelError } from '../../errors.ts'
import { addressBefore } from '../../server/limits/visitor-hop.ts'
import type { AdminUpgrade } from '../../server/settings/part-options.ts'
import { MAX_BODY_BYTES } from './api.ts'

/** The idle timeout in seconds of an upgrade, longer than a new program has to start. */
const UPGRADE_ANSWER_S = 60

export interface ListenerOptions {
  readonly host: string
  readonly port: number
  /** The path of a Unix socket in place of host and port. */
  readonly socket?: string | undefined
  /** The upgrade. If it is set, another program may listen on the same port. */
  readonly upgrade?: AdminUpgrade | undefined
  /** Whether the address is a trusted proxy's, whose headers name the sender. */
  readonly isTrusted: (address: string) => boolean
  /** Serves a request. `address`: of the sender; empty on a Unix socket. */
  readonly fetch: (request: Request, address: string) => Promise<Response>
  readonly failed: (error: Error) => void
}

export class AdminSocket {
  readonly #server: Bun.Server<undefined>

  /** Listens. Throws `PORT_IN_USE` or `OPTION_INVALID`. */
  constructor({ host: hostname, port, socket, upgrade, isTrusted, fetch, failed }: ListenerOptions) {
    const common = {
      maxRequestBodySize: MAX_BODY_BYTES,
      fetch: (request: Request, server: Bun.Server<undefined>) => {
        const address = server.requestIP(request)?.address ?? ''
        const hops = request.headers.get('x-forwarded-for')?.split(',') ?? []
        return fetch(request, isTrusted(address) ? addressBefore(address, hops, isTrusted) : address)
      },
      error: (error: Error) => {
        failed(error)
        return new Response(null, { status: 500 })
      },
    }
    try {
      if (socket !== undefined) {
        this.#server = Bun.serve({ ...common, unix: socket })
        return
      }
      // Two programs share the port while one replaces the other. Otherwise the port must not be shared.
      if (upgrade !== undefined && !upgrade.isSuccessor) void probe(hostname, port).stop(true)
      this.#server = Bun.serve({
        ...common,
        hostname,
        port,
        // A new program takes some time to start.
        ...(upgrade !== undefined && { reusePort: true, idleTimeout: UPGRADE_ANSWER_S }),
      })
    } catch (cause) {
      throw listenError(cause, socket ?? `${hostname}:${port}`)
    }
  }

  get url(): string | undefined {
    const { hostname = '', port } = this.#server
    if (port === undefined) return undefined
    return `http://${hostname.includes(':') ? `[${hostname}]` : hostname}:${port}`
  }

  close(): void {
    void this.#server.stop(false)
  }

  async stop(): Promise<void> {
    await this.#server.stop(true)
  }
}

/** Throws if another program has the port. */
function probe(hostname: string, port: number) {
  return Bun.serve({ hostname, port, fetch: () => new Response(null, { status: 503 }) })
}

function listenError(cause: unknown, where: string): TunnelError {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
  if (code === 'EADDRINUSE')
    return new TunnelError('PORT_IN_USE', `${where}, for admin, is in use.`, { cause })
  return optionInvalid(
    `admin cannot listen on ${where} (${code || String(cause)}): give an address of this machine.`,
    { cause },
  )
}
