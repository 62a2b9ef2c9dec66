// Checks whether a server accepts a client with these options, before anything depends on it.

import { TunnelError } from '../../errors.ts'
import { dial } from '../../sockets/dial.ts'
import { protocolsOf } from '../carriers/connect.ts'
import { dialCarrier } from '../carriers/dial.ts'
import type { TunnelClientOptions } from '../options.ts'
import { atEachServer, clientSettings } from '../settings.ts'
import type { Environment } from '../tunnels/tunnel-settings.ts'

/**
 * Connects to the server, or to the first of several that accepts it, shows the token, and leaves without a tunnel.
 * Rejects with the errors of a client's `connect()` before registration, except `CLIENT_LIMIT`, which existing
 * clients that will leave may cause.
 */
export async function reach(
  options: TunnelClientOptions,
  environment: Environment = process.env,
): Promise<void> {
  const settings = clientSettings(options, environment, dial, () => undefined)
  const never = new AbortController()
  const accept = () => undefined
  const use = { protocols: protocolsOf(settings), text() {}, accept }
  let failure: unknown
  for (const one of atEachServer(settings)) {
    try {
      return await dialCarrier(one, never.signal, use)
    } catch (error) {
      if (error instanceof TunnelError && error.code === 'CLIENT_LIMIT') return
      failure = error
    }
  }
  throw failure
}
