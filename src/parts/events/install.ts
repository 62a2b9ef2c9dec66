// The events of a server for its visitors, as a part: `request`, `requests`, `visitorConnected`, `visitorDisconnected`.

import { shownTarget } from '../../guard.ts'
import type { LayeredTunnel } from '../../server/contracts/layer.ts'
import type { Install } from '../../server/contracts/part.ts'
import { msSince, toHundredth } from '../../server/routing/exchanges.ts'
import { isFailure, Reports } from '../../server/routing/reports.ts'
import type { TunnelServerEvents } from '../../server/settings/options.ts'

type Report = Omit<TunnelServerEvents['request'], 'subdomain' | 'host'>

export const installEvents: Install = server => {
  let lastVisitor = 0
  const reports = new Reports(
    server.deadlines,
    () => server.settings.reportRate,
    ({ requests, errors, bytes }) => server.emit('requests', { requests, errors, bytes }),
  )
  server.deadlines.watch(reports)
  const emit = (tunnel: LayeredTunnel, host: string, report: Report): void =>
    server.emit('request', { subdomain: tunnel.name, ...(tunnel.isWildcard && { host }), ...report })
  return {
    name: 'events',
    ended(tunnel, { head, startedAt }, { status, responseBytes, code, reason }) {
      if (!reports.take()) return reports.ended(isFailure(status, code), responseBytes)
      emit(tunnel, head.host, {
        method: head.method,
        path: shownTarget(head.target),
        status,
        durationMs: msSince(startedAt),
        bytes: responseBytes,
        ...(code !== undefined && { error: code }),
        ...(reason !== undefined && { reason }),
      })
    },
    lane({ tunnel, head: { host } }) {
      if (!server.isHeard) return undefined
      return {
        reportRate: () => reports.rate || Number.POSITIVE_INFINITY,
        tally: counts => reports.counted(counts),
        exchanged({ method, target, status, durationMs, bytes }) {
          if (!reports.take()) return reports.ended(isFailure(status, undefined), bytes)
          emit(tunnel, host, { method, path: target, status, durationMs: toHundredth(durationMs), bytes })
        },
      }
    },
    followRaw(visit) {
      const id = ++lastVisitor
      const { address: remoteAddress, port: remotePort } = visit.source
      const visitor = { id, tunnel: visit.tunnel.name, remoteAddress, remotePort }
      server.emit('visitorConnected', visitor)
      return { ended: end => server.emit('visitorDisconnected', { ...visitor, ...end }) }
    },
    stop: () => reports.flush(),
  }
}
