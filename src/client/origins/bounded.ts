// Limits an origin's dials in progress. A reset stream leaves its dial behind, and the other limits count only streams.

import { TunnelError } from '../../errors.ts'
import type { Origin } from './origin.ts'

/**
 * Returns the origin with a limit: with `maxDials` in progress, a stream is refused with `TUNNEL_BUSY` without a
 * dial.
 */
export function bounded(origin: Origin, maxDials: number): Origin {
  let dials = 0
  return {
    label: origin.label,
    url: origin.url,
    async connect(handler) {
      if (dials >= maxDials) throw new TunnelError('TUNNEL_BUSY')
      dials++
      try {
        return await origin.connect(handler)
      } finally {
        dials--
      }
    },
  }
}
