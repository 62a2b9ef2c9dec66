// The rows of the admin API, for the server that makes them and the page that shows them.

import type { RecentRow } from '../../measures.ts'

export type { RecentRow } from '../../measures.ts'

export interface TunnelRow {
  readonly name: string
  readonly kind: 'http' | 'tcp' | 'udp' | 'tls' | 'private'
  readonly url: string
  /** The id of the other server with the tunnel. Left out if it is this one. */
  readonly server?: string
  /** The state. `up`: a client serves it; `reconnecting`: its client is away, within the lease; `unhealthy`: its app is. */
  readonly state: 'up' | 'reconnecting' | 'unhealthy'
  /** The numbers of its clients at this server. */
  readonly clients: readonly number[]
  readonly isGuarded: boolean
  /** The number of requests and connections in progress. */
  readonly inFlight: number
  readonly requests: number
  readonly errors: number
  readonly bytesIn: number
  readonly bytesOut: number
  /** The name of the token that opened it. Left out without one. */
  readonly token?: string
  readonly recent: RecentRow
  /** The number of requests and connections with an error code, by code. */
  readonly codes: Readonly<Record<string, number>>
  /** The time when the app last responded to a visitor or a probe. Left out if it has not since the server started. */
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
  /** The id of the other server to which it is connected. Left out if it is this one. */
  readonly server?: string
  readonly wire: 'streams' | 'json'
  readonly address: string
  readonly connectedAt: string
  /** The program and version that the client reports, such as `localtunnels/0.1.0`. Left out without one. */
  readonly agent?: string
  /** The name of its token. Left out without one. */
  readonly token?: string
  /** The smallest round trip in milliseconds. Left out before it is measured. */
  readonly roundTripMs?: number
  readonly tunnels: readonly string[]
}

export interface TokenRow {
  readonly name: string
  readonly createdAt: string
  /** The time when it expires. Left out if it does not. */
  readonly expiresAt?: string
  /** The time of its last use, to the minute. Left out before the first. */
  readonly lastUsedAt?: string
  /** The scope, such as `{ names: ['ci-*'] }`; `{}` allows everything. */
  readonly scope: object
}
