// Checks that the keys of a service are compatible, and that no other service has its name or port.

import { isReservedName, parseHost, unusedPart } from '../names.ts'
import { type Check, pathOf } from './check.ts'
import { FORMS } from './forms.ts'
import { portsOf } from './port-range.ts'
import { GUARD_FIELDS, RAW_GUARD_KEYS, SERVICE_FIELDS } from './schema/fields.ts'
import type { Output } from './schema/inferred.ts'
import type { ServiceConfig, ServiceKind } from './service.ts'

export type CheckedService = Output<'service'>
type GivenPool = Exclude<CheckedService['pool'], boolean | undefined>

/** Checks a service, which may be one for each port of a range, named `game:27015`. */
export function checkServices(
  name: string,
  { port, remotePort, ...checked }: CheckedService,
  check: Check,
  taken: Taken,
): readonly ServiceConfig[] {
  const path = pathOf('services', name)
  const ports = portsOf(port ?? '')
  const remotePorts = portsOf(remotePort ?? '')
  const isRange = [ports, remotePorts].some(all => all !== undefined && all.length > 1)
  const kind = checked.kind ?? 'http'
  const isPublic = kind === 'tcp' || kind === 'udp' ? checked.private !== true : false
  if (isRange && !isPublic)
    check.fault(
      `${path}.port`,
      `${path}.port: a range is for tcp and udp, and this service is ${checked.private === true ? 'private' : kind}`,
    )
  else if (isRange && ports !== undefined && remotePorts !== undefined && ports.length !== remotePorts.length)
    check.fault(
      `${path}.remote-port`,
      `${path}.remote-port has ${remotePorts.length} ports, and ${path}.port has ${ports.length}`,
    )
  const first = { ...checked, ...portOptions(ports?.[0], remotePorts?.[0]) }
  const service = checkService(name, first, check, taken)
  if (service === undefined || !isRange || ports === undefined) return service === undefined ? [] : [service]
  for (const remote of remotePorts?.slice(1) ?? [])
    taken.take(`${kind} port ${remote}`, `${path}.remote-port`)
  return ports.map((one, index) => ({
    ...service,
    name: `${name}:${one}`,
    options: { ...service.options, ...portOptions(one, remotePorts?.[index]) },
    // The same kind, with other port numbers in its options.
  })) as readonly ServiceConfig[]
}

const portOptions = (port: number | undefined, remotePort: number | undefined) => ({
  ...(port !== undefined && { port }),
  ...(remotePort !== undefined && { remotePort }),
})

