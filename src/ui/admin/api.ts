// The admin API, as this page asks it. The token is kept for this tab alone, and sent in a header: no cookie, nothing in the address.

import type { ClientRow, TokenRow, TunnelRow } from '../../server/admin/rows.ts'

export type { ClientRow, TokenRow, TunnelRow }

export interface Status {
  readonly version: string
  readonly uptimeSeconds: number
  readonly requests: number
  readonly connections: number
  readonly activeSubdomains: number
  readonly pendingResponses: number
}

export interface BanRow {
  readonly id: number
  readonly kind: 'address' | 'tunnel'
  readonly value: string
  readonly reason: string
  readonly since: string
  readonly until?: string
}

export interface TrafficRow {
  readonly at: string
  readonly requests: number
  readonly errors: number
  readonly bytesIn: number
  readonly bytesOut: number
}

export interface AuditRow {
  readonly at: string
  readonly action: string
  readonly actor: string
  readonly subject: string
  readonly detail?: string
}

export interface CertificateRow {
  readonly name: string
  readonly notAfter: string
  readonly daysLeft: number
}

export interface NodeRow {
  readonly id: string
  readonly url: string
  readonly isSelf: boolean
  readonly isReachable: boolean
  readonly inFlight: number
  /** What the server reported last; left out by one of an older version. */
  readonly version?: string
  readonly uptimeSeconds?: number
  readonly clients?: number
  readonly tunnels?: number
  readonly requests?: number
  readonly pending?: number
}

export interface TokenSecret {
  readonly name: string
  readonly token: string
}

export type Span = 'minute' | 'hour' | 'day'

const KEY = 'localtunnels admin token'

export const token = {
  get: (): string => sessionStorage.getItem(KEY) ?? '',
  set: (text: string): void => sessionStorage.setItem(KEY, text),
  forget: (): void => sessionStorage.removeItem(KEY),
}

export class Refused extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

async function ask<Value>(path: string, method = 'GET', body?: unknown): Promise<Value> {
  const answer = await fetch(`/api/v1/${path}`, {
    method,
    headers: {
      authorization: `Bearer ${token.get()}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const value = await answer.json().catch(() => ({ error: { message: answer.statusText } }))
  if (!answer.ok) throw new Refused(answer.status, value.error.message)
  return value
}

const named = encodeURIComponent

export const api = {
  status: () => ask<Status>('status'),
  tunnels: () => ask<{ tunnels: TunnelRow[] }>('tunnels').then(({ tunnels }) => tunnels),
  clients: () => ask<{ clients: ClientRow[] }>('clients').then(({ clients }) => clients),
  bans: () => ask<{ bans: BanRow[] }>('bans').then(({ bans }) => bans),
  tokens: () => ask<{ isKept: boolean; tokens: TokenRow[] }>('tokens'),
  addToken: (wish: { name: string; names?: readonly string[]; forSeconds?: number }) =>
    ask<TokenSecret>('tokens', 'POST', wish),
  rotateToken: (name: string) => ask<TokenSecret>(`tokens/${named(name)}/rotate`, 'POST'),
  revokeToken: (name: string) => ask(`tokens/${named(name)}`, 'DELETE'),
  certificates: () =>
    ask<{ certificates: CertificateRow[] }>('certificates').then(({ certificates }) => certificates),
  nodes: () => ask<{ isClustered: boolean; nodes: NodeRow[] }>('nodes'),
  audit: () => ask<{ isKept: boolean; entries: AuditRow[] }>('audit?limit=200'),
  traffic: (by: Span, tunnel: string) =>
    ask<{ isKept: boolean; traffic: TrafficRow[] }>(
      `traffic?by=${by}&limit=120${tunnel === '' ? '' : `&tunnel=${named(tunnel)}`}`,
    ),
  probe: (name: string) => ask(`tunnels/${named(name)}/probe`, 'POST'),
  closeTunnel: (name: string) => ask(`tunnels/${named(name)}`, 'DELETE'),
  closeClient: (number: number) => ask(`clients/${number}`, 'DELETE'),
  ban: (ban: { kind: string; value: string; reason: string; forSeconds?: number }) =>
    ask('bans', 'POST', ban),
  removeBan: (id: number) => ask(`bans/${id}`, 'DELETE'),
}
