// One tunnel in the form for registration, with the options that all kinds have in common.

import { optionInvalid, TunnelError } from '../../errors.ts'
import type { GuardOptions } from '../../guard.ts'
import { generateSubdomain, isValidSubdomain, slugOf } from '../../names.ts'
import { checkNames, whole } from '../../option-names.ts'
import { OwnGuard } from '../../own-guard.ts'
import {
  type Affinity,
  type InboxWish,
  isHostNames,
  MAX_HOST_NAMES,
  type PoolResponse,
  type Wishes,
} from '../../wire/control.ts'
import type { TunnelKind } from '../../wire/tunnel-kind.ts'
import { positive } from '../limits.ts'
import { HEALTH_NAMES } from '../option-names.ts'
import type { HealthOptions, HttpTunnelOptions, RouteOptions } from '../options.ts'
import type { Origin } from '../origins/origin.ts'
import type { HealthSettings } from './health.ts'

/** The part of the environment that a client reads. */
export type Environment = Readonly<Record<string, string | undefined>>

interface AppSettings {
  readonly origin: Origin
  /** The Host header that the app gets. Default: the visitor's. */
  readonly hostHeader?: string | undefined
  /** The options of this app for the server's parts. */
  readonly wishes?: Wishes
}

/** A path and the origin for requests below it. */
export interface RouteSettings extends AppSettings {
  readonly path: string
  /** The options as the user gave them, for parts. */
  readonly options: RouteOptions
  /** The HTTP/2 that the route's app speaks. */
  readonly protocol?: 'h2c' | 'h2'
}

export interface TunnelSettings extends AppSettings {
  readonly kind: TunnelKind
  /** The name to request for `http` and `tls`, or of a private service, such as `tcp:db`. */
  readonly name: string | undefined
  /** The name of a private service, which has no public address. */
  readonly privateName?: string | undefined
  /** The kind under which the server knows it. Default: its own kind. */
  readonly registersAs?: 'private' | 'connect'
  /** Gets the function that asks the server for streams, at the connecting end of a private service. */
  readonly useDial?: (dial: (count: number) => void) => void
  /** The public port to request for `tcp` and `udp`. `undefined` for any. */
  readonly port: number | undefined
  /** The token in place of the connection's. */
  readonly token: string | undefined
  /** The version of the PROXY header before each connection to the origin of a `tcp` or `tls` tunnel. */
  readonly proxyProtocol: 1 | 2 | undefined
  /** The routes of an `http` tunnel, in the order of their numbers. */
  readonly routes: readonly RouteSettings[]
  /** Whether names below an `http` or `tls` tunnel belong to it. */
  readonly isWildcard: boolean
  /** Whether the user asked for the name, rather than this client making it up. */
  readonly isNamed?: boolean
  /** Whether another name is not acceptable. */
  readonly isExact?: boolean
  /** The names below the tunnel that may have certificates. */
  readonly hosts?: readonly string[]
  /** The custom domains of an `http` or `tls` tunnel. */
  readonly hostNames?: readonly string[]
  /** The HTTP/2 that the app of an `http` tunnel speaks. */
  readonly protocol?: 'h2c' | 'h2'
  /** The webhooks that the server stores while no client is connected. */
  readonly inbox?: InboxWish
  /** How the pool distributes visitors, if the name or port is shared. */
  readonly pool: Affinity | undefined
  /** The response that a visitor gets, with `all`. */
  readonly poolResponse?: PoolResponse
  /** The name that this client chose for itself, with `all`. */
  readonly poolLabel?: string
  readonly health: HealthSettings | undefined
  /** The options of an `http` tunnel as given, for parts. */
  readonly options?: HttpTunnelOptions
  readonly guard?: OwnGuard | undefined
}

export function isNameGiven(
  { subdomain }: { readonly subdomain?: string },
  environment: Environment,
): boolean {
  return Boolean(subdomain ?? environment.TUNNEL_SUBDOMAIN)
}

export function nameOf(options: { readonly subdomain?: string }, environment: Environment): string {
  const wished = options.subdomain ?? environment.TUNNEL_SUBDOMAIN
  if (wished !== undefined && wished !== '') {
    const name = wished.toLowerCase()
    if (!isValidSubdomain(name))
      throw new TunnelError('NAME_INVALID', `"${wished}" is not a valid subdomain.`)
    return name
  }
  const slug = slugOf(environment.APP_NAME ?? '')
  return isValidSubdomain(slug) ? slug : generateSubdomain()
}

export function hostNamesOf(given: readonly string[] = []): Pick<TunnelSettings, 'hostNames'> {
  if (given.length === 0) return {}
  const hostNames = [...new Set(given.map(host => host.toLowerCase().replace(/\.$/, '')))]
  if (isHostNames(hostNames)) return { hostNames }
  throw optionInvalid(
    `hosts must be at most ${MAX_HOST_NAMES} hosts such as www.customer.example, not ${given.join(', ').slice(0, 200)}.`,
  )
}

export function guardOf(options: GuardOptions | undefined): OwnGuard | undefined {
  return options && new OwnGuard(options)
}

export function healthOf(options: HealthOptions, origin: Origin, hostHeader?: string): HealthSettings {
  checkNames(options, HEALTH_NAMES, 'health')
  const { path = '/', kind = options.path === undefined ? 'tcp' : 'http' } = options
  if (kind !== 'tcp' && kind !== 'http')
    throw optionInvalid(`health.kind must be tcp or http, not "${String(kind)}".`)
  if (!/^\/[\x21-\x22\x24-\x7e]{0,1023}$/.test(path))
    throw optionInvalid(`health.path: "${path}" is not a path such as /health.`)
  return {
    kind,
    path,
    host: hostHeader ?? new URL(origin.url).host,
    intervalMs: positive('health.intervalMs', options.intervalMs ?? 10_000),
    timeoutMs: positive('health.timeoutMs', options.timeoutMs ?? 3_000),
    healthyAfter: whole('health.healthyAfter', options.healthyAfter ?? 1, 1),
    unhealthyAfter: whole('health.unhealthyAfter', options.unhealthyAfter ?? 3, 1),
  }
}

export function affinityOf(
  pool: boolean | { readonly affinity: Affinity } | undefined,
  known: readonly Affinity[],
): Affinity | undefined {
  if (pool === undefined || pool === false) return undefined
  const affinity = pool === true ? 'none' : pool.affinity
  if (known.includes(affinity)) return affinity
  throw optionInvalid(`pool.affinity: "${affinity}" is none of ${known.join(', ')}.`)
}

/** Checks a token, which is sent in a header. An invalid one would be refused for a reason that the user cannot see. */
export function checkToken(token: string | undefined): string | undefined {
  if (token === undefined || /^[\x21-\x7e]{1,8192}$/.test(token)) return token
  throw optionInvalid('A token must be visible ASCII without spaces, and not empty.')
}
