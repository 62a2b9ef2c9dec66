// On what terms a lane may serve requests past what is between visitors and clients: what no part says yet.

import type { LaneAsking, LaneClause } from '../contracts/part.ts'
import type { ServerRoom } from '../room.ts'
import type { Tunnel } from '../tunnel.ts'
import type { Allotments } from './allotments.ts'

export interface LaneDeskAsking extends LaneAsking {
  readonly tunnel: Tunnel
}

/** `undefined`: there is to be no lane. */
export function clausesFor(
  room: ServerRoom,
  allotments: Allotments,
  asking: LaneDeskAsking,
): readonly LaneClause[] | undefined {
  const { bans } = room
  const { address, isProxy } = asking
  if (bans?.hasAddresses && (isProxy || room.isBanned(address))) return undefined
  const clause = allotments.clauseFor(asking)
  return clause === 'none' ? undefined : clause === undefined ? [] : [clause]
}
