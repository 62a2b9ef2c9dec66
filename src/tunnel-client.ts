// The client with all of its parts: the only file that names them. Bytes for an app pass them in the order of this list.

import { TunnelClient as Client } from './client/client.ts'
import type { Install } from './client/contracts/part.ts'
import type { ConnectOptions, HttpTunnelOptions, TunnelClientOptions } from './client/options.ts'
import type { Tunnel } from './client/tunnels/tunnel.ts'
import { installFunctions } from './parts/functions/install.ts'
import { installHttp2 } from './parts/http2/client/install.ts'
import { installInspector } from './parts/inspect/install.ts'
import { installJsonWire } from './parts/json-wire/client/install.ts'
import { installLanes } from './parts/lanes/client/install.ts'
import { installPages } from './parts/pages/client/install.ts'
import { installPatience } from './parts/patience/client/install.ts'
import { endOf } from './parts/private/client/connect.ts'
import { installPrivate } from './parts/private/client/install.ts'
import { installRewriting } from './parts/rewriting/client/install.ts'
import { installWebhooks } from './parts/webhooks/install.ts'

/**
 * The parts of a client: first the one that captures, then the one that refuses, then the others. Typed loosely,
 * because the package does not export their type.
 */
export const CLIENT_PARTS: readonly object[] = [
  installInspector,
  installFunctions,
  installWebhooks,
  installPages,
  installPatience,
  installRewriting,
  installJsonWire,
  installHttp2,
  installPrivate,
  installLanes,
] satisfies readonly Install[]

/**
 * A tunnel client. With `port`, `url`, `unix`, `fetch` or `folder` it has an HTTP tunnel, and `connect()` resolves
 * once its URL is registered. `http()`, `tcp()` and `udp()` add tunnels on the same connection. It reconnects without
 * limit (unless `reconnect` is false), and names and ports stay. It never throws outside of its own methods and never
 * exits the process; errors arrive as `error` events with a stable `code`.
 *
 * Throws `OPTION_INVALID` or `NAME_INVALID` for options that cannot be used.
 */
export class TunnelClient extends Client {
  constructor(options: TunnelClientOptions) {
    super(options, CLIENT_PARTS)
  }

  /**
   * Makes a private service of another client available on a port of this machine; see `url` and `port` of the
   * result. Connections to it go to the service, and wait for up to 10 s while the server or the service is away.
   * Rejects also with `PORT_IN_USE`, `TUNNEL_NOT_FOUND`, `NOT_ALLOWED` and `FEATURE_UNSUPPORTED`.
   */
  async connectTo(options: ConnectOptions): Promise<Tunnel> {
    const { end, settings } = endOf(options, error => this.emit('error', error))
    await end.listen()
    try {
      return await this.add(() => settings)
    } catch (error) {
      end.close()
      throw error
    }
  }
}

/**
 * Starts a client and resolves once its URL is registered: `const { url } = await connectTunnel(3000)`, or with options. A number is a
 * port of this machine.
 */
export async function connectTunnel(options: number | TunnelClientOptions): Promise<TunnelClient> {
  const client = new TunnelClient(typeof options === 'number' ? { port: options } : options)
  await client.connect()
  return client
}

/** A private service, and how to reach the server. */
export type ConnectToOptions = ConnectOptions & Omit<TunnelClientOptions, keyof HttpTunnelOptions>

/**
 * Makes a private service available on a port of this machine, with a client of its own:
 * `const { url } = await connectTo({ name: 'db', port: 5432, server, token })`. `close()` of the result ends both. Rejects as
 * `client.connectTo` does.
 */
export async function connectTo({
  name,
  port,
  idleTimeoutMs,
  ...connection
}: ConnectToOptions): Promise<Tunnel & { readonly client: TunnelClient }> {
  const client = new TunnelClient(connection)
  const tunnel = await client.connectTo({
    name,
    ...(port !== undefined && { port }),
    ...(idleTimeoutMs !== undefined && { idleTimeoutMs }),
  })
  return Object.assign(tunnel, {
    client,
    close: () => client.close(),
    [Symbol.asyncDispose]: () => client.disconnect(),
  })
}
