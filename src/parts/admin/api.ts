// The admin API: turns requests into responses. open-api.ts describes it.

import { TunnelError } from '../../errors.ts'
import type { Ban, Span } from '../../operations.ts'
import type { GrantedKind } from '../../wire/tunnel-kind.ts'
import { AdminAccess } from './access.ts'
import { failure, json, MethodMissing, Missing, missing, text } from './answers.ts'
import { pageAnswer } from './page.ts'
import type { AdminService } from './service.ts'
import { viewOf } from './views.ts'

export const MAX_BODY_BYTES = 65_536
const MAX_ROWS = 1_000
/** The paths outside of the API. */
const ONLY_READ: ReadonlySet<string> = new Set(['/', '/health', '/metrics'])
/** The longest ban in seconds (ten years). A longer one has no end. */
const MAX_BAN_SECONDS = 315_360_000

interface Asked {
  readonly request: Request
  readonly query: URLSearchParams
  /** The name or id in the path, decoded. Empty for none. */
  readonly id: string
}

type Operation = (asked: Asked) => Response | Promise<Response>

/**
 * Serves requests that need no token, and calls `serve` for those with the right one. `method`: `GET` also for HEAD.
 * Never rejects.
 */
export async function admitted(
  request: Request,
  address: string,
  access: AdminAccess,
  serve: (url: URL, method: string) => Promise<Response>,
): Promise<Response> {
  try {
    const url = access.urlOf(request)
    const method = request.method === 'HEAD' ? 'GET' : request.method
    if (url.pathname === '/health' && method === 'GET') return text('OK\n')
    if (url.pathname === '/' && method === 'GET') return await pageAnswer()
    const refusal = await access.refusalOf(request, address)
    if (refusal !== undefined) return failure(refusal)
    if (ONLY_READ.has(url.pathname) && method !== 'GET') throw new MethodMissing(['GET'])
    return await serve(url, method)
  } catch (cause) {
    if (cause instanceof TunnelError) return failure(cause)
    access.failed(cause)
    return failure(new TunnelError('INTERNAL', undefined, { cause }))
  }
}

export class AdminApi {
  readonly #service: AdminService
  readonly #access: AdminAccess
  readonly operations: Readonly<Record<string, Operation>>