/** Checks a service. `undefined` if a fault leaves nothing to return. */
function checkService(
  name: string,
  checked: CheckedService,
  check: Check,
  taken: Taken,
): ServiceConfig | undefined {
  const path = pathOf('services', name)
  // A wrong kind is a fault of its own, and other faults would be guesses.
  if (checked.kind === undefined && check.isGiven(`${path}.kind`)) return undefined
  const hasFolder = check.isGiven(`${path}.folder`)
  const { kind: said, pool, health, routes, guard, private: isPrivate = false, to, ...rest } = checked
  const kind = (said ?? 'http') === 'http' && hasFolder ? 'folder' : (said ?? 'http')
  // `folder` next to `port` is a second target, rather than a key of another kind.
  const targets = TARGETS.filter(key => isFor(kind, key) || (said !== 'folder' && kind === 'folder'))
  for (const [key, { kinds = [] }] of Object.entries(SERVICE_FIELDS)) {
    if (!check.isGiven(`${path}.${key}`) || isFor(kind, key) || targets.some(target => target === key))
      continue
    if (check.isFaulty(`${path}.${key}`)) continue
    check.fault(`${path}.${key}`, `${path}.${key} is for ${listOf(kinds)}, and this service is ${kind}`)
  }
  checkTarget(path, kind === 'http' ? TARGETS : targets, check)
  checkUrls(path, checked, check)
  if (routes !== undefined) checkRoutes(`${path}.routes`, [...routes.keys()], check)
  const options = {
    ...rest,
    ...(routes !== undefined && { routes: Object.fromEntries(routes) }),
    ...(pool && { pool: poolOf(pool) }),
    ...(health && { health: { kind: 'tcp', ...health } }),
    ...(guard !== undefined && { guard: plainOf(guard) }),
  }
  if (kind === 'connect') return checkConnect(name, { ...rest, ...(to !== undefined && { to }) }, check)
  if (isPrivate || (kind !== 'http' && kind !== 'folder'))
    checkRawGuard(`${path}.guard`, isPrivate ? 'a private service' : kind, check)
  if (isPrivate) return checkPrivate(name, kind, options, check, taken)
  if (health?.path !== undefined && health.kind !== 'http') {
    check.fault(`${path}.health.path`, `${path}.health.path is for kind = "http"`)
  }
  if (typeof pool === 'object' && pool.affinity === 'cookie' && kind !== 'http' && kind !== 'folder') {
    check.fault(`${path}.pool.affinity`, `${path}.pool.affinity "cookie" is for http: ${kind} has "address"`)
  }
  if (typeof pool === 'object') checkCopies(`${path}.pool`, kind, pool, check)
  if (check.isGiven(`${path}.wildcard-hosts`) && checked.wildcard !== true) {
    check.fault(`${path}.wildcard-hosts`, `${path}.wildcard-hosts is for wildcard = true`)
  }
  for (const host of checked.hosts ?? []) taken.take(`host "${host.toLowerCase()}"`, `${path}.hosts`)
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

function checkConnect(
  name: string,
  { port, to = name, idleTimeoutMs, token }: Omit<CheckedService, 'port'> & { readonly port?: unknown },
  check: Check,
): ServiceConfig {
  const path = pathOf('services', name)
  if (check.isGiven(`${path}.guard`))
    check.fault(`${path}.guard`, `${path}.guard is for services that are shared, and this one is connect`)
  if (!FORMS.subdomain.fits(to.replace(/^(?:tcp|udp):/, '')))
    check.fault(
      check.isGiven(`${path}.to`) ? `${path}.to` : path,
      `${path} needs "to": the name of a private service, such as db or udp:dns`,
    )
  return service(name, 'connect', {
    name: to,
    port,
    ...(idleTimeoutMs !== undefined && { idleTimeoutMs }),
    ...(token !== undefined && { token }),
  })
}

/** Checks a private service, which has the name of the service, or `subdomain`. */
function checkPrivate(
  name: string,
  kind: Exclude<ServiceKind, 'connect'> | 'folder',
  { subdomain, ...options }: { readonly subdomain?: string | undefined },
  check: Check,
  taken: Taken,
): ServiceConfig {
  const path = pathOf('services', name)
  const own = (subdomain ?? name).toLowerCase()
  if (!FORMS.subdomain.fits(own))
    check.fault(path, `${path} is private, and its own name is not ${FORMS.subdomain.what}`)
  for (const key of PUBLIC_KEYS)
    if (check.isGiven(`${path}.${key}`))
      check.fault(`${path}.${key}`, `${path}.${key} is for public addresses, and this service is private`)
  taken.take(`private service "${kind === 'udp' ? 'udp:' : ''}${own}"`, path)
  return service(name, kind === 'folder' ? 'http' : kind, { ...options, private: own })
}

const PUBLIC_KEYS = [
  'exact',
  'wildcard',
  'wildcard-hosts',
  'hosts',
  'protocol',
  'host-header',
  'routes',
  'remote-port',
  'proxy-protocol',
  'inbox',
] as const

function poolOf(pool: true | GivenPool) {
  if (pool === true) return { affinity: 'none' }
  const { to, affinity = 'none', ...rest } = pool
  return to === 'all' ? { to, ...rest } : { affinity }
}

function checkCopies(path: string, kind: string, pool: GivenPool, check: Check): void {
  const isCopied = pool.to === 'all'
  if (isCopied && kind !== 'http' && kind !== 'folder')
    check.fault(`${path}.to`, `${path}.to "all" is for http: connections have no copies`)
  if (isCopied && pool.affinity !== undefined)
    check.fault(`${path}.affinity`, `${path}.affinity is for to = "one": all get a copy`)
  for (const key of ['response', 'label'] as const)
    if (!isCopied && pool[key] !== undefined)
      check.fault(`${path}.${key}`, `${path}.${key} is for to = "all"`)
}

/** Makes a service from options that were checked for their kind. If they have a fault, the result is not used. */
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
  // Services with a fault of their own are also returned.
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

/** Reports keys that have no effect with a URL. */
function checkUrls(path: string, { host, url, routes }: CheckedService, check: Check): void {
  if (host !== undefined) check.appHost(`${path}.host`, parseHost(host).hostname)
  const urls = new Map<string, string>(url === undefined ? [] : [[`${path}.url`, url]])
  for (const [route, target] of routes ?? [])
    if ('url' in target) urls.set(pathOf(`${path}.routes`, route), target.url)
    else if ('port' in target && target.host !== undefined)
      check.appHost(pathOf(`${path}.routes`, route), target.host)
  for (const [where, text] of urls) {
    const parsed = new URL(text)
    check.appHost(where, parsed.hostname.replace(/^\[|\]$/g, ''))
    const more = unusedPart(parsed)
    if (more !== undefined)
      check.fault(where, `${where} has ${more}, and none is used: give ${parsed.origin}`)
  }
  if ([...urls.values()].some(one => /^https:/i.test(one))) return
  for (const key of ['app-insecure', 'app-ca', 'app-server-name'])
    if (check.isGiven(`${path}.${key}`))
      check.fault(`${path}.${key}`, `${path}.${key} is for an https:// app, and there is none`)
}

/** Reports sign-in methods of raw tunnels, whose bytes have no credentials. */
function checkRawGuard(path: string, kind: string, check: Check): void {
  for (const key of Object.keys(GUARD_FIELDS))
    if (!RAW_GUARD_KEYS.has(key) && check.isGiven(`${path}.${key}`))
      check.fault(`${path}.${key}`, `${path}.${key} is for http: ${kind} has ${listOf([...RAW_GUARD_KEYS])}`)
}

/** Turns maps into objects, as the library expects them. */
function plainOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plainOf)
  if (typeof value !== 'object' || value === null) return value
  const entries = value instanceof Map ? [...value] : Object.entries(value)
  return Object.fromEntries(entries.map(([key, one]) => [key, plainOf(one)]))
}

