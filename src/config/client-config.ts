// What a client's configuration file means: the connection, and the services that go over it.

import type { TunnelClientOptions } from '../client/options.ts'
import { isReservedName } from '../names.ts'
import { Check, type CheckOptions, pathOf } from './check.ts'
import type { Fault } from './fault.ts'
import { FORMS } from './forms.ts'
import type { TableNode } from './node.ts'
import { CLIENT_FIELDS, SERVICE_FIELDS } from './schema/client.ts'
import { SERVER_FIELDS } from './schema/server.ts'
import type { RouteTarget } from './target.ts'

export interface ClientConfig {
  readonly kind: 'client'
  readonly connection: ConnectionOptions
  /** In the order of the file. No two have the same name, subdomain or wished port. */
  readonly services: readonly ServiceConfig[]
}

/** How to reach the server. What is not there has the client's default. */
export interface ConnectionOptions
  extends Pick<
    TunnelClientOptions,
    | 'server'
    | 'token'
    | 'wire'
    | 'verifyServer'
    | 'ca'
    | 'connectTimeoutMs'
    | 'reconnect'
    | 'maxBackoffMs'
    | 'pingIntervalMs'
    | 'deadAfterMs'
    | 'proxy'
    | 'limits'
  > {}

/** One service. `options` are those of the client's function of the same name as `kind`. */
export type ServiceConfig =
  | { readonly name: string; readonly kind: 'http'; readonly options: HttpServiceOptions }
  | { readonly name: string; readonly kind: 'tcp'; readonly options: TcpServiceOptions }
  | { readonly name: string; readonly kind: 'tls'; readonly options: TlsServiceOptions }
  | { readonly name: string; readonly kind: 'udp'; readonly options: UdpServiceOptions }

export type ServiceKind = ServiceConfig['kind']

/** Exactly one of `port`, `url`, `unix` and `folder` is there. */
export interface HttpServiceOptions extends Shared {
  readonly port?: number
  readonly host?: string
  readonly url?: string
  readonly unix?: string
  readonly folder?: string
  readonly spa?: boolean
  readonly subdomain: string
  readonly wildcard?: boolean
  readonly hostHeader?: string
  readonly verifyOrigin?: boolean
  readonly originConnectTimeoutMs?: number
  /** By path prefix. */
  readonly routes?: Readonly<Record<string, RouteTarget>>
}

/** Exactly one of `port` and `unix` is there. */
export interface TcpServiceOptions extends Shared {
  readonly port?: number
  readonly host?: string
  readonly unix?: string
  readonly originConnectTimeoutMs?: number
  readonly remotePort?: number
  readonly proxyProtocol?: 'v1' | 'v2'
}

/** Exactly one of `port` and `unix` is there. */
export interface TlsServiceOptions extends Shared {
  readonly port?: number
  readonly host?: string
  readonly unix?: string
  readonly originConnectTimeoutMs?: number
  readonly subdomain: string
  readonly wildcard?: boolean
  readonly proxyProtocol?: 'v1' | 'v2'
}

export interface UdpServiceOptions {
  readonly port: number
  readonly host?: string
  readonly remotePort?: number
  readonly idleTimeoutMs?: number
  readonly token?: string
}

interface Shared {
  readonly token?: string
  readonly pool?: PoolOptions
  readonly health?: HealthOptions
}

export interface PoolOptions {
  readonly affinity: 'none' | 'cookie' | 'address'
}

export interface HealthOptions {
  readonly kind: 'tcp' | 'http'
  readonly path?: string
  readonly intervalMs?: number
  readonly timeoutMs?: number
  readonly healthyAfter?: number
  readonly unhealthyAfter?: number
}

/** What the table says of one service. */
interface CheckedService extends Omit<Shared, 'pool' | 'health'> {
  readonly kind?: 'http' | 'tcp' | 'udp' | 'tls' | 'folder'
  readonly port?: number
  readonly host?: string
  readonly url?: string
  readonly unix?: string
  readonly folder?: string
  readonly spa?: boolean
  readonly subdomain?: string
  readonly remotePort?: number
  readonly routes?: ReadonlyMap<string, RouteTarget>
  readonly pool?: boolean | Partial<PoolOptions>
  readonly health?: Partial<HealthOptions>
}

export interface Checked<Config> {
  /** `undefined` when there are faults. */
  readonly config: Config | undefined
  readonly faults: readonly Fault[]
  /** What each key means, in words, by its path. Secrets are not among the words. */
  readonly shown: ReadonlyMap<string, string>
}

