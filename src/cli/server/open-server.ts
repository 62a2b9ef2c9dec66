// Whether a server would give tunnels to everybody: without tokens, on an address that others reach.

import type { ServerConfigOptions } from '../../config/server-config.ts'
import { isLoopback } from '../../names.ts'
import { DEFAULT_HOST } from '../../server/settings/options.ts'

/** Whether the server is open to others. `areLocal`: only this machine reaches the sockets that were passed to it. */
export function isOpenToOthers(
  { tokens = [], jwtTokens = [], host = DEFAULT_HOST }: ServerConfigOptions,
  areLocal = true,
): boolean {
  return tokens.length === 0 && jwtTokens.length === 0 && !(areLocal && isLoopback(host))
}
