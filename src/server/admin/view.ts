// What the admin API tells: rows made from the tunnels and clients of a server. Secrets and bodies are never among them.

import type { ClientConnection } from '../clients.ts'
import type { Metrics } from '../metrics.ts'
import type { Tunnel } from '../tunnels.ts'
import type { Probe } from './probes.ts'
import { countsOf } from './traffic-book.ts'

export interface TunnelRow {
  readonly name: string
  readonly kind: Tunnel['kind']
  readonly url: string
  /** `up`: a client serves it; `reconnecting`: its client is away, within the lease; `unhealthy`: its app is. */
  readonly state: 'up' | 'reconnecting' | 'unhealthy'
  /** Numbers of its clients. */
  readonly clients: readonly number[]
  readonly isGuarded: boolean
  /** Requests and connections under way. */
  readonly inFlight: number
  readonly requests: number
  readonly errors: number
  readonly bytesIn: number
  readonly bytesOut: number
  /** When the app last answered a visitor or a probe. Left out: not since the server began. */
  readonly lastProvenAt?: string
  readonly lastProbe?: ProbeView
}

export function tunnelRow(
  tunnel: Tunnel,
  url: string,
  metrics: Metrics,
  probe: Probe | undefined,
): TunnelRow {
  const { name, kind, members, isGuarded } = tunnel
  const series = metrics.series.get(name)
  const present = members.filter(({ upstream }) => upstream !== undefined)
  const state =
    present.length === 0 ? 'reconnecting' : present.some(({ isHealthy }) => isHealthy) ? 'up' : 'unhealthy'
  const counts = series === undefined ? { requests: 0, errors: 0, bytesIn: 0, bytesOut: 0 } : countsOf(series)
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
    ...(provenAtMs > 0 && { lastProvenAt: new Date(provenAtMs).toISOString() }),
    ...(probe !== undefined && { lastProbe: probeView(probe) }),
  }
}

export interface ProbeView {
  readonly at: string
  /** 0: the app did not answer. */
  readonly status: number
  readonly durationMs: number
  readonly code?: string
}

export function probeView({ atMs, status, durationMs, code }: Probe): ProbeView {
  return { at: new Date(atMs).toISOString(), status, durationMs, ...(code !== undefined && { code }) }
}

export interface ClientRow {
  readonly number: number
  readonly wire: 'streams' | 'json'
  readonly address: string
  readonly connectedAt: string
  /** What it says it is, such as `localtunnels/0.1.0`. Left out: it says nothing. */
  readonly agent?: string
  /** The smallest round trip, milliseconds. Left out: not measured yet. */
  readonly roundTripMs?: number
  readonly tunnels: readonly string[]
}

export function clientRow(client: ClientConnection, tunnels: readonly Tunnel[]): ClientRow {
  const { number, wire, remoteAddress, connectedAtMs, agent, roundTripMs } = client
  return {
    number,
    wire,
    address: remoteAddress,
    connectedAt: new Date(connectedAtMs).toISOString(),
    ...(agent !== '' && { agent }),
    ...(roundTripMs > 0 && { roundTripMs: Math.round(roundTripMs * 100) / 100 }),
    tunnels: tunnels
      .filter(({ members }) => members.some(member => member.client === client))
      .map(({ name }) => name),
  }
}
