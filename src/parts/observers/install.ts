// Observers as a part of a server: a layer for tunnels that one of them watches.

import { shownTarget } from '../../guard.ts'
import type { RequestHead } from '../../http/head.ts'
import { parentOf } from '../../http/tracing.ts'
import type { Seen } from '../../plugin.ts'
import type { LaneAsking, LaneClause } from '../../server/contracts/laning.ts'
import type { Install } from '../../server/contracts/part.ts'
import { toHundredth } from '../../server/routing/exchanges.ts'
import { Observers, type Watched } from './observers.ts'

export const installObservers: Install = server => {
  const observers = new Observers(() => server.settings.observers, server.faults)
  const watch = (tunnel: string, head: RequestHead, address: string): Watched | undefined => {
    const watched = observers.began(tunnel, () => seenOf(head, address))
    const traced = watched?.trace(() => parentOf(head))
    if (traced !== undefined) head.traceparent = traced
    return watched
  }
  return {
    name: 'observers',
    layer(next, { name }) {
      if (!observers.areFor(name)) return next
      return request => {
        const watched = watch(name, request.head, request.address)
        if (watched !== undefined) request.follow(watched)
        return next(request)
      }
    },
    missed({ head, address, ...ending }) {
      // A refused request without a tunnel goes to the observers of all tunnels.
      watch('', head, address)?.ended(ending)
    },
    followRaw(visit) {
      const { tunnel, address } = visit
      const { name, kind } = tunnel
      const watched = observers.began(name, () => ({ kind, address, method: '', target: '', host: '' }))
      if (watched === undefined) return undefined
      return {
        sent: () => watched.sent(),
        ended: ({ bytesIn, bytesOut, error }) =>
          watched.ended({
            status: 0,
            requestBytes: bytesIn,
            responseBytes: bytesOut,
            code: error,
            reason: undefined,
            served: visit.served,
          }),
      }
    },
    lane(asking) {
      const { name } = asking.tunnel
      if (!observers.areFor(name)) return undefined
      // Each request on a proxy's connection may come from another visitor, which only the main thread can tell.
      if (asking.isProxy || observers.trace(name)) return 'none'
      return loggedOf(observers, asking) ?? calledOf(observers, asking)
    },
  }
}

function seenOf(
  { method, target, host, requestId }: RequestHead,
  address: string,
): Omit<Seen, 'id' | 'tunnel'> {
  const seen = { kind: 'http', address, method, target: shownTarget(target), host } as const
  return requestId === '' ? seen : { ...seen, requestId }
}

/** Returns the access log whose lines lanes write themselves. */
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

/** Returns the observers' calls for exchanges of a lane, each of which is already over. */
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
        responseBytes: bytes,
      })
    },
  }
}
