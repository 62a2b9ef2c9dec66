// A server whose fixed bounds a test makes small.

import { TunnelServer, type TunnelServerOptions } from '../../src/index.ts'
import { type Bounds, boundsOf, FIXED_BOUNDS } from '../../src/server/settings/bounds.ts'
import { DEFAULT_LIMITS } from '../../src/server/settings/options.ts'

/** As those of the library; `limits` has fixed bounds as well. */
export interface BoundedOptions extends Omit<TunnelServerOptions, 'limits'> {
  readonly limits?: Partial<Bounds> | undefined
}

/** All bounds of a server without options. */
export const DEFAULT_BOUNDS: Bounds = boundsOf(DEFAULT_LIMITS)

export function boundedServer({ limits = {}, ...options }: BoundedOptions): TunnelServer {
  const isFixed = ([name]: readonly [string, unknown]) => Object.hasOwn(FIXED_BOUNDS, name)
  const all = Object.entries(limits)
  return new TunnelServer(
    { ...options, limits: Object.fromEntries(all.filter(one => !isFixed(one))) },
    Object.fromEntries(all.filter(isFixed)),
  )
}
