// Whether a server would give tunnels to everybody: without tokens, on an address that others reach.

import { isLoopback } from '../names.ts'
import { DEFAULT_HOST, type TunnelServerOptions } from '../server/options.ts'

export function isOpenToOthers({ tokens = [], host = DEFAULT_HOST }: TunnelServerOptions): boolean {
  return tokens.length === 0 && !isLoopback(host)
}
