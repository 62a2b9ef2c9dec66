// A live server and client for tests, on port 0, gone when the test is.

import type { TunnelClientOptions } from '../../src/client/options.ts'
import { TunnelClient, type TunnelServer } from '../../src/index.ts'
import { type BoundedOptions, boundedServer } from './bounded-server.ts'

export interface LiveTunnel extends AsyncDisposable {
  readonly server: TunnelServer
  readonly client: TunnelClient
  /** The server's port. */
  readonly port: number
  /** The tunnel's Host. */
  readonly host: string
}

export async function startServer(options: BoundedOptions = {}): Promise<TunnelServer> {
  // Names without a tunnel are 404 at once: a test is no server that was started again.
  const limits = { startupHoldMs: 0, drainIdleMs: 0, ...options.limits }
  const server = boundedServer({ port: 0, host: '127.0.0.1', ...options, limits })
  await server.start()
  return server
}

export async function startTunnel(
  origin: TunnelClientOptions,
  options: { server?: BoundedOptions; wire?: 'streams' | 'json' } = {},
): Promise<LiveTunnel> {
  const server = await startServer(options.server)
  const client = new TunnelClient({
    server: `http://127.0.0.1:${server.port}`,
    host: '127.0.0.1',
    subdomain: 'app',
    wire: options.wire ?? 'streams',
    ...origin,
  })
  await client.connect()
  return {
    server,
    client,
    port: server.port,
    host: `${client.getSubdomain()}.localhost`,
    async [Symbol.asyncDispose]() {
      await client.disconnect()
      await server.stop()
    },
  }
}
