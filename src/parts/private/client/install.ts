// Private services as a part of a client: those that it shares, and the connecting ends of others'.

import type { Install, Part } from '../../../client/contracts/part.ts'
import type { TunnelSettings } from '../../../client/tunnels/tunnel-settings.ts'
import { TunnelError } from '../../../errors.ts'
import { isValidSubdomain } from '../../../names.ts'
import { LocalEnd } from './local-end.ts'

export const installPrivate: Install = () => {
  const ends = new Set<LocalEnd>()
  return {
    settle: settled,
    follow({ origin }) {
      if (!(origin instanceof LocalEnd)) return undefined
      ends.add(origin)
      return {
        granted: () => origin.ask(),
        dropped() {
          ends.delete(origin)
          origin.close()
        },
      }
    },
    async start() {
      for (const end of ends) await end.listen()
    },
    stop() {
      for (const end of ends) end.close()
    },
  } satisfies Part
}

/** Returns the tunnel with the name by which the server knows it. */
function settled(tunnel: TunnelSettings): TunnelSettings {
  const { privateName, kind } = tunnel
  if (privateName === undefined) return tunnel
  const name = privateName.toLowerCase()
  if (!isValidSubdomain(name))
    throw new TunnelError('NAME_INVALID', `private: "${privateName}" is not a valid name.`)
  const unused = publicOptionsOf(tunnel)
  if (unused !== undefined)
    throw new TunnelError('OPTION_INVALID', `private: the service has no public address, so no ${unused}.`)
  return {
    ...tunnel,
    registersAs: 'private',
    name: `${kind === 'udp' ? 'udp' : 'tcp'}:${name}`,
    isNamed: true,
    isExact: true,
  }
}

/** The options that only affect public visitors. */
const OF_SERVER = ['subdomain', 'responseTimeoutMs', 'away', 'rewrite', 'stripPrefix', 'addPrefix'] as const

/**
 * Returns an option that only applies to public addresses, or needs a server that reads requests. `undefined` if there is none.
 */
function publicOptionsOf(tunnel: TunnelSettings): string | undefined {
  if (tunnel.port !== undefined) return 'remotePort'
  if (tunnel.isWildcard) return 'wildcard'
  if (tunnel.hostNames !== undefined) return 'hosts'
  if (tunnel.routes.length > 0) return 'routes'
  if (tunnel.inbox !== undefined) return 'inbox'
  if (tunnel.hostHeader !== undefined) return 'hostHeader'
  if (tunnel.protocol !== undefined) return 'protocol'
  if (tunnel.proxyProtocol !== undefined) return 'proxyProtocol'
  if (tunnel.pool === 'all' || tunnel.pool === 'cookie') return 'pool of this kind'
  return OF_SERVER.find(name => tunnel.options?.[name] !== undefined)
}
