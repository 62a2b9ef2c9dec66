// The settings of an HTTP tunnel, from its options.

import { optionInvalid } from '../../errors.ts'
import { isValidSubdomain, parseHost, slugOf } from '../../names.ts'
import { checkNames } from '../../option-names.ts'
import type { Dial } from '../../socket.ts'
import {
  isHosts,
  isInboxWish,
  isPoolLabel,
  isPoolResponse,
  isRoutePath,
  MAX_HOSTS,
  MAX_INBOX_PATHS,
  MAX_ROUTES,
} from '../../wire/control.ts'
import { ROUTE_NAMES } from '../option-names.ts'
import type { HttpTunnelOptions, OriginOptions, RouteOptions } from '../options.ts'
import type { Origin } from '../origins/origin.ts'
import { type OwnOrigin, originOf } from '../origins/origin-of.ts'
import {
  affinityOf,
  checkToken,
  type Environment,
  guardOf,
  healthOf,
  hostNamesOf,
  isNameGiven,
  nameOf,
  type RouteSettings,
  type TunnelSettings,
} from './tunnel-settings.ts'

/** Returns the settings of an HTTP tunnel. Throws `OPTION_INVALID` or `NAME_INVALID`. */
export function httpTunnel(
  options: HttpTunnelOptions,
  environment: Environment,
  dial: Dial,
  ownOrigin: OwnOrigin,
): TunnelSettings {
  const origin = originOf(options, dial, ownOrigin, options.protocol)
  const hostHeader = hostHeaderOf(options, origin)
  const routes = routesOf(options.routes ?? {}, dial, ownOrigin)
  const own = protocolOf(options)
  const isNamed = isNameGiven(options, environment)
  if (options.exact && !isNamed)
    throw optionInvalid('exact is for a name that is asked for: there is no subdomain.')
  return {
    kind: 'http',
    privateName: options.private,
    name: nameOf(options, environment),
    isNamed: isNamed || isValidSubdomain(slugOf(environment.APP_NAME ?? '')),
    isExact: options.exact ?? false,
    port: undefined,
    token: checkToken(options.token),
    origin,
    hostHeader,
    proxyProtocol: undefined,
    routes,
    options,
    isWildcard: options.wildcard ?? false,
    ...(options.wildcardHosts && { hosts: hostsOf(options.wildcardHosts, options.wildcard ?? false) }),
    ...hostNamesOf(options.hosts),
    ...own,
    ...inboxOf(options, isNamed),
    ...httpPoolOf(options.pool),
    health: options.health && {
      ...healthOf(options.health, origin, hostHeader),
      isHttp2: own.protocol !== undefined,
    },
    guard: guardOf(options.guard),
  }
}

function inboxOf({ inbox }: HttpTunnelOptions, isNamed: boolean): Pick<TunnelSettings, 'inbox'> {
  if (inbox === undefined) return {}
  checkNames(inbox, { paths: true, status: true }, 'inbox')
  if (!isNamed) throw optionInvalid('inbox is for a name that is asked for: there is no subdomain.')
  const wish: unknown = { paths: inbox.paths, status: inbox.status ?? 202 }
  if (isInboxWish(wish)) return { inbox: wish }
  throw optionInvalid(
    `inbox must have 1 to ${MAX_INBOX_PATHS} paths such as /hooks/github or /hooks/*, and status 200, 201, 202 or 204.`,
  )
}

/** Returns the protocol for the server. Over TLS it is HTTP/2 if ALPN chose it. */
function protocolOf(options: RouteOptions): Pick<TunnelSettings, 'protocol'> {
  const { protocol = 'http/1.1', url, fetch, folder } = options
  if (protocol === 'http/1.1') return {}
  if (protocol !== 'h2c' && protocol !== 'h2')
    throw optionInvalid(`protocol must be http/1.1, h2c or h2, not "${String(protocol)}".`)
  const isSecure = url?.startsWith('https:') === true
  if (fetch !== undefined || folder !== undefined || isSecure !== (protocol === 'h2')) {
    const text =
      'protocol h2c is for apps with a port, an http:// URL or a unix socket, and h2 for https:// URLs.'
    throw optionInvalid(text)
  }
  return { protocol }
}

function hostsOf(given: readonly string[], isWildcard: boolean): readonly string[] {
  if (!isWildcard) throw optionInvalid('wildcardHosts needs wildcard.')
  const hosts = given.map(host => host.toLowerCase())
  if (isHosts(hosts)) return hosts
  throw optionInvalid(
    `wildcardHosts must be at most ${MAX_HOSTS} names such as anna or a.b, not ${given.join(', ').slice(0, 200)}.`,
  )
}

function routesOf(
  routes: Readonly<Record<string, number | RouteOptions>>,
  dial: Dial,
  ownOrigin: OwnOrigin,
): RouteSettings[] {
  const all = Object.entries(routes).map(([given, where]) => {
    const path = given.replace(/\/+$/, '')
    // Clients remove dot segments from a path before they send it.
    if (!isRoutePath(path) || /\/\.\.?(?:\/|$)/.test(path))
      throw optionInvalid(`routes: "${given}" is not a path such as /api.`)
    const options: RouteOptions = typeof where === 'number' ? { port: where } : where
    checkNames(options, ROUTE_NAMES, `routes: ${path}`)
    if (options.later) throw optionInvalid(`routes: ${path} cannot come later.`)
    const origin = originOf(options, dial, ownOrigin, options.protocol)
    return { path, options, origin, hostHeader: hostHeaderOf(options, origin), ...protocolOf(options) }
  })
  if (all.length > MAX_ROUTES)
    throw optionInvalid(`A tunnel has at most ${MAX_ROUTES} routes, not ${all.length}.`)
  if (new Set(all.map(({ path }) => path)).size < all.length)
    throw optionInvalid('routes: a path is given twice.')
  return all
}

/** Returns the pool of an HTTP tunnel. Throws `OPTION_INVALID`. */
function httpPoolOf(
  pool: HttpTunnelOptions['pool'],
): Pick<TunnelSettings, 'pool' | 'poolResponse' | 'poolLabel'> {
  if (typeof pool !== 'object' || !('to' in pool))
    return { pool: affinityOf(pool, ['none', 'cookie', 'address']) }
  checkNames(pool, { to: true, response: true, label: true }, 'pool')
  const { to, response, label } = pool
  if (to !== 'all') throw optionInvalid(`pool.to: "${String(to)}" is not "all".`)
  if (response !== undefined && !isPoolResponse(response))
    throw optionInvalid(
      `pool.response: ${String(response)} is none of first, the label of a client, and a status from 200 to 299.`,
    )
  if (label !== undefined && !isPoolLabel(label))
    throw optionInvalid(
      `pool.label: "${String(label)}" is no label: 1 to 63 letters, digits, ., _ and -, not digits alone, and not first.`,
    )
  return {
    pool: 'all',
    ...(response !== undefined && { poolResponse: response }),
    ...(label !== undefined && { poolLabel: label }),
  }
}

/** Returns the Host that the app gets. `undefined`: that of its visitors. */
function hostHeaderOf(
  { hostHeader: given = 'preserve' }: OriginOptions,
  { url }: Origin,
): string | undefined {
  if (given === 'preserve') return undefined
  const hostHeader = given === 'rewrite' ? new URL(url).host : given
  parseHost(hostHeader)
  return hostHeader
}
