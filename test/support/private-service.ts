// A private service for tests, as `startTcpTunnel` has a public one: it is found on a port of this machine.

import { connectTo, TunnelClient } from '../../src/index.ts'
import { startServer } from './tunnel.ts'

export interface PrivateService extends AsyncDisposable {
  /** Of this machine. */
  readonly port: number
}

export async function startPrivateService(servicePort: number): Promise<PrivateService> {
  const server = await startServer({ tokens: ['share', { token: 'connect', connect: ['service'] }] })
  const url = `http://127.0.0.1:${server.port}`
  const client = new TunnelClient({ server: url, token: 'share' })
  await client.tcp({ host: '127.0.0.1', port: servicePort, private: 'service' })
  const end = await connectTo({ name: 'service', server: url, token: 'connect' })
  return {
    port: Number(new URL(end.url).port),
    async [Symbol.asyncDispose]() {
      await end[Symbol.asyncDispose]()
      await client.disconnect()
      await server.stop()
    },
  }
}
