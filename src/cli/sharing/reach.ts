// Reports that visitors do not reach the tunnel, although client and server are connected. Loaded when that happens.

import type { TunnelClientEvents } from '../../client/options.ts'
import type { Output } from '../output.ts'

export function tellReach(reach: TunnelClientEvents['reach'], output: Output): void {
  const code = reach.isReachable ? 'PROVEN' : 'UNPROVEN'
  output.event({ type: 'notice', code, message: reachLine(reach) })
}

export function reachLine({ url, isReachable }: TunnelClientEvents['reach']): string {
  return isReachable
    ? 'Visitors reach it again.'
    : `No request comes back through ${url} any more: visitors may not reach it. Run: localtunnels doctor`
}
