// The metrics for the operator, as a part of a server that has an admin listener.

import type { Install } from '../../server/contracts/part.ts'
import { DEFAULT_METRIC_TUNNELS, Metrics } from './metrics.ts'

const metrics = new WeakMap<object, Metrics>()

/** Returns the metrics of this server for the operator's view. `undefined` if there are none. */
export function metricsOf(server: object): Metrics | undefined {
  return metrics.get(server)
}

export const installMetrics: Install = server => {
  const { admin } = server.settings
  if (admin === undefined) return { name: 'metrics' }
  const { maxMetricTunnels = DEFAULT_METRIC_TUNNELS } = admin
  const book = new Metrics(maxMetricTunnels, name => server.tunnels.find(name) !== undefined)
  metrics.set(server, book)
  return {
    name: 'metrics',
    layer: (next, tunnel) => request => {
      const { startedAt, head } = request
      request.follow({
        held() {
          book.held++
        },
        ended({ status, code, requestBytes, responseBytes }) {
          const durationMs = performance.now() - startedAt
          const { method } = head
          book.ended(tunnel.name, { method, status, durationMs, requestBytes, responseBytes, code })
        },
      })
      return next(request)
    },
    missed: ({ code }) => book.refused(code),
    noted(note) {
      if (note.kind === 'refused') book.refused(note.code)
      else if (note.kind === 'retried') book.retried++
      else book.inbox[note.outcome]++
    },
    followRaw: ({ tunnel }) => ({
      ended: ({ bytesIn, bytesOut, error }) => book.rawEnded(tunnel.name, bytesIn, bytesOut, error),
    }),
    lane: ({ tunnel }) => ({
      // Measurements are per method, so lanes are for GETs only.
      terms: { isMeasured: true, isForGets: true },
      measured(measures, bytesIn, bytesOut) {
        book.measured(tunnel.name, 'GET', measures)
        book.moved(tunnel.name, bytesIn, bytesOut)
      },
    }),
  }
}
