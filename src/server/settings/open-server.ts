// Whether a server without tokens would give tunnels to everybody.

import { TunnelError } from '../../errors.ts'
import { isLoopback } from '../../names.ts'
import { DEFAULT_HOST, type TunnelServerOptions } from './options.ts'

/**
 * Returns why a server without tokens is open to others. `undefined` if only this machine reaches it. `areLocal`:
 * only this machine reaches the inherited sockets.
 */
export function openServerFault(
  { host = DEFAULT_HOST, domains = [], publicUrl, basePath = '', trustedProxies = [] }: TunnelServerOptions,
  areLocal = true,
): TunnelError | undefined {
  // A proxy in front connects from the loopback for visitors from anywhere. Visitors of another domain can only come
  // through a proxy.
  const isBehindProxy = publicUrl !== undefined || basePath.length > 1 || trustedProxies.length > 0
  if (isBehindProxy || !domains.every(isLoopback))
    return new TunnelError('OPEN_SERVER', BEHIND_PROXY, {
      action: 'Set a token (--token), or open it on purpose (--open, or open = true in its file).',
    })
  return areLocal && isLoopback(host) ? undefined : new TunnelError('OPEN_SERVER')
}

const BEHIND_PROXY =
  'A server without tokens gives names and ports of this machine to everybody who reaches it, also behind a proxy (--public-url, --base-path, --trusted-proxy, or a --domain other than localhost).'
