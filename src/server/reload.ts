// Changed settings of a running server: checks which can change, and revokes tunnels that they no longer allow.

import { optionInvalid } from '../errors.ts'
import type { ClientConnection } from './contracts/clients.ts'
import { readsHellos } from './listening/listeners.ts'
import type { TunnelServerOptions } from './settings/options.ts'
import { ANYTHING_WITH_HOSTS } from './settings/policy.ts'
import { type ServerSettings, serverSettings } from './settings/settings.ts'
import { refusalOf } from './tunnels/claims.ts'
import type { Tunnels } from './tunnels/tunnels.ts'

/**
 * Returns the settings after a reload: `options` applied to a server that runs with `now`. Throws the errors of `server.reload`.
 */
export function settingsAfter(now: ServerSettings, options: TunnelServerOptions): ServerSettings {
  const { port = now.port, host = now.hostname } = options
  const next = serverSettings({ ...options, port, host }, now.fixed)
  // A new listener requires closing the old one, which would refuse the connections in its queue.
  for (const [name, is, was] of [
    ['port', next.port, now.port],
    ['host', next.hostname, now.hostname],
    ['tlsPort', next.tlsPort, now.tlsPort],
    ['tls', isThere(next.tls), isThere(now.tls)],
    ['certificates', isThere(next.certificates), isThere(now.certificates)],
    ['httpPort', next.httpPort, now.httpPort],
    ['http3', next.http3, now.http3],
    // These settings decide whether we read the first bytes of a connection before Bun's own TLS, so the listener
    // would have to be another kind.
    ['acceptProxyProtocol with tls', `${readsHellos(next)}`, `${readsHellos(now)}`],
    ['clientCa', isThere(next.clientCa), isThere(now.clientCa)],
    ['cluster', isThere(next.cluster), isThere(now.cluster)],
    ['inbox', isThere(next.inbox), isThere(now.inbox)],
    ['tlsMinVersion', next.tlsTerms.minVersion ?? '1.2', now.tlsTerms.minVersion ?? '1.2'],
  ])
    if (is !== was)
      throw optionInvalid(
        `${name} cannot change from ${was} to ${is} while the server runs: start it again for that.`,
      )
  return next
}

const isThere = (value: unknown): string => (value === undefined ? 'none' : 'some')

/** Revokes everything that the new settings do not allow, and nothing else. */
export function takeBack(
  settings: ServerSettings,
  clients: Iterable<ClientConnection>,
  tunnels: Tunnels,
): void {
  for (const client of [...clients]) client.reloaded()
  // A client that is away is checked when it reconnects, because only then does it show its token.
  for (const tunnel of tunnels.all())
    if (tunnel.upstream === undefined && refusalOf(tunnel, ANYTHING_WITH_HOSTS, settings) !== undefined)
      tunnel.remove('CLIENT_GONE')
}
