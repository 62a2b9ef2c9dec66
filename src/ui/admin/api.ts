// The admin API for this page. The token is stored for this tab only, and sent in a header, without a cookie or a
// place in the address.

import type {
  Clients,
  Head,
  Overview,
  Servers,
  Tokens,
  Traffic,
  Tunnels,
  View,
} from '../../parts/admin/view-rows.ts'

export interface BanRow {
  readonly id: number
  readonly kind: 'address' | 'tunnel'
  readonly value: string
  readonly reason: string
  readonly since: string
  readonly until?: string
}

export interface AuditRow {
  readonly at: string
  readonly action: string
  readonly actor: string
  readonly subject: string
  readonly detail?: string
}

/** The data of each view. */
export interface Views {
  readonly overview: Overview
  readonly tunnels: Tunnels
  readonly clients: Clients
  readonly traffic: Traffic
  readonly tokens: Tokens
  readonly bans: { readonly head: Head; readonly bans: readonly BanRow[] }
  readonly log: { readonly head: Head; readonly isKept: boolean; readonly entries: readonly AuditRow[] }
  readonly servers: Servers
}

export interface TokenSecret {
  readonly name: string
  readonly token: string
}

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
  // A proxy may have put a path before the page.
  const answer = await fetch(`${location.pathname.replace(/\/$/, '')}/api/v1/${path}`, {
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
  /** Reads a view. `query` is in the form of `textOf`. */
  view: <Name extends View>(name: Name, query: string) => ask<Views[Name]>(`views/${name}${query}`),
  addToken: (wish: { name: string; names?: readonly string[]; forSeconds?: number }) =>
    ask<TokenSecret>('tokens', 'POST', wish),
  rotateToken: (name: string) => ask<TokenSecret>(`tokens/${named(name)}/rotate`, 'POST'),
  revokeToken: (name: string) => ask(`tokens/${named(name)}`, 'DELETE'),
  probe: (name: string) =>
    ask<{ status: number; durationMs: number; code?: string }>(`tunnels/${named(name)}/probe`, 'POST'),
  closeTunnel: (name: string) => ask(`tunnels/${named(name)}`, 'DELETE'),
  closeClient: (number: number) => ask(`clients/${number}`, 'DELETE'),
  ban: (ban: { kind: string; value: string; reason: string; forSeconds?: number }) =>
    ask('bans', 'POST', ban),
  removeBan: (id: number) => ask(`bans/${id}`, 'DELETE'),
}
