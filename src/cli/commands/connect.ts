// `localtunnels connect <name>`: makes a private service of another machine available on a port of this one.

import type { ConnectOptions } from '../../client/options.ts'
import type { TunnelEnd } from '../ends.ts'
import type { Run } from '../run.ts'
import { share } from '../sharing/sharing.ts'
import type { RawSettings } from './raw.ts'

export interface ConnectSettings extends Pick<RawSettings, 'destination' | 'client'> {
  readonly service: ConnectOptions
}

/** Resolves after a clean end. Rejects if the service cannot be had, or the server refuses for good. */
export function connect({ service, ...rest }: ConnectSettings, run: Run): Promise<void> {
  let end: TunnelEnd | undefined
  return share(
    {
      ...rest,
      targets: [],
      countsConnections: true,
      async connect(client) {
        end = await client.connectTo(service)
      },
      async ready({ announce }) {
        if (end === undefined) return
        const { kind, url, name: subdomain } = end
        announce({ kind, url, subdomain, origin: `private service ${service.name}`, isEnd: true })
      },
    },
    run,
  )
}
