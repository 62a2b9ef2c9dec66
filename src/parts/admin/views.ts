// Makes each view of the admin page from responses of the API, so that a single server and all workers of a machine
// have the same views.

import { TunnelError } from '../../errors.ts'
import { quantile } from '../../measures.ts'
import type { Span } from '../../operations.ts'
import type { ServerStats } from '../../server/settings/stats.ts'
import { addedCodes } from './merged.ts'
import { attentionOf } from './needs.ts'
import { addedRecent } from './recent.ts'
import type { ClientRow, RecentRow, TokenRow, TunnelRow } from './rows.ts'
import type { NodeRow } from './service.ts'
import {
  type CertificateRow,
  type Head,
  type Listed,
  type Overview,
  type Point,
  type Series,
  type ServerRow,
  type Tokens,
  type TokenUse,
  type Traffic,
  type Tunnels,
  VIEWS,
  type View,
} from './view-rows.ts'

/** Requests `path` below /api/v1. Rejects with the reason if it fails. */
export type Ask = (path: string) => Promise<unknown>

const RANGES: Readonly<Record<string, readonly [by: Span, seconds: number, points: number]>> = {
  hour: ['minute', 60, 60],
  day: ['hour', 3_600, 24],
  week: ['hour', 3_600, 168],
}
const [BUSIEST, USERS] = [10, 5]
/** The number of minutes that are compared with those of an hour before. */
const COMPARED = 5
const LEAST_COMPARED = 3
const MAX_ROWS = 1_000
const USUAL_ROWS = 100

const rate = ({ requests, seconds }: RecentRow): number => requests / seconds
const sum = <Row>(rows: readonly Row[], of: (row: Row) => number): number =>
  rows.reduce((all, row) => all + of(row), 0)
const share = ({ requests, errors }: RecentRow): number => (requests === 0 ? 0 : errors / requests)

type Sorts<Row> = Readonly<Record<string, (row: Row) => number | string>>

const TUNNEL_SORTS: Sorts<TunnelRow> = {
  name: ({ name }) => name,
  state: ({ state }) => state,
  rate: ({ recent }) => rate(recent),
  errors: ({ recent }) => share(recent),
  p50: ({ recent }) => quantile(recent.durations, 0.5) ?? -1,
  p95: ({ recent }) => quantile(recent.durations, 0.95) ?? -1,
  flight: ({ inFlight }) => inFlight,
  in: ({ recent }) => recent.bytesIn,
  out: ({ recent }) => recent.bytesOut,
  token: ({ token = '' }) => token,
  client: ({ clients }) => clients[0] ?? 0,
  server: ({ server = '' }) => server,
  seen: ({ lastProvenAt = '' }) => lastProvenAt,
}
const CLIENT_SORTS: Sorts<ClientRow> = {
  number: ({ number }) => number,
  token: ({ token = '' }) => token,
  agent: ({ agent = '' }) => agent,
  address: ({ address }) => address,
  connected: ({ connectedAt }) => connectedAt,
  server: ({ server = '' }) => server,
  trip: ({ roundTripMs = -1 }) => roundTripMs,
  tunnels: ({ tunnels }) => tunnels.length,
}

const CHOICES: Readonly<Record<string, (row: TunnelRow) => boolean>> = {
  all: () => true,
  errors: ({ recent }) => recent.errors > 0,
  down: ({ state }) => state !== 'up',
  raw: ({ kind }) => kind !== 'http',
  open: ({ isGuarded }) => !isGuarded,
}

/** Returns a view. `undefined` if there is no such view. Throws `ADMIN_INVALID` for an invalid query. */
export async function viewOf(view: string, query: URLSearchParams, ask: Ask): Promise<object | undefined> {
  if (!isView(view)) return undefined
  const parts = new Parts(ask)
  const head = await parts.head()
  const make: Readonly<Record<View, () => Promise<object>>> = {
    overview: () => overview(parts, query),
    tunnels: () => tunnels(parts, query),
    clients: async () => listed(await parts.clients(), query, CLIENT_SORTS, clientTexts),
    traffic: () => traffic(parts, query),
    tokens: () => tokens(parts),
    bans: async () => (await ask('/bans')) as object,
    log: async () => (await ask(`/audit?limit=${limitOf(query)}`)) as object,
    servers: async () => ({ servers: await parts.servers(), certificates: await parts.certificates() }),
  }
  return { head, ...(await make[view]()) }
}

