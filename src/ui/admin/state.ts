// What the page knows of the server, asked again every few seconds while it is in sight.

import { signal } from '@preact/signals'
import {
  type AuditRow,
  api,
  type BanRow,
  type CertificateRow,
  type ClientRow,
  type NodeRow,
  Refused,
  type Span,
  type Status,
  type TokenRow,
  type TokenSecret,
  type TrafficRow,
  type TunnelRow,
  token,
} from './api.ts'

export const VIEWS = ['tunnels', 'clients', 'traffic', 'tokens', 'bans', 'log', 'server'] as const
export type View = (typeof VIEWS)[number]

const ASK_MS = 3_000

export const isSignedIn = signal(token.get() !== '')
export const view = signal<View>('tunnels')
export const connection = signal<'loading' | 'live' | 'lost'>('loading')
/** Of the last thing that was done. */
export const toast = signal('')
/** What is about to be done, for the operator to say yes. */
export const question = signal<{ readonly text: string; readonly yes: () => Promise<unknown> } | undefined>(
  undefined,
)
export const filter = signal('')
export const span = signal<Span>('minute')
/** Whose traffic; `''`: all. */
export const tunnel = signal('')

export const status = signal<Status | undefined>(undefined)
export const tunnels = signal<readonly TunnelRow[] | undefined>(undefined)
export const clients = signal<readonly ClientRow[] | undefined>(undefined)
export const bans = signal<readonly BanRow[] | undefined>(undefined)
export const traffic = signal<{ isKept: boolean; traffic: readonly TrafficRow[] } | undefined>(undefined)
export const log = signal<{ isKept: boolean; entries: readonly AuditRow[] } | undefined>(undefined)
export const tokens = signal<{ isKept: boolean; tokens: readonly TokenRow[] } | undefined>(undefined)
/** Of a token that was just made: shown once, and forgotten with the next look elsewhere. */
export const secret = signal<TokenSecret | undefined>(undefined)
export const certificates = signal<readonly CertificateRow[]>([])
export const nodes = signal<{ isClustered: boolean; nodes: readonly NodeRow[] } | undefined>(undefined)

const ASKS: Readonly<Record<View, () => Promise<void>>> = {
  tunnels: async () => {
    tunnels.value = await api.tunnels()
  },
  clients: async () => {
    clients.value = await api.clients()
  },
  traffic: async () => {
    const [names, rows] = await Promise.all([api.tunnels(), api.traffic(span.value, tunnel.value)])
    tunnels.value = names
    traffic.value = rows
  },
  tokens: async () => {
    tokens.value = await api.tokens()
  },
  bans: async () => {
    bans.value = await api.bans()
  },
  log: async () => {
    log.value = await api.audit()
  },
  server: async () => {
    const [own, others] = await Promise.all([api.certificates(), api.nodes()])
    certificates.value = own
    nodes.value = others
  },
}

/** Asks for what is in sight. */
export async function refresh(): Promise<void> {
  if (!isSignedIn.value) return
  try {
    const [now] = await Promise.all([api.status(), ASKS[view.value]()])
    status.value = now
    connection.value = 'live'
  } catch (error) {
    if (error instanceof Refused && error.status === 401) return signOut('That is not the token.')
    connection.value = 'lost'
  }
}

export function signIn(text: string): void {
  token.set(text)
  isSignedIn.value = true
  toast.value = ''
  connection.value = 'loading'
  void refresh()
}

export function signOut(why = ''): void {
  token.forget()
  // The next who signs in here sees nothing of before.
  for (const one of [status, tunnels, clients, bans, tokens, traffic, log, nodes, secret, question])
    one.value = undefined
  certificates.value = []
  isSignedIn.value = false
  toast.value = why
}

/** Does it, says what came of it, and shows what is now. */
export async function act(what: Promise<unknown>, done: string): Promise<void> {
  try {
    await what
    toast.value = done
  } catch (error) {
    toast.value = error instanceof Error ? error.message : String(error)
  }
  await refresh()
}

export function show(next: View): void {
  secret.value = undefined
  view.value = next
  void refresh()
}

export function follow(): void {
  takeToken()
  addEventListener('hashchange', takeToken)
  void refresh()
  setInterval(() => {
    if (document.visibilityState === 'visible') void refresh()
  }, ASK_MS)
}

/** A link to the page may have the token behind #, which no server sees. It goes from the address at once. */
function takeToken(): void {
  if (location.hash.length < 2) return
  const text = decodeURIComponent(location.hash.slice(1))
  history.replaceState(null, '', location.pathname)
  signIn(text)
}
