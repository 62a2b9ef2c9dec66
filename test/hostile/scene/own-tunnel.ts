// A tunnel that belongs to the attacker, with the client of the tree under test: to a handler, or to a port of this machine.

import type { FetchHandler, TunnelClient } from '../../../src/index.ts'
import type { Target } from './attack.ts'
import { libraryAt } from './source.ts'

export async function ownTunnel(
  target: Target,
  subdomain: string,
  app: FetchHandler | number,
): Promise<TunnelClient> {
  const { TunnelClient } = await libraryAt(target.source)
  const client = new TunnelClient({
    server: `http://127.0.0.1:${target.port}`,
    subdomain,
    token: target.token,
    ...(typeof app === 'number' ? { port: app } : { fetch: app }),
  })
  client.on('error', () => {})
  await client.connect()
  return client
}
