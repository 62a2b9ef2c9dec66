// A tunnel that belongs to the attacker, served by the client of the tree under test.

import type { FetchHandler, TunnelClient } from '../../../src/index.ts'
import type { Target } from './attack.ts'
import { libraryAt } from './source.ts'

export async function ownTunnel(
  target: Target,
  subdomain: string,
  fetch: FetchHandler,
): Promise<TunnelClient> {
  const { TunnelClient } = await libraryAt(target.source)
  const client = new TunnelClient({
    server: `http://127.0.0.1:${target.port}`,
    subdomain,
    token: target.token,
    fetch,
  })
  client.on('error', () => {})
  await client.connect()
  return client
}