/** The maximum number of routes of one tunnel. */
const MAX_ROUTES = 32

function checkRoutes(path: string, routes: readonly string[], check: Check): void {
  if (routes.length > MAX_ROUTES) check.fault(path, `${path} has ${routes.length}: at most ${MAX_ROUTES}`)
  const seen = new Map<string, string>()
  for (const route of routes) {
    const bare = route.replace(/\/+$/, '')
    const earlier = seen.get(bare)
    if (earlier !== undefined)
      check.fault(pathOf(path, route), `${pathOf(path, route)} is the same path as "${earlier}"`)
    seen.set(bare, route)
  }
}

/** The names and ports in use, which only one service can have. */
export class Taken {
  readonly #check: Check
  readonly #paths = new Map<string, string>()

  constructor(check: Check) {
    this.#check = check
  }

  take(what: string, path: string): void {
    const earlier = this.#paths.get(what)
    if (earlier === undefined) this.#paths.set(what, path)
    else {
      const other = earlier.replace(/\.(?:subdomain|remote-port|hosts)$/, '')
      this.#check.fault(path, `${path}: ${what} is already used by ${other} (${this.#check.lineOf(earlier)})`)
    }
  }
}

function listOf(words: readonly string[]): string {
  return words.length === 1 ? (words[0] ?? '') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`
}
