// An origin with a bound on dials in progress: a stream that is reset leaves its dial behind, and streams alone are counted.

import { TunnelError } from '../../errors.ts'
import type { Origin } from './origin.ts'

/** The same origin; beyond `maxDials` at once it is not dialled, and the stream is refused with `TUNNEL_BUSY`. */
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