export function checkClient(root: TableNode, options: CheckOptions): Checked<ClientConfig> {
  const check = new Check(options)
  // The names and types of CLIENT_FIELDS, as test/config/client.test.ts goes through them.
  const values = check.table(root, CLIENT_FIELDS, '', [
    { fields: SERVICE_FIELDS, where: 'in a service, such as [services.web]' },
    { fields: SERVER_FIELDS, where: "in a server's file" },
  ]) as ConnectionOptions & { readonly services?: ReadonlyMap<string, CheckedService> }
  const { services: checked = new Map<string, CheckedService>(), ...connection } = values
  const { pingIntervalMs = 10_000, deadAfterMs = 20_000 } = connection
  if (deadAfterMs <= pingIntervalMs) {
    check.fault(
      connection.deadAfterMs === undefined ? 'ping-interval' : 'dead-after',
      'dead-after must be more than ping-interval',
    )
  }
  if (values.services?.size === 0 && check.faults.length === 0)
    check.fault('services', 'services has none: add one, such as [services.web]')
  const taken = new Taken(check)
  const services = [...checked].flatMap(([name, service]) => serviceOf(name, service, check, taken) ?? [])
  const config: ClientConfig = { kind: 'client', connection, services }
  return { config: check.faults.length === 0 ? config : undefined, faults: check.faults, shown: check.shown }
}

function serviceOf(
  name: string,
  checked: CheckedService,
  check: Check,
  taken: Taken,
): ServiceConfig | undefined {
  const path = pathOf('services', name)
  // A fault of its own; what else would be said would be guessed.
  if (checked.kind === undefined && check.isGiven(`${path}.kind`)) return undefined
  const hasFolder = check.isGiven(`${path}.folder`)
  const { kind: said, pool, health, routes, ...rest } = checked
  const kind = (said ?? 'http') === 'http' && hasFolder ? 'folder' : (said ?? 'http')
  // `folder` beside `port` is no key of a wrong kind, but a second target.
  const targets = TARGETS.filter(key => isFor(kind, key) || (said !== 'folder' && kind === 'folder'))
  for (const [key, { kinds = [] }] of Object.entries(SERVICE_FIELDS)) {
    if (!check.isGiven(`${path}.${key}`) || isFor(kind, key) || targets.some(target => target === key))
      continue
    check.fault(`${path}.${key}`, `${path}.${key} is for ${listOf(kinds)}, and this service is ${kind}`)
  }
  checkTarget(path, kind === 'http' ? TARGETS : targets, check)
  const options = {
    ...rest,
    ...(routes !== undefined && { routes: Object.fromEntries(routes) }),
    ...(pool && { pool: { affinity: 'none', ...(pool === true ? {} : pool) } }),
    ...(health && { health: { kind: 'tcp', ...health } }),
  }
  if (health?.path !== undefined && health.kind !== 'http') {
    check.fault(`${path}.health.path`, `${path}.health.path is for kind = "http"`)
  }
  if (kind === 'tcp' || kind === 'udp') {
    if (checked.remotePort !== undefined)
      taken.take(`${kind} port ${checked.remotePort}`, `${path}.remote-port`)
    return service(name, kind, options)
  }
  const subdomain = (checked.subdomain ?? name).toLowerCase()
  if (!check.isGiven(`${path}.subdomain`) && !FORMS.subdomain.fits(subdomain)) {
    check.fault(path, `${path} needs "subdomain": its own name is not ${FORMS.subdomain.what}`)
  }
  const where = check.isGiven(`${path}.subdomain`) ? `${path}.subdomain` : path
  if (isReservedName(subdomain)) {
    check.fault(where, `${where}: subdomain "${subdomain}" is reserved by every server: give it another`)
  }
  taken.take(`subdomain "${subdomain}"`, where)
  return service(name, kind === 'folder' ? 'http' : kind, { ...options, subdomain })
}

/** The options were checked against the table and for their kind; if not, there is a fault, and nobody sees this. */
function service(name: string, kind: ServiceKind, options: unknown): ServiceConfig {
  return { name, kind, options } as ServiceConfig
}

/** The keys that say where the app is. */
const TARGETS = ['port', 'url', 'unix', 'folder'] as const

function isFor(kind: string, key: string): boolean {
  const kinds = SERVICE_FIELDS[key]?.kinds
  return kinds === undefined || kinds.includes(kind)
}

function checkTarget(path: string, possible: readonly string[], check: Check): void {
  // Those with a fault of their own are given, too.
  const [first, second] = possible.filter(key => check.isGiven(`${path}.${key}`))
  if (first === undefined) {
    const names = listOf(possible.map(key => `"${key}"`))
    const wanted = possible.length === 1 ? names : `one of ${names}`
    check.fault(path, `${path} does not say where the app is: give it ${wanted}`)
  } else if (second !== undefined) {
    check.fault(`${path}.${second}`, `${path} has two targets, ${first} and ${second}: keep one of them`)
  } else if (first !== 'port' && first !== 'folder' && check.isGiven(`${path}.host`)) {
    check.fault(`${path}.host`, `${path}.host is for "port", and there is none`)
  }
}

/** Names and ports that only one service can have. */
class Taken {
  readonly #check: Check
  readonly #paths = new Map<string, string>()

  constructor(check: Check) {
    this.#check = check
  }

  take(what: string, path: string): void {
    const earlier = this.#paths.get(what)
    if (earlier === undefined) this.#paths.set(what, path)
    else {
      const other = earlier.replace(/\.(?:subdomain|remote-port)$/, '')
      this.#check.fault(
        path,
        `${path}: ${what} is also wished for by ${other} (${this.#check.lineOf(earlier)})`,
      )
    }
  }
}

function listOf(words: readonly string[]): string {
  return words.length === 1 ? (words[0] ?? '') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`
}
