// Finds what needs the operator's attention, the worst first.

import { quantile } from '../../measures.ts'
import type { TokenRow, TunnelRow } from './rows.ts'
import type { Attention, CertificateRow, ServerRow } from './view-rows.ts'

const DAY_MS = 86_400_000
/** The share of failed requests that counts as many errors, and the minimum number of requests. */
const MANY_ERRORS = 0.05
const FEW_REQUESTS = 5
const SLOW_MS = 1_000
const SOON_DAYS = 14
const VERY_SOON_DAYS = 4
const UNUSED_DAYS = 60
/** Of one kind: many slow tunnels hide no token that ends. */
const MOST_OF_KIND = 3

interface Looked {
  readonly tunnels: readonly TunnelRow[]
  readonly tokens: readonly TokenRow[]
  readonly certificates: readonly CertificateRow[]
  readonly servers: readonly ServerRow[]
}

export function attentionOf({ tunnels, tokens, certificates, servers }: Looked): readonly Attention[] {
  const now = Date.now()
  const daysTo = (time: string) => Math.floor((Date.parse(time) - now) / DAY_MS)
  const inUse = new Set(tunnels.map(({ token }) => token))
  const all = [
    ...servers.filter(({ isReachable }) => !isReachable).map(({ id }) => need('server-away', true, id)),
    ...tunnels.flatMap(ofTunnel),
    ...certificates
      .filter(({ daysLeft }) => daysLeft < SOON_DAYS)
      .map(({ name, daysLeft }) => need('certificate-ends', daysLeft < VERY_SOON_DAYS, name, daysLeft)),
    ...tokens.flatMap(({ name, expiresAt, lastUsedAt, createdAt }) => {
      const days = expiresAt === undefined ? Number.POSITIVE_INFINITY : daysTo(expiresAt)
      if (days < SOON_DAYS) return need('token-ends', days < VERY_SOON_DAYS, name, days)
      const unused = inUse.has(name) ? 0 : Math.floor((now - Date.parse(lastUsedAt ?? createdAt)) / DAY_MS)
      return unused > UNUSED_DAYS ? need('token-unused', false, name, unused) : []
    }),
  ]
  return [...Map.groupBy(all, ({ kind }) => kind).values()]
    .flatMap(worstOf)
    .sort((one, other) => Number(other.isBad) - Number(one.isBad))
}

/** Returns the worst of one kind. The last one says how many more there are. */
function worstOf(all: readonly Attention[]): readonly Attention[] {
  const worst = all.toSorted((one, other) =>
    one.kind.endsWith('ends') ? one.value - other.value : other.value - one.value,
  )
  const [last] = worst.splice(MOST_OF_KIND - 1)
  return last === undefined ? worst : [...worst, { ...last, more: all.length - MOST_OF_KIND }]
}

function ofTunnel({ name, state, recent }: TunnelRow): readonly Attention[] {
  if (state === 'unhealthy') return [need('app-down', true, name)]
  if (state === 'reconnecting') return [need('client-away', false, name)]
  const { requests, errors, durations } = recent
  if (requests >= FEW_REQUESTS && errors / requests >= MANY_ERRORS)
    return [need('errors', true, name, (100 * errors) / requests)]
  const p95 = quantile(durations, 0.95) ?? 0
  return requests >= FEW_REQUESTS && p95 >= SLOW_MS ? [need('slow', false, name, p95)] : []
}

const need = (kind: Attention['kind'], isBad: boolean, subject: string, value = 0): Attention => ({
  kind,
  isBad,
  subject,
  value,
})
