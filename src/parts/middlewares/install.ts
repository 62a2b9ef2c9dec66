// Middlewares as a part of a server: the last layer, around the upstream that the others chose.

import { changed, type Route, routedLater } from '../../server/contracts/front.ts'
import type { Install } from '../../server/contracts/part.ts'
import { pluginsFor } from '../../server/settings/plugins-for.ts'

export const installMiddlewares: Install = server => {
  let code: typeof import('./middleware.ts') | undefined
  const load = async () => (code ??= await import('./middleware.ts'))
  const ownOf = (tunnel: string) => pluginsFor(server.settings.middlewares, tunnel)
  return {
    name: 'middlewares',
    async load({ middlewares }) {
      if (middlewares.length > 0) await load()
    },
    layer(next, tunnel) {
      const { name } = tunnel
      const own = ownOf(name)
      if (own.length === 0 && !tunnel.isGuarded) return next
      return request => {
        const middlewares = [...own, ...request.middlewares]
        if (middlewares.length === 0 || request.arrival.from?.isCopy === true) return next(request)
        const wrapping = {
          tunnel: name,
          address: request.address,
          refused: request.refused.bind(request),
        }
        const goOn = ({ wrap }: typeof import('./middleware.ts')): Route =>
          changed(next(request), route =>
            route.kind === 'upstream' && !route.isOwn ? wrap(server, middlewares, route, wrapping) : route,
          )
        // Only a guard added a middleware, whose code is loaded when needed.
        return code === undefined ? routedLater(load(), goOn) : goOn(code)
      }
    },
    // Middlewares run on the main thread.
    lane: ({ tunnel }) => (ownOf(tunnel.name).length > 0 ? 'none' : undefined),
  }
}
