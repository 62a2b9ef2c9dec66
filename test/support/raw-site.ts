// A server with one TCP tunnel to an origin that the test speaks for.

import { TunnelClient } from '../../src/index.ts'
import { type PeerServer, peerServer } from './peer.ts'
import { startServer } from './tunnel.ts'

export interface RawSite extends AsyncDisposable {
  /** Where visitors connect to. */
  readonly port: number
  readonly origin: PeerServer
}

export async function rawSite(): Promise<RawSite> {
  const origin = await peerServer({})
  const server = await startServer({ tcpPorts: '20000-29999' })
  const client = new TunnelClient({ server: `http://127.0.0.1:${server.port}` })
  const { port } = await client.tcp({ port: origin.port, host: '127.0.0.1' })
  return {
    port: port ?? 0,
    origin,
    async [Symbol.asyncDispose]() {
      origin.close()
      await client.disconnect()
      await server.stop()
    },
  }
}
