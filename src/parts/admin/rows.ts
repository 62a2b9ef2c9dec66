// Rows of the admin API, for the server that makes them and the page that shows them.

import type { RecentRow } from '../../measures.ts'

export type { RecentRow } from '../../measures.ts'

export interface TunnelRow {
  readonly name: string
  readonly kind: 'http' | 'tcp' | 'udp' | 'tls' | 'private'
  readonly url: string
  /** The id of the other server that has it. Left out: this one has it. */
  readonly server?: string
  /** The state. `up`: a client serves it; `reconnecting`: its client is away, within the lease; `unhealthy`: its app is. */
  readonly state: 'up' | 'reconnecting' | 'unhealthy'
  /** Numbers of its clients at this server. */
  readonly clients: readonly number[]
  readonly isGuarded: boolean
  /** Requests and connections in progress. */
  readonly inFlight: number
  readonly requests: number
  readonly errors: number
  readonly bytesIn: number
  readonly bytesOut: number
  /** The name of the token that opened it. Left out: it has none. */
  readonly token?: string
  readonly recent: RecentRow
  /** Requests and connections that had an error code, by the code. */
  readonly codes: Readonly<Record<string, number>>
  /** The time when the app last responded to a visitor or a probe. Left out: not since the server started. */
  readonly lastProvenAt?: string
  readonly lastProbe?: ProbeView
}

export interface ProbeView {
  readonly at: string
  /** The status of the app's response. 0 for none. */
  readonly status: number
  readonly durationMs: number
  readonly code?: string
}

export interface ClientRow {
  /** The number that its server gave it. */
  readonly number: number
  /** The id of the other server that it is connected to. Left out: to this one. */
  readonly server?: string
  readonly wire: 'streams' | 'json'
  readonly address: string
  readonly connectedAt: string
  /** The agent that the client names, such as `localtunnels/0.1.0`. Left out if the client names none. */
  readonly agent?: string
  /** The name of its token. Left out: it has none. */
  readonly token?: string
  /** The smallest round trip, milliseconds. Left out: not measured yet. */
  readonly roundTripMs?: number
  readonly tunnels: readonly string[]
}

export interface TokenRow {
  readonly name: string
  readonly createdAt: string
  /** The time of its end. Absent if it has none. */
  readonly expiresAt?: string
  /** The time of its last use, to the minute. Left out: never. */
  readonly lastUsedAt?: string
  /** The scope, such as `{ names: ['ci-*'] }`; `{}`: everything. */
  readonly scope: object
}
