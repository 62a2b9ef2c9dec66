// Whether a server would give tunnels to everybody: without tokens, on an address that others reach.

import type { ServerConfigOptions } from '../config/server-config.ts'
import { isLoopback } from '../names.ts'
import { DEFAULT_HOST } from '../server/options.ts'

export function isOpenToOthers({
  tokens = [],
  jwtTokens = [],
  host = DEFAULT_HOST,
}: ServerConfigOptions): boolean {
  return tokens.length === 0 && jwtTokens.length === 0 && !isLoopback(host)
}
