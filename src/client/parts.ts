// The parts of one client, in the order in which bytes for its apps pass them.

import { TunnelError } from '../errors.ts'
import type { Install, Part, PartClient, TunnelPart, Watched } from './contracts/part.ts'
import type { Watchable } from './contracts/watching.ts'
import type { TextWire } from './contracts/wire.ts'
import type { Origin } from './origins/origin.ts'
import type { OwnOrigin } from './origins/origin-of.ts'
import type { Probing } from './tunnels/health.ts'
import type { TunnelSettings } from './tunnels/tunnel-settings.ts'

export interface FollowedTunnel {
  /** The settings whose origins dial the app directly, without parts, for health checks. */
  readonly settings: TunnelSettings
  readonly parts: readonly TunnelPart[]
  readonly wrapped: TunnelSettings
}

export class Parts {
  readonly all: readonly Part[]

  constructor(installs: readonly object[], client: PartClient) {
    this.all = (installs as readonly Install[]).flatMap(install => install(client) ?? [])
  }

  /** The JSON wire. `undefined` if servers must negotiate the streams wire. */
  get textWire(): TextWire | undefined {
    return this.all.find(({ textWire }) => textWire !== undefined)?.textWire
  }

  get loadHttp2Probing(): (() => Promise<Probing>) | undefined {
    return this.all.find(({ loadHttp2Probing }) => loadHttp2Probing !== undefined)?.loadHttp2Probing
  }

  readonly originOf: OwnOrigin = options => {
    let origin: Origin | undefined
    for (const part of this.all) origin ??= part.originOf?.(options)
    return origin
  }

  /** Makes the parts of a tunnel. Throws `OPTION_INVALID`. */
  follow(wanted: TunnelSettings): FollowedTunnel {
    const settings = this.all.reduce((tunnel, part) => part.settle?.(tunnel) ?? tunnel, wanted)
    const parts = this.all.flatMap(part => part.follow?.(settings) ?? [])
    const wrap = (origin: Origin, protocol: TunnelSettings['protocol']) =>
      parts.reduceRight((inner, part) => part.wrap?.(inner, protocol) ?? inner, origin)
    const { origin, routes, protocol } = settings
    const wrapped = {
      ...settings,
      origin: wrap(origin, protocol),
      routes: routes.map(route => ({ ...route, origin: wrap(route.origin, route.protocol) })),
    }
    return { settings, parts, wrapped }
  }

  /** The number of reports per second that parts want; `0`: all; `undefined`: none. */
  get reportRate(): number | undefined {
    const rates = this.all.flatMap(part => part.reportRate ?? [])
    if (rates.length === 0) return undefined
    return rates.includes(0) ? 0 : Math.max(...rates)
  }

  /** Returns the exchanges to watch. Throws `STATE_INVALID` if no part captures any. */
  watch(watched: Watched): Watchable {
    for (const part of this.all) if (part.watch !== undefined) return part.watch(watched)
    throw new TunnelError('STATE_INVALID', 'The client captures nothing: it was made without inspect: true.')
  }
}
