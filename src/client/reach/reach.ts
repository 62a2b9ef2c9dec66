// Whether a server takes a client with these options, before anything depends on it.

import { TunnelError } from '../../errors.ts'
import { dial } from '../../sockets/dial.ts'
import { protocolsOf } from '../carriers/connect.ts'
import { dialCarrier } from '../carriers/dial.ts'
import type { TunnelClientOptions } from '../options.ts'
import { atEachServer, clientSettings } from '../settings.ts'
import type { Environment } from '../tunnels/tunnel-settings.ts'

/**
 * Dials the server, or the first of several that takes it, shows the token, and leaves again without a tunnel. Rejects with what `connect()` of a client rejects
 * with before it registers; not with `CLIENT_LIMIT`, which may be for the clients that are to leave.
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
