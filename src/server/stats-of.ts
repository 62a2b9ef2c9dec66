// Translates the counters of a server to its public statistics.

import type { ServerContext } from './context/server-context.ts'
import type { ServerStats } from './settings/stats.ts'

/** Returns the public statistics from the server's counters. `clients` and `rawVisitors` are the numbers connected now. */
export function statsOf(
  { counters, flows, state, tunnels }: ServerContext,
  version: string,
  clients: number,
  rawVisitors: number,
  includeSubdomains: boolean,
): ServerStats {
  const { startedAt, totalConnections, pending } = counters
  const uptimeSeconds = startedAt === 0 ? 0 : Math.floor((Date.now() - startedAt) / 1000)
  const { requests, bytesIn, bytesOut } = tunnels.lanes.addedTo(counters)
  return {
    status: state === 'running' ? 'operational' : state === 'draining' ? 'draining' : 'stopped',
    version,
    connections: clients,
    totalConnections,
    activeSubdomains: tunnels.count,
    rawVisitors,
    totalRawVisitors: counters.rawVisitors,
    ...(includeSubdomains && {
      subdomains: tunnels.names(),
      droppedDatagramsByTunnel: tunnels.droppedDatagrams(),
    }),
    flows: flows.taken,
    droppedDatagrams: counters.droppedDatagrams,
    pendingResponses: pending,
    requests,
    uptimeSeconds,
    uptime: `${uptimeSeconds}s`,
    bytesIn,
    bytesOut,
  }
}
