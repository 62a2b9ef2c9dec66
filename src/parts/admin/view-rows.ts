// The rows of the admin page's views, for the server that makes them and the page that shows them.

import type { ClientRow, RecentRow, TokenRow, TunnelRow } from './rows.ts'

export const VIEWS = [
  'overview',
  'tunnels',
  'clients',
  'traffic',
  'tokens',
  'bans',
  'log',
  'servers',
] as const
export type View = (typeof VIEWS)[number]

export interface Head {
  /** The first domain of the server. */
  readonly domain: string
  readonly version: string
  readonly status: 'operational' | 'draining' | 'stopped'
  readonly uptimeSeconds: number
  /** The counts of all servers that report; for tokens and bans, those of this one. */
  readonly counts: { readonly [view in 'tunnels' | 'clients' | 'tokens' | 'bans' | 'servers']: number }
}

/** The traffic of one minute, hour or day. */
export interface Point {
  readonly requests: number
  readonly errors: number
  readonly bytesIn: number
  readonly bytesOut: number
  readonly p50?: number
  readonly p95?: number
}

/** The whole range up to now. `null` where nothing was measured. */
export interface Series {
  readonly isKept: boolean
  readonly fromMs: number
  readonly stepMs: number
  readonly points: readonly (Point | null)[]
}

export interface Listed<Row> {
  readonly rows: readonly Row[]
  /** The number of rows without the limit. */
  readonly matching: number
}

/** A server with its last report. An older version reports less, or nothing. */
export interface ServerRow {
  readonly id: string
  readonly isSelf?: boolean
  readonly isReachable: boolean
  readonly version?: string
  readonly uptimeSeconds?: number
  readonly clients?: number
  readonly tunnels?: number
  readonly requests?: number
  readonly pending?: number
  readonly recent?: RecentRow
}

export interface CertificateRow {
  readonly name: string
  readonly notAfter: string
  readonly daysLeft: number
}

export interface TokenUse extends TokenRow {
  readonly tunnels: number
  readonly clients: number
  readonly recent: RecentRow
}

export interface Overview {
  readonly head: Head
  /** The recent traffic of all servers that report. */
  readonly recent: RecentRow
  readonly inFlight: number
  readonly series: Series
  /** The difference in requests from an hour ago, as a fraction. Left out if not measured. */
  readonly hourAgo?: number
  readonly busiest: readonly TunnelRow[]
  /** The tokens whose tunnels together have the most requests. */
  readonly users: readonly (readonly [token: string, recent: RecentRow])[]
  /** The tunnel with the most recent errors. */
  readonly worst?: TunnelRow
  readonly attention: readonly Attention[]
  readonly codes: readonly (readonly [code: string, count: number])[]
  readonly servers: readonly ServerRow[]
  readonly certificates: readonly CertificateRow[]
}

export interface Tunnels extends Listed<TunnelRow> {
  readonly head: Head
  /** The number of rows for each choice of `only`. */
  readonly choices: Readonly<Record<string, number>>
  readonly open?: { readonly row: TunnelRow; readonly clients: readonly ClientRow[]; readonly series: Series }
}

export interface Clients extends Listed<ClientRow> {
  readonly head: Head
}

export interface Traffic {
  readonly head: Head
  readonly series: Series
  /** Names of tunnels. */
  readonly names: readonly string[]
  readonly servers: readonly string[]
}

export interface Tokens {
  readonly head: Head
  readonly isKept: boolean
  readonly tokens: readonly TokenUse[]
}

export interface Servers {
  readonly head: Head
  readonly servers: readonly ServerRow[]
  readonly certificates: readonly CertificateRow[]
}

export interface Attention {
  readonly kind:
    | 'server-away'
    | 'app-down'
    | 'errors'
    | 'certificate-ends'
    | 'token-ends'
    | 'slow'
    | 'client-away'
    | 'token-unused'
  readonly isBad: boolean
  /** The tunnel, token, server or certificate. */
  readonly subject: string
  /** The value: errors in percent, milliseconds, or days. */
  readonly value: number
  /** How many of this kind are not listed. */
  readonly more?: number
}