  constructor(service: AdminService, token: string) {
    this.#service = service
    this.#access = new AdminAccess({
      token,
      get basePath() {
        return service.basePath
      },
      limits: () => service.limits,
      refused: (address, code) => service.refused(address, code),
      failed: cause => service.failed(cause),
    })
    this.operations = {
      'GET /status': () => json({ ...service.stats, domain: service.domain }),
      'GET /recent': () => json({ recent: service.recent }),
      'GET /views/{id}': async asked =>
        json(
          (await viewOf(asked.id, asked.query, path => this.#read(path, asked))) ??
            missing(`There is no view "${asked.id}".`),
        ),
      'GET /tunnels': () => json({ tunnels: service.tunnels() }),
      'GET /tunnels/{id}': ({ id }) => json(service.tunnel(id) ?? missing(`There is no tunnel "${id}".`)),
      'DELETE /tunnels/{id}': ({ id }) =>
        json(service.closeTunnel(id) ?? missing(`There is no tunnel "${id}" at this server.`)),
      'POST /tunnels/{id}/probe': async ({ id }) =>
        json(
          (await service.probe(id)) ??
            missing(`There is no HTTP tunnel "${id}" whose client is at this server.`),
        ),
      'GET /clients': () => json({ clients: service.clients() }),
      'DELETE /clients/{id}': ({ id }) =>
        json(service.closeClient(Number(id)) ?? missing(`There is no client ${id}.`)),
      'GET /traffic': asked => this.#traffic(asked),
      'GET /bans': () => json({ bans: service.allBans().map(banView) }),
      'POST /bans': asked => this.#ban(asked),
      'DELETE /bans/{id}': ({ id }) =>
        json(service.removeBan(Number(id)) ?? missing(`There is no ban ${id}.`)),
      'GET /tokens': () => {
        const tokens = service.tokens()
        return json({ isKept: tokens !== undefined, tokens: tokens ?? [] })
      },
      'POST /tokens': asked => this.#addToken(asked),
      'POST /tokens/{id}/rotate': ({ id }) =>
        json(service.rotateToken(id) ?? missing(`There is no token called "${id}".`)),
      'DELETE /tokens/{id}': ({ id }) =>
        json(service.revokeToken(id) ?? missing(`There is no token called "${id}".`)),
      'GET /nodes': async () => {
        const nodes = await service.nodes()
        return json({ isClustered: nodes !== undefined, nodes: nodes ?? [] })
      },
      'GET /certificates': () => json({ certificates: service.certificates() }),
      'GET /audit': asked => this.#audit(asked),
      'POST /upgrade': async () => json({ pid: await service.upgrade() }),
      'GET /openapi.json': async () => json((await import('./open-api.ts')).OPEN_API),
    }
  }

  /** Responds to every request; never throws. */
  readonly fetch = (request: Request, address: string): Promise<Response> =>
    admitted(request, address, this.#access, async ({ pathname, searchParams }, method) => {
      if (pathname === '/metrics')
        return text(this.#service.metricsText(), 'text/plain; version=0.0.4; charset=utf-8')
      const [, first = '', id = '', rest = ''] =
        /^\/api\/v1(\/[a-z.]+)(?:\/([^/]+)(\/[a-z]+)?)?$/.exec(pathname) ?? []
      const shape = id === '' ? first : `${first}/{id}${rest}`
      const operation = this.operations[`${method} ${shape}`]
      if (operation === undefined) throw this.#missing(shape)
      return await operation({ request, query: searchParams, id: decoded(id) })
    })

  /** Returns the result of a path that several requests read. */
  async #read(path: string, asked: Asked): Promise<unknown> {
    const { pathname, searchParams: query } = new URL(path, 'http://localhost')
    const answer = await this.operations[`GET ${pathname}`]!({ ...asked, query, id: '' })
    return answer.json()
  }

  #missing(shape: string): TunnelError {
    const allowed = Object.keys(this.operations)
      .map(one => one.split(' '))
      .flatMap(([method = '', path]) => (path === shape ? method : []))
    return allowed.length === 0 ? new Missing('There is no such operation.') : new MethodMissing(allowed)
  }

  async #traffic({ query }: Asked): Promise<Response> {
    const span = query.get('by') ?? 'minute'
    if (span !== 'minute' && span !== 'hour' && span !== 'day')
      throw new TunnelError('ADMIN_INVALID', 'by is minute, hour or day.')
    const limit = numberOf(query, 'limit', 60, MAX_ROWS)
    const [tunnel, server] = [query.get('tunnel'), query.get('server')]
    const rows = await this.#service.traffic(span satisfies Span, limit, {
      ...(tunnel !== null && { tunnel }),
      ...(server !== null && { server }),
    })
    return json({
      by: span,
      isKept: rows !== undefined,
      traffic: (rows ?? []).map(({ atMs, ...row }) => ({ at: new Date(atMs).toISOString(), ...row })),
    })
  }

  async #ban({ request }: Asked): Promise<Response> {
    const { kind = 'address', value, reason = '', forSeconds } = await bodyOf(request)
    if (kind !== 'address' && kind !== 'tunnel')
      throw new TunnelError('ADMIN_INVALID', 'kind is address or tunnel.')
    if (typeof value !== 'string' || value === '' || value.length > 255)
      throw new TunnelError('ADMIN_INVALID', 'value is a text of 1 to 255 characters.')
    if (typeof reason !== 'string' || reason.length > 1_000)
      throw new TunnelError('ADMIN_INVALID', 'reason is a text of at most 1,000 characters.')
    const sinceMs = Date.now()
    const untilMs = forSeconds === undefined ? undefined : sinceMs + 1_000 * secondsOf(forSeconds)
    const ban = this.#service.ban({
      kind,
      value: value.toLowerCase(),
      reason,
      sinceMs,
      ...(untilMs !== undefined && { untilMs }),
    })
    return json(banView(ban), 201)
  }

  async #addToken({ request }: Asked): Promise<Response> {
    const { name, names, kinds, reserve, forSeconds } = await bodyOf(request)
    if (typeof name !== 'string') throw new TunnelError('ADMIN_INVALID', 'name is a text.')
    if (names !== undefined && !isTexts(names))
      throw new TunnelError('ADMIN_INVALID', 'names is a list of at most 100 patterns, such as ["ci-*"].')
    if (kinds !== undefined && !(isTexts(kinds) && kinds.every(isKind)))
      throw new TunnelError('ADMIN_INVALID', 'kinds is a list of http, tcp, udp and tls.')
    if (reserve !== undefined && typeof reserve !== 'boolean')
      throw new TunnelError('ADMIN_INVALID', 'reserve is true or false.')
    const scope = {
      ...(names !== undefined && { names }),
      ...(kinds !== undefined && { kinds }),
      ...(reserve === true && { reserve }),
    }
    const forMs = forSeconds === undefined ? undefined : 1_000 * secondsOf(forSeconds)
    return json(this.#service.addToken({ name, forMs, scope }), 201)
  }

  #audit({ query }: Asked): Response {
    const limit = numberOf(query, 'limit', 100, MAX_ROWS)
    const before = query.get('before')
    const beforeMs =
      before === null
        ? Number.MAX_SAFE_INTEGER
        : /^\d{4}-\d\d-\d\dT/.test(before)
          ? Date.parse(before)
          : Number.NaN
    if (Number.isNaN(beforeMs))
      throw new TunnelError('ADMIN_INVALID', 'before is a time, such as 2026-01-31T12:00:00Z.')
    const entries = this.#service.audit(beforeMs, limit)
    return json({
      isKept: entries !== undefined,
      entries: (entries ?? []).map(({ atMs, ...entry }) => ({ at: new Date(atMs).toISOString(), ...entry })),
    })
  }
}

