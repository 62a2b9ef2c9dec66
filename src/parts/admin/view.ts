// Makes the rows of the admin API from the tunnels and clients of a server, without secrets and bodies.

import type { ClientConnection } from '../../server/contracts/clients.ts'
import type { Tunnel } from '../../server/tunnels/tunnel.ts'
import type { KeptToken } from '../../tokens.ts'
import type { Metrics } from './metrics.ts'
import type { Probe } from './probes.ts'
import type { ClientRow, ProbeView, RecentRow, TokenRow, TunnelRow } from './rows.ts'
import { countsOf, NONE } from './traffic-log.ts'

export function tunnelRow(
  tunnel: Tunnel,
  url: string,
  metrics: Metrics,
  recent: RecentRow,
  probe: Probe | undefined,
): TunnelRow {
  const { name, kind, members, isGuarded } = tunnel
  const token = tunnel.holder?.rule.name
  const series = metrics.series.get(name)
  const present = members.filter(({ upstream }) => upstream !== undefined)
  const state =
    present.length === 0 ? 'reconnecting' : present.some(({ isHealthy }) => isHealthy) ? 'up' : 'unhealthy'
  const { durations: _, ...counts } = series === undefined ? NONE : countsOf(series)
  const provenAtMs = series?.provenAtMs ?? 0
  return {
    name,
    kind,
    url,
    state,
    clients: present.flatMap(({ client }) => client?.number ?? []),
    isGuarded,
    inFlight: members.reduce((sum, { inFlight }) => sum + inFlight, 0),
    ...counts,
    ...(token !== undefined && { token }),
    recent,
    codes: Object.fromEntries(series?.codes ?? []),
    ...(provenAtMs > 0 && { lastProvenAt: new Date(provenAtMs).toISOString() }),
    ...(probe !== undefined && { lastProbe: probeView(probe) }),
  }
}

export function probeView({ atMs, status, durationMs, code }: Probe): ProbeView {
  return { at: new Date(atMs).toISOString(), status, durationMs, ...(code !== undefined && { code }) }
}

export function clientRow(client: ClientConnection, tunnels: readonly Tunnel[]): ClientRow {
  const { number, wire, remoteAddress, connectedAtMs, agent, roundTripMs } = client
  const token = client.holder.rule.name
  return {
    number,
    wire,
    address: remoteAddress,
    connectedAt: new Date(connectedAtMs).toISOString(),
    ...(agent !== '' && { agent }),
    ...(token !== undefined && { token }),
    ...(roundTripMs > 0 && { roundTripMs: Math.round(roundTripMs * 100) / 100 }),
    tunnels: tunnels
      .filter(({ members }) => members.some(member => member.client === client))
      .map(({ name }) => name),
  }
}

export function tokenRow({ name, createdAtMs, expiresAtMs, lastUsedAtMs, scope }: KeptToken): TokenRow {
  return {
    name,
    createdAt: new Date(createdAtMs).toISOString(),
    ...(expiresAtMs !== undefined && { expiresAt: new Date(expiresAtMs).toISOString() }),
    ...(lastUsedAtMs !== undefined && { lastUsedAt: new Date(lastUsedAtMs).toISOString() }),
    scope,
  }
}
