// On what terms a lane may serve requests past what is between visitors and clients: each feature has its clause.

import type { LaneAsking, LaneClause } from '../contracts/part.ts'
import { toHundredth } from '../exchanges.ts'
import type { Observers } from '../observers.ts'
import { pluginsFor } from '../plugins-for.ts'
import type { ServerRoom } from '../room.ts'
import type { Tunnel } from '../tunnel.ts'
import type { Allotments } from './allotments.ts'

export interface LaneDeskAsking extends LaneAsking {
  readonly tunnel: Tunnel
}

type Clause = LaneClause | 'none' | undefined

/** `undefined`: there is to be no lane. */
export function clausesFor(
  room: ServerRoom,
  allotments: Allotments,
  asking: LaneDeskAsking,
): readonly LaneClause[] | undefined {
  const { bans, settings, observers } = room
  const { tunnel, address, isProxy } = asking
  if (bans?.hasAddresses && (isProxy || room.isBanned(address))) return undefined
  if (pluginsFor(settings.middlewares, tunnel.name).length > 0) return undefined
  const clauses: LaneClause[] = []
  for (const clause of [
    observersClause(observers, asking),
    metricsClause(room, tunnel),
    allotments.clauseFor(asking),
  ]) {
    if (clause === 'none') return undefined
    if (clause !== undefined) clauses.push(clause)
  }
  return clauses
}

function metricsClause({ metrics }: ServerRoom, { name }: Tunnel): Clause {
  return (
    metrics && {
      // Measures are by method.
      terms: { isMeasured: true, isForGets: true },
      measured(measures, bytesIn, bytesOut) {
        metrics.measured(name, 'GET', measures)
        metrics.moved(name, bytesIn, bytesOut)
      },
    }
  )
}

function observersClause(observers: Observers, asking: LaneDeskAsking): Clause {
  const { name } = asking.tunnel
  if (!observers.areFor(name)) return undefined
  // Each request of a proxy's connection may be another visitor's: only the main thread reads who it says.
  if (asking.isProxy || observers.trace(name)) return 'none'
  return loggedOf(observers, asking) ?? calledOf(observers, asking)
}

/** Lanes write the lines of an access log themselves. */
function loggedOf(
  observers: Observers,
  { tunnel, head, address, served }: LaneAsking,
): LaneClause | undefined {
  const lined = observers.linesOf(tunnel.name)
  if (lined === undefined) return undefined
  const { observer, log } = lined
  const seen = { kind: 'http', tunnel: tunnel.name, address, method: 'GET', host: head.host } as const
  return {
    terms: {
      isForGets: true,
      log: { number: log, ids: observers.ids, ...observer.accessLines.of(seen, served) },
    },
    logged: (lines, count) => observers.tell([observer], () => observer.accessLines.write(lines, count)),
  }
}

/** Each exchange of a lane is reported, and all of it is over by then. */
function calledOf(observers: Observers, { tunnel, head, address, served }: LaneAsking): LaneClause {
  const { host } = head
  return {
    terms: { isReported: true },
    exchanged({ requestId, method, target, status, durationMs, requestBytes, bytes }) {
      const id = observers.nextId()
      const seen = { id, kind: 'http', tunnel: tunnel.name, address, host, method, target } as const
      const ms = toHundredth(durationMs)
      observers.served(requestId === '' ? seen : { ...seen, requestId }, {
        ...served,
        status,
        durationMs: ms,
        waitMs: 0,
        appMs: ms,
        requestBytes,
        answerBytes: bytes,
      })
    },
  }
}