const isView = (text: string): text is View => (VIEWS as readonly string[]).includes(text)

/** The parts of a view, each requested once. Our own API responds in the form of this version. */
class Parts {
  readonly #ask: Ask
  #nodes: Promise<{ readonly nodes: readonly NodeRow[] }> | undefined

  constructor(ask: Ask) {
    this.#ask = ask
  }

  ask = <Value>(path: string): Promise<Value> => this.#ask(path) as Promise<Value>

  async tunnels(): Promise<readonly TunnelRow[]> {
    return (await this.ask<{ tunnels: readonly TunnelRow[] }>('/tunnels')).tunnels
  }

  async clients(): Promise<readonly ClientRow[]> {
    return (await this.ask<{ clients: readonly ClientRow[] }>('/clients')).clients
  }

  tokens(): Promise<{ readonly isKept: boolean; readonly tokens: readonly TokenRow[] }> {
    return this.ask('/tokens')
  }

  async certificates(): Promise<readonly CertificateRow[]> {
    const { certificates } = await this.ask<{ certificates: readonly CertificateRow[] }>('/certificates')
    return certificates.toSorted((one, other) => one.daysLeft - other.daysLeft)
  }

  async servers(): Promise<readonly ServerRow[]> {
    // If other servers cannot be asked, the page still shows this one.
    this.#nodes ??= this.ask<{ nodes: readonly NodeRow[] }>('/nodes').catch(() => ({ nodes: [] }))
    const { nodes } = await this.#nodes
    if (nodes.length > 0) return nodes
    const [stats, { recent }] = await Promise.all([this.stats(), this.ask<{ recent: RecentRow }>('/recent')])
    const { version, uptimeSeconds, connections, activeSubdomains, requests, pendingResponses } = stats
    return [
      {
        id: 'this server',
        isSelf: true,
        isReachable: true,
        version,
        uptimeSeconds,
        clients: connections,
        tunnels: activeSubdomains,
        requests,
        pending: pendingResponses,
        recent,
      },
    ]
  }

  stats(): Promise<ServerStats & { readonly domain: string }> {
    return this.ask('/status')
  }

  async head(): Promise<Head> {
    const [stats, { tokens }, { bans }, servers] = await Promise.all([
      this.stats(),
      this.tokens(),
      this.ask<{ bans: readonly unknown[] }>('/bans'),
      this.servers(),
    ])
    const { domain, version, status, uptimeSeconds } = stats
    // Workers of one machine report nothing to each other.
    const isTold = servers.some(row => row.tunnels !== undefined)
    const counts = {
      tunnels: isTold ? sum(servers, ({ tunnels = 0 }) => tunnels) : stats.activeSubdomains,
      clients: isTold ? sum(servers, ({ clients = 0 }) => clients) : stats.connections,
      tokens: tokens.length,
      bans: bans.length,
      servers: servers.length,
    }
    return { domain, version, status, uptimeSeconds, counts }
  }
}

async function overview(parts: Parts, query: URLSearchParams): Promise<Omit<Overview, 'head'>> {
  const [rows, { tokens: kept }, certificates, servers, points] = await Promise.all([
    parts.tunnels(),
    parts.tokens(),
    parts.certificates(),
    parts.servers(),
    series(parts.ask, query),
  ])
  const hourAgo = await anHourAgo(parts.ask, query, points)
  const measured = servers.flatMap(({ recent }) => recent ?? [])
  // Workers of one machine report nothing to each other.
  if (measured.length === 0) measured.push((await parts.ask<{ recent: RecentRow }>('/recent')).recent)
  const visited = rows.filter(({ recent }) => recent.requests > 0)
  const byToken = Map.groupBy(visited, ({ token = '' }) => token)
  byToken.delete('')
  const users = [...byToken].map(([name, own]) => [name, addedRecent(own.map(row => row.recent))] as const)
  const [worst] = rows.toSorted((one, other) => other.recent.errors - one.recent.errors)
  const codes = Object.entries(addedCodes(rows.map(row => row.codes))).sort(
    ([, one], [, other]) => other - one,
  )
  return {
    recent: addedRecent(measured),
    inFlight: sum(servers, ({ pending = 0 }) => pending),
    series: points,
    ...(hourAgo !== undefined && { hourAgo }),
    busiest: visited.sort((one, other) => rate(other.recent) - rate(one.recent)).slice(0, BUSIEST),
    users: users.sort(([, one], [, other]) => rate(other) - rate(one)).slice(0, USERS),
    ...(worst !== undefined && worst.recent.errors > 0 && { worst }),
    attention: attentionOf({ tunnels: rows, tokens: kept, certificates, servers }),
    codes: codes.slice(0, 6),
    servers,
    certificates: certificates.slice(0, 5),
  }
}