function secondsOf(value: unknown): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= MAX_BAN_SECONDS)
    return value
  throw new TunnelError('ADMIN_INVALID', `forSeconds is a whole number from 1 to ${MAX_BAN_SECONDS}.`)
}

const MAX_TEXTS = 100

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length <= MAX_TEXTS && value.every(one => typeof one === 'string')
}

const KINDS: readonly GrantedKind[] = ['http', 'tcp', 'udp', 'tls', 'private']
const isKind = (text: string): text is GrantedKind => KINDS.some(kind => kind === text)

function banView({ sinceMs, untilMs, ...ban }: Ban) {
  return {
    ...ban,
    since: new Date(sinceMs).toISOString(),
    ...(untilMs !== undefined && { until: new Date(untilMs).toISOString() }),
  }
}

function numberOf(query: URLSearchParams, name: string, usual: number, most: number): number {
  const text = query.get(name)
  if (text === null) return usual
  const number = /^\d{1,9}$/.test(text) ? Number(text) : 0
  if (number >= 1 && number <= most) return number
  throw new TunnelError('ADMIN_INVALID', `${name} is a whole number from 1 to ${most}.`)
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new TunnelError('ADMIN_INVALID', 'The path is not encoded as paths are.')
  }
}

async function bodyOf(request: Request): Promise<Record<string, unknown>> {
  let body: unknown
  try {
    body = await request.json()
  } catch {
    throw new TunnelError('ADMIN_INVALID', 'The body is not JSON.')
  }
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw new TunnelError('ADMIN_INVALID', 'The body is a JSON object.')
  return { ...body }
}
