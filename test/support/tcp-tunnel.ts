// A live TCP tunnel for tests: server, client and service in this process, gone when the test is.

import type { TcpTunnelOptions, TunnelClientOptions } from '../../src/client/options.ts'
import { type Tunnel, TunnelClient, type TunnelServer } from '../../src/index.ts'
import type { BoundedOptions } from './bounded-server.ts'
import { startServer } from './tunnel.ts'

export interface TcpTunnel extends AsyncDisposable {
  readonly server: TunnelServer
  readonly client: TunnelClient
  readonly tunnel: Tunnel
  /** The public port. */
  readonly port: number
}

export interface TcpTunnelSetup {
  readonly server?: BoundedOptions
  readonly client?: TunnelClientOptions
  readonly tcp?: TcpTunnelOptions
  /** Port at which the client finds the server: that of a proxy in between. */
  readonly via?: (serverPort: number) => number
}

export async function startTcpTunnel(servicePort: number, setup: TcpTunnelSetup = {}): Promise<TcpTunnel> {
  const server = await startServer(setup.server)
  const at = setup.via?.(server.port) ?? server.port
  const client = new TunnelClient({ server: `http://127.0.0.1:${at}`, maxBackoffMs: 50, ...setup.client })
  // A service that is down is a code in a test, not a line on the console.
  client.on('error', () => {})
  // Asked for before the first visitor comes: a report is only sent of what begins afterwards.
  client.on('visitorConnected', () => {})
  const tunnel = await client.tcp({ host: '127.0.0.1', port: servicePort, ...setup.tcp })
  return {
    server,
    client,
    tunnel,
    port: tunnel.port ?? 0,
    async [Symbol.asyncDispose]() {
      await client.disconnect()
      await server.stop()
    },
  }
}