async function traffic(parts: Parts, query: URLSearchParams): Promise<Omit<Traffic, 'head'>> {
  const [rows, servers] = await Promise.all([parts.tunnels(), parts.servers()])
  const tunnel = query.get('tunnel') ?? ''
  const server = rows.find(({ name }) => name === tunnel)?.server ?? query.get('server') ?? ''
  return {
    series: await series(parts.ask, query, { tunnel, server }),
    names: rows.map(({ name }) => name).sort(),
    servers: servers.map(({ id }) => id).sort(),
  }
}

async function tunnels(parts: Parts, query: URLSearchParams): Promise<Omit<Tunnels, 'head'>> {
  const [all, clients] = await Promise.all([parts.tunnels(), parts.clients()])
  const only = query.get('only') ?? 'all'
  const fits = CHOICES[only]
  if (fits === undefined) throw invalid(`only is one of ${Object.keys(CHOICES).join(', ')}.`)
  const choices = Object.fromEntries(
    Object.entries(CHOICES).map(([name, choice]) => [name, all.filter(choice).length]),
  )
  const holds = clients.flatMap(client => client.tunnels.map(name => ({ name, client })))
  const byTunnel = Map.groupBy(holds, ({ name }) => name)
  const clientsOf = (row: TunnelRow) => (byTunnel.get(row.name) ?? []).map(({ client }) => client)
  const texts = (row: TunnelRow) => [
    row.name,
    row.token ?? '',
    row.server ?? '',
    ...clientsOf(row).flatMap(({ address, agent = '' }) => [address, agent]),
  ]
  const name = query.get('tunnel') ?? ''
  const row = all.find(one => one.name === name)
  const open = row && {
    row,
    clients: clientsOf(row),
    series: await series(parts.ask, query, { tunnel: name, server: row.server ?? '' }),
  }
  return {
    ...listed(all.filter(fits), query, TUNNEL_SORTS, texts, '-rate'),
    choices,
    ...(open !== undefined && { open }),
  }
}

async function tokens(parts: Parts): Promise<Omit<Tokens, 'head'>> {
  const [{ isKept, tokens: all }, rows, clients] = await Promise.all([
    parts.tokens(),
    parts.tunnels(),
    parts.clients(),
  ])
  const used: readonly TokenUse[] = all.map(token => {
    const own = rows.filter(row => row.token === token.name)
    const users = clients.filter(client => client.token === token.name).length
    return {
      ...token,
      // Another server may have noted the last use.
      ...(users > 0 && { lastUsedAt: new Date().toISOString() }),
      tunnels: own.length,
      clients: users,
      recent: addedRecent(own.map(({ recent }) => recent)),
    }
  })
  return { isKept, tokens: used }
}

const clientTexts = ({ address, agent = '', token = '', server = '', tunnels: names }: ClientRow) => [
  address,
  agent,
  token,
  server,
  ...names,
]

