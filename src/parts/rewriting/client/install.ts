// Translates the names of apps that insist on their own, as a part of a client: the server, or the JSON wire, does the work.

import type { Install } from '../../../client/contracts/part.ts'
import type { OriginOptions } from '../../../client/options.ts'
import type { RouteSettings } from '../../../client/tunnels/tunnel-settings.ts'
import { TunnelError } from '../../../errors.ts'
import { prefixOf, REWRITABLE, type RewriteTerms } from '../../../paths/rewriting.ts'
import type { Wishes } from '../../../wire/control.ts'

export const installRewriting: Install = () => ({
  settle(tunnel) {
    const { options, routes } = tunnel
    if (options === undefined) return tunnel
    return {
      ...tunnel,
      ...wishOf(options, tunnel),
      routes: routes.map(route => ({ ...route, ...wishOf(route.options, route) })),
    }
  },
})

/** Throws `OPTION_INVALID`. */
function wishOf(
  options: OriginOptions,
  { origin, hostHeader }: Pick<RouteSettings, 'origin' | 'hostHeader'>,
): { readonly wishes?: Wishes } {
  const stripPrefix = prefixOf('stripPrefix', options.stripPrefix)
  const addPrefix = prefixOf('addPrefix', options.addPrefix)
  const hasPrefix = (stripPrefix ?? addPrefix) !== undefined
  const headers = options.rewrite ?? (hasPrefix || hostHeader !== undefined ? REWRITABLE : [])
  const unknown = headers.find(one => !REWRITABLE.includes(one))
  if (unknown !== undefined)
    throw new TunnelError('OPTION_INVALID', `rewrite: "${unknown}" is none of ${REWRITABLE.join(', ')}.`)
  if (headers.length === 0 && !hasPrefix) return {}
  const rewriting: RewriteTerms = {
    app: origin.url,
    headers,
    ...(hostHeader !== undefined && { hostHeader }),
    ...(stripPrefix !== undefined && { stripPrefix }),
    ...(addPrefix !== undefined && { addPrefix }),
  }
  return { wishes: { rewriting } }
}
