// `localtunnels tcp <port>` and similar commands: a public address for a service that does not use HTTP.

import type { TunnelClientOptions } from '../../client/options.ts'
import type { ClientEnd, TunnelEnd } from '../ends.ts'
import type { Run } from '../run.ts'
import type { Destination } from '../settings/destination.ts'
import type { Target } from '../settings/target.ts'
import type { EmbeddedOptions } from '../sharing/embedded-server.ts'
import { share } from '../sharing/sharing.ts'

export interface RawSettings {
  readonly targets: readonly Target[]
  readonly destination: Destination
  readonly embedded: EmbeddedOptions
  readonly client: Pick<TunnelClientOptions, 'insecureToken' | 'verifyServer' | 'proxy'>
  /** Whether a connection can show that the service is there. */
  readonly isWatched: boolean
  /** Requests the tunnels, one for each target: `client.tcp(…)` and similar calls. */
  readonly open: (client: ClientEnd) => Promise<readonly TunnelEnd[]>
}

/** Shares the services. Resolves after a clean end; rejects if the tunnel could not be made or is lost for good. */
export function shareRaw(settings: RawSettings, run: Run): Promise<void> {
  const { targets, open, isWatched, ...rest } = settings
  let tunnels: readonly TunnelEnd[] = []
  return share(
    {
      ...rest,
      targets: isWatched ? targets : [],
      countsConnections: true,
      async connect(client) {
        tunnels = await open(client)
      },
      async ready({ announce }) {
        if (run.terminal !== undefined) {
          const { offerKeys } = await import('./inspect-keys.ts')
          offerKeys(run, { url: () => tunnels[0]?.url })
        }
        for (const [index, { kind, url, name: subdomain }] of tunnels.entries())
          announce({ kind, url, subdomain, origin: targets[index]?.label ?? '' })
      },
    },
    run,
  )
}