/** Returns rows filtered, sorted and limited by the query. */
function listed<Row>(
  all: readonly Row[],
  query: URLSearchParams,
  sorts: Sorts<Row>,
  texts: (row: Row) => readonly string[],
  usual = Object.keys(sorts)[0]!,
): Listed<Row> {
  const wanted = (query.get('q') ?? '').toLowerCase()
  const sort = query.get('sort') ?? usual
  const key = sorts[sort.replace(/^-/, '')]
  if (key === undefined)
    throw invalid(`sort is one of ${Object.keys(sorts).join(', ')}; with - it is turned.`)
  const direction = sort.startsWith('-') ? -1 : 1
  const matching =
    wanted === '' ? all : all.filter(row => texts(row).some(text => text.toLowerCase().includes(wanted)))
  const rows = matching.toSorted((one, other) => {
    const [a, b] = [key(one), key(other)]
    return a === b ? 0 : (a > b ? 1 : -1) * direction
  })
  return { rows: rows.slice(0, limitOf(query)), matching: matching.length }
}

function limitOf(query: URLSearchParams): number {
  const limit = Number(query.get('limit') ?? USUAL_ROWS)
  if (Number.isInteger(limit) && limit >= 1 && limit <= MAX_ROWS) return limit
  throw invalid(`limit is a whole number from 1 to ${MAX_ROWS}.`)
}

const invalid = (detail: string): TunnelError => new TunnelError('ADMIN_INVALID', detail)

interface Counted {
  readonly at: string
  readonly requests: number
  readonly errors: number
  readonly bytesIn: number
  readonly bytesOut: number
  readonly durations?: readonly number[]
}

/**
 * Returns by which fraction the requests of the last minutes exceed those of an hour before. `undefined` if one of
 * the times was not measured, or had none.
 */
async function anHourAgo(ask: Ask, query: URLSearchParams, shown: Series): Promise<number | undefined> {
  const { points } =
    (query.get('range') ?? 'hour') === 'hour' ? shown : await series(ask, new URLSearchParams())
  const mean = (some: readonly (Point | null)[]) => {
    const measured = some.filter(point => point !== null)
    return measured.length < LEAST_COMPARED ? 0 : sum(measured, point => point.requests) / measured.length
  }
  // The current minute is not over.
  const [before, now] = [mean(points.slice(0, COMPARED)), mean(points.slice(-COMPARED - 1, -1))]
  return before === 0 || now === 0 ? undefined : now / before - 1
}

/** Returns the series of a tunnel, of one server, or of all. `server`: the one with the tunnel, if it is another. */
async function series(
  ask: Ask,
  query: URLSearchParams,
  { tunnel = '', server = '' }: { readonly tunnel?: string; readonly server?: string } = {},
): Promise<Series> {
  const range = RANGES[query.get('range') ?? 'hour']
  if (range === undefined) throw invalid(`range is one of ${Object.keys(RANGES).join(', ')}.`)
  const [by, seconds, count] = range
  const stepMs = seconds * 1_000
  const fromMs = Math.floor(Date.now() / stepMs) * stepMs - (count - 1) * stepMs
  const rowsOf = async (more: string) => {
    const answer = (await ask(`/traffic?by=${by}&limit=${count}${more}`)) as {
      readonly isKept: boolean
      readonly traffic: readonly Counted[]
    }
    return { isKept: answer.isKept, byTime: new Map(answer.traffic.map(row => [Date.parse(row.at), row])) }
  }
  const of = (name: string, value: string) => rowsOf(`&${name}=${encodeURIComponent(value)}`)
  // Rows without a tunnel show when this server measured.
  const all = await (server !== '' ? of('server', server) : tunnel !== '' ? of('tunnel', '') : rowsOf(''))
  const own = tunnel === '' ? all : await of('tunnel', tunnel)
  const points = Array.from({ length: count }, (_, at) => {
    const atMs = fromMs + at * stepMs
    // If no tunnel has a row, nothing was measured; if only this tunnel has none, it had no visitor.
    return all.byTime.has(atMs) ? pointOf(own.byTime.get(atMs)) : null
  })
  return { isKept: all.isKept && own.isKept, fromMs, stepMs, points }
}

function pointOf({ requests, errors, bytesIn, bytesOut, durations = [] }: Partial<Counted> = {}): Point {
  const [p50, p95] = [quantile(durations, 0.5), quantile(durations, 0.95)]
  return {
    requests: requests ?? 0,
    errors: errors ?? 0,
    bytesIn: bytesIn ?? 0,
    bytesOut: bytesOut ?? 0,
    ...(p50 !== undefined && { p50 }),
    ...(p95 !== undefined && { p95 }),
  }
}
