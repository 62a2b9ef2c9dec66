// The time limit for the head of an app's response, as its client chose it, as a part of a server.

import type { LayeredTunnel } from '../../server/contracts/layer.ts'
import type { Install } from '../../server/contracts/part.ts'
import { longestResponseMs } from '../../server/settings/bounds.ts'

export const installPatience: Install = server => {
  const chosen = new WeakMap<LayeredTunnel, number>()
  const longest = () => longestResponseMs(server.limits)
  return {
    name: 'patience',
    wishes: { responseTimeoutMs: wish => refusalOf(wish, longest()) },
    layer(next, tunnel) {
      const ms = chosen.get(tunnel)
      if (ms === undefined) return next
      // A reload may have lowered the limit.
      const originTimeoutMs = Math.min(ms, longest() || ms)
      return request => {
        request.originTimeoutMs = originTimeoutMs
        return next(request)
      }
    },
    lane: () => undefined,
    registered(tunnel, { wishes: { responseTimeoutMs: ms } }) {
      if (chosen.get(tunnel) === ms) return
      if (typeof ms === 'number') chosen.set(tunnel, ms)
      else chosen.delete(tunnel)
      tunnel.routesChanged()
    },
  }
}

function refusalOf(wish: unknown, longestMs: number): string | undefined {
  if (!Number.isSafeInteger(wish) || Number(wish) < 1)
    return 'responseTimeoutMs is not a number of milliseconds.'
  if (longestMs === 0 || Number(wish) <= longestMs) return undefined
  return `An app has at most ${longestMs / 1_000} s for a response on this server (maxResponseTimeoutMs), and responseTimeoutMs asks for ${Number(wish) / 1_000} s.`
}
