// `localtunnels tcp <port>` and its like: a public address for a service that speaks something else than HTTP.

import type { TunnelClientOptions } from '../../client/options.ts'
import type { ClientEnd, TunnelEnd } from '../ends.ts'
import type { Run } from '../run.ts'
import type { Destination } from '../settings/destination.ts'
import type { Target } from '../settings/target.ts'
import type { EmbeddedOptions } from '../sharing/embedded-server.ts'
import { share } from '../sharing/sharing.ts'

export interface RawSettings {
  readonly target: Target
  readonly destination: Destination
  /** What that one is to offer. */
  readonly embedded: EmbeddedOptions
  readonly client: Pick<TunnelClientOptions, 'insecureToken' | 'verifyServer' | 'proxy'>
  /** Whether a connection shows that the service is there. */
  readonly isWatched: boolean
  /** Asks for the tunnel: `client.tcp(…)` and its like. */
  readonly open: (client: ClientEnd) => Promise<TunnelEnd>
}

/** Resolves after a clean end; rejects when the tunnel could not be made or is lost for good. */
export function shareRaw(settings: RawSettings, run: Run): Promise<void> {
  const { target, open, isWatched, ...rest } = settings
  let tunnel: TunnelEnd | undefined
  return share(
    {
      ...rest,
      targets: isWatched ? [target] : [],
      countsConnections: true,
      async connect(client) {
        tunnel = await open(client)
      },
      async ready({ announce }) {
        if (tunnel === undefined) return
        const { kind, url, name: subdomain } = tunnel
        announce({ kind, url, subdomain, origin: target.label })
      },
    },
    run,
  )
}
