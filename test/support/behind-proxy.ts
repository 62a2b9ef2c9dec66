// A live server and client with a network between them that fails on command.

import type { TunnelClientOptions } from '../../src/client/options.ts'
import { TunnelClient, type TunnelServer } from '../../src/index.ts'
import type { Bounds } from '../../src/server/settings/bounds.ts'
import type { TunnelServerOptions } from '../../src/server/settings/options.ts'
import { TcpProxy } from './tcp-proxy.ts'
import { startServer } from './tunnel.ts'

export interface BehindProxy extends AsyncDisposable {
  readonly server: TunnelServer
  readonly client: TunnelClient
  readonly proxy: TcpProxy
  readonly port: number
  readonly host: string
}

export async function startBehindProxy(
  options: TunnelClientOptions,
  limits: Partial<Bounds> = {},
  serverOptions: Omit<TunnelServerOptions, 'limits'> = {},
): Promise<BehindProxy> {
  const server = await startServer({ ...serverOptions, limits: { drainTimeoutMs: 100, ...limits } })
  const proxy = new TcpProxy(server.port)
  const client = new TunnelClient({
    server: `http://127.0.0.1:${proxy.port}`,
    host: '127.0.0.1',
    subdomain: 'app',
    maxBackoffMs: 50,
    ...options,
  })
  await client.connect()
  return {
    server,
    client,
    proxy,
    port: server.port,
    host: `${client.getSubdomain()}.localhost`,
    async [Symbol.asyncDispose]() {
      proxy.isSilent = false
      await client.disconnect()
      proxy[Symbol.dispose]()
      await server.stop()
    },
  }
}
