// Turns a client's options, and its environment, into what it works with. Everything is checked here, once.

import type { Agent } from 'node:http'
import type { Associate } from '../datagram-socket.ts'
import { TunnelError } from '../errors.ts'
import type { GuardOptions } from '../guard.ts'
import { generateSubdomain, isValidPort, isValidSubdomain, parseHost, slugOf } from '../names.ts'
import { OwnGuard } from '../own-guard.ts'
import type { Address, Dial } from '../socket.ts'
import {
  type Affinity,
  type HostRewrite,
  type InboxWish,
  isHostNames,
  isHosts,
  isInboxWish,
  isPoolAnswer,
  isPoolLabel,
  isRoutePath,
  MAX_HOST_NAMES,
  MAX_HOSTS,
  MAX_INBOX_PATHS,
  MAX_ROUTES,
  type PoolAnswer,
} from '../wire/control.ts'
import type { TunnelKind } from '../wire/tunnel-kind.ts'
import type { HealthSettings } from './health.ts'
import { type InspectSettings, inspectSettings } from './inspect/options.ts'
import { type ClientLimits, clientLimits } from './limits.ts'
import type {
  HealthOptions,
  HttpTunnelOptions,
  OriginOptions,
  RawTunnelOptions,
  RouteOptions,
  TcpTunnelOptions,
  TlsTunnelOptions,
  TunnelClientOptions,
  UdpTunnelOptions,
} from './options.ts'
import type { Origin } from './origin.ts'
import { AddressOrigin } from './origins/address.ts'
import { DatagramOrigin } from './origins/datagrams.ts'
import { folderOrigin } from './origins/folder.ts'
import { HandlerOrigin } from './origins/handler.ts'
import { LateOrigin } from './origins/late.ts'
import { dialOutward } from './outward.ts'
import { dialThrough } from './proxies/dial.ts'
import { proxyChooser } from './proxy.ts'
import { guardToken, parseServer, type ServerAddress } from './server-address.ts'
import { judged } from './webhooks/judged-origin.ts'
import { takeJudge } from './webhooks/take.ts'
import { type VerifySettings, verifySettings } from './webhooks/verify-options.ts'

/** The part of the environment that a client reads. */
export type Environment = Readonly<Record<string, string | undefined>>

/** Requests below a path, and where they go. */
export interface RouteSettings {
  readonly path: string
  readonly origin: Origin
  readonly rewrite: HostRewrite
  /** Its app speaks HTTP/2. */
  readonly protocol?: 'h2c' | 'h2'
}

/** One tunnel, as it is to be registered. */
export interface TunnelSettings {
  readonly kind: TunnelKind
  /** `http` and `tls`: the name to ask for. */
  readonly name: string | undefined
  /** `tcp` and `udp`: the public port to ask for; `undefined`: any. */
  readonly port: number | undefined
  /** Instead of the connection's. */
  readonly token: string | undefined
  readonly origin: Origin
  readonly rewrite: HostRewrite
  /** `tcp` and `tls`: the PROXY header that each connection to the origin begins with. */
  readonly proxyProtocol: 1 | 2 | undefined
  /** `http`: in the order of their numbers. */
  readonly routes: readonly RouteSettings[]
  /** `http` and `tls`. */
  readonly isWildcard: boolean
  /** The name was wished for, and not made up here. */
  readonly isNamed?: boolean
  /** `http`: no other name will do. */
  readonly isExact?: boolean
  /** Of these, those that may have certificates. */
  readonly hosts?: readonly string[]
  /** `http` and `tls`: whole host names that it answers, too. */
  readonly hostNames?: readonly string[]
  /** `http`: the app speaks HTTP/2. */
  readonly protocol?: 'h2c' | 'h2'
  /** `http`: what the server keeps while no client is there. */
  readonly inbox?: InboxWish
  /** It shares its name or port, and how. */
  readonly pool: Affinity | undefined
  /** With `all`: whose answer a visitor gets. */
  readonly poolAnswer?: PoolAnswer
  /** With `all`: what this client calls itself. */
  readonly poolLabel?: string
  readonly health: HealthSettings | undefined
  /** `http`: the app gets webhooks. */
  readonly verify?: VerifySettings
  /** Who may visit. */
  readonly guard?: OwnGuard | undefined
}

export interface ClientSettings {
  readonly server: ServerAddress
  /** Of the same cluster. */
  readonly otherServers: readonly ServerAddress[]
  /** The tunnel of a client that has just one. */
  readonly tunnel: TunnelSettings | undefined
  readonly token: string | undefined
  /** Tokens may go to another machine without TLS. */
  readonly isInsecureTokenAllowed: boolean
  readonly wire: 'auto' | 'streams' | 'json'
  /** Makes the connection to the server instead of `dial`. */
  readonly agent: Agent | undefined
  /** The way to the server and its public side: through a proxy, or straight. */
  readonly dial: Dial
  /** The same to what a server names as its public side. */
  readonly dialPublic: Dial
  /** The proxy on the way to the server, for messages: its URL without the login. */
  readonly proxyLabel: string | undefined
  readonly connectTimeoutMs: number
  readonly isReconnecting: boolean
  readonly maxBackoffMs: number
  readonly pingIntervalMs: number
  readonly deadAfterMs: number
  readonly drainTimeoutMs: number
  /** Requests a second that are reported one by one; `0`: all. */
  readonly reportRate: number
  readonly stateFolder: string | undefined
  readonly inspect: InspectSettings | undefined
  readonly limits: ClientLimits
}

/** What a timer can wait; more would fire at once. */
const MAX_TIMER_MS = 2_147_483_647

/** Of one cluster: more than a user would type. */
const MAX_SERVERS = 16

export const DEFAULT_SERVER = 'http://localhost:8080'

export function clientSettings(
  options: TunnelClientOptions,
  environment: Environment,
  dial: Dial,
): ClientSettings {
  const { wire = 'auto' } = options
  if (wire !== 'auto' && wire !== 'streams' && wire !== 'json') {
    throw new TunnelError('OPTION_INVALID', `wire must be auto, streams or json, not "${String(wire)}".`)
  }
  const pingIntervalMs = positive('pingIntervalMs', options.pingIntervalMs ?? 10_000)
  const deadAfterMs = positive('deadAfterMs', options.deadAfterMs ?? 20_000)
  if (deadAfterMs <= pingIntervalMs) {
    throw new TunnelError('OPTION_INVALID', 'deadAfterMs must be more than pingIntervalMs.')
  }
  // An empty variable is one that is not set.
  const servers = serversOf(options.server ?? (environment.TUNNEL_SERVER || DEFAULT_SERVER), options)
  const [server] = servers
  if (options.agent !== undefined && options.proxy) {
    throw new TunnelError('OPTION_INVALID', 'agent and proxy exclude each other: the agent is the way.')
  }
  // The request, with the token in it, may be on its way before anything here sees the certificate.
  if (options.agent !== undefined && options.pin !== undefined) {
    const text =
      'pin cannot be verified where an agent makes the connection: use proxy, or leave the pin out.'
    throw new TunnelError('OPTION_INVALID', text)
  }
  const chooseProxy = proxyChooser(options, environment)
  const way = {
    server,
    proxyLabel: options.agent === undefined ? chooseProxy(server.address)?.label : undefined,
    isInsecureTokenAllowed: options.insecureToken ?? false,
  }
  const token = (options.token ?? environment.TUNNEL_TOKEN) || undefined
  for (const one of servers) guardToken(token, { ...way, server: one })
  return {
    ...way,
    otherServers: servers.slice(1),
    dial: dialThrough(chooseProxy, dial),
    dialPublic: dialThrough(
      chooseProxy,
      dialOutward(
        servers.map(one => one.address),
        dial,
      ),
    ),
    tunnel: isTunnelGiven(options)
      ? httpTunnel({ ...options, token: undefined }, environment, dial)
      : undefined,
    token,
    wire,
    // Public as `object`: published types do without those of Node.
    agent: options.agent as Agent | undefined,
    connectTimeoutMs: positive('connectTimeoutMs', options.connectTimeoutMs ?? 10_000),
    isReconnecting: options.reconnect ?? true,
    maxBackoffMs: positive('maxBackoffMs', options.maxBackoffMs ?? 5_000),
    pingIntervalMs,
    deadAfterMs,
    drainTimeoutMs: positive('drainTimeoutMs', options.drainTimeoutMs ?? 10_000),
    reportRate: reportRate(options.reportRate ?? 0),
    stateFolder: options.stateFolder,
    inspect: inspectSettings(options.inspect),
    limits: clientLimits(options.limits ?? {}),
  }
}

function serversOf(
  given: string | readonly string[],
  options: TunnelClientOptions,
): readonly [ServerAddress, ...ServerAddress[]] {
  const [first, ...others] = typeof given === 'string' ? [given] : given
  if (first === undefined || others.length >= MAX_SERVERS)
    throw new TunnelError('OPTION_INVALID', `server must name 1 to ${MAX_SERVERS} servers.`)
  return [parseServer(first, options), ...others.map(one => parseServer(one, options))]
}

function reportRate(rate: number): number {
  if (Number.isSafeInteger(rate) && rate >= 0) return rate
  throw new TunnelError('OPTION_INVALID', `reportRate must be a whole number from 0, not ${rate}.`)
}

/** An HTTP tunnel. Throws `OPTION_INVALID`, `PORT_INVALID` or `NAME_INVALID` for what cannot be used. */
export function httpTunnel(options: HttpTunnelOptions, environment: Environment, dial: Dial): TunnelSettings {
  const origin = originOf(options, dial, options.protocol)
  const verify = options.verify && verifySettings(options.verify, options.inbox !== undefined)
  const routes = routesOf(options.routes ?? {}, dial)
  const own = protocolOf(options)
  const isAnyHttp2 = [own, ...routes].some(({ protocol }) => protocol !== undefined)
  if (verify !== undefined && isAnyHttp2)
    throw new TunnelError('OPTION_INVALID', 'verify and protocol exclude each other: webhooks are HTTP/1.1.')
  const take = options.take === undefined ? undefined : takeJudge(options.take)
  if (take !== undefined && options.protocol !== undefined && options.protocol !== 'http/1.1')
    throw new TunnelError('OPTION_INVALID', 'take and protocol exclude each other: filters read HTTP/1.1.')
  const checked = (one: Origin) => {
    const signed = verify?.isRequired
      ? judged(one, async () => (await import('./webhooks/signature-judge.ts')).signatureJudge(verify))
      : one
    return take === undefined ? signed : judged(signed, () => take)
  }
  const isNamed = isNameGiven(options, environment)
  if (options.exact && !isNamed)
    throw new TunnelError('OPTION_INVALID', 'exact is for a name that is asked for: there is no subdomain.')
  return {
    kind: 'http',
    name: nameOf(options, environment),
    isNamed: isNamed || isValidSubdomain(slugOf(environment.APP_NAME ?? '')),
    isExact: options.exact ?? false,
    port: undefined,
    token: checkToken(options.token),
    origin: checked(origin),
    rewrite: rewriteOf(options.hostHeader, origin),
    proxyProtocol: undefined,
    routes: routes.map(route => ({ ...route, origin: checked(route.origin) })),
    ...(verify !== undefined && { verify }),
    isWildcard: options.wildcard ?? false,
    ...(options.wildcardHosts && { hosts: hostsOf(options.wildcardHosts, options.wildcard ?? false) }),
    ...hostNamesOf(options.hosts),
    ...own,
    ...inboxOf(options, isNamed),
    ...httpPoolOf(options.pool),
    health: options.health && {
      ...healthOf(options.health, origin, rewriteOf(options.hostHeader, origin)),
      isHttp2: own.protocol !== undefined,
    },
    guard: guardOf(options.guard),
  }
}

function hostNamesOf(given: readonly string[] = []): Pick<TunnelSettings, 'hostNames'> {
  if (given.length === 0) return {}
  const hostNames = [...new Set(given.map(host => host.toLowerCase().replace(/\.$/, '')))]
  if (isHostNames(hostNames)) return { hostNames }
  throw new TunnelError(
    'OPTION_INVALID',
    `hosts must be at most ${MAX_HOST_NAMES} hosts such as www.customer.example, not ${given.join(', ').slice(0, 200)}.`,
  )
}

function inboxOf({ inbox }: HttpTunnelOptions, isNamed: boolean): Pick<TunnelSettings, 'inbox'> {
  if (inbox === undefined) return {}
  if (!isNamed)
    throw new TunnelError('OPTION_INVALID', 'inbox is for a name that is asked for: there is no subdomain.')
  const wish: unknown = { paths: inbox.paths, answer: inbox.answer ?? 202 }
  if (isInboxWish(wish)) return { inbox: wish }
  throw new TunnelError(
    'OPTION_INVALID',
    `inbox must have 1 to ${MAX_INBOX_PATHS} paths such as /hooks/github or /hooks/*, and answer 200, 201, 202 or 204.`,
  )
}

/** What the server learns: by TLS it is HTTP/2 that ALPN chose. */
function protocolOf(options: RouteOptions): Pick<TunnelSettings, 'protocol'> {
  const { protocol = 'http/1.1', url, fetch, folder } = options
  if (protocol === 'http/1.1') return {}
  if (protocol !== 'h2c' && protocol !== 'h2')
    throw new TunnelError(
      'OPTION_INVALID',
      `protocol must be http/1.1, h2c or h2, not "${String(protocol)}".`,
    )
  const isSecure = url?.startsWith('https:') === true
  if (fetch !== undefined || folder !== undefined || isSecure !== (protocol === 'h2')) {
    const text =
      'protocol h2c is for apps with a port, an http:// URL or a unix socket, and h2 for https:// URLs.'
    throw new TunnelError('OPTION_INVALID', text)
  }
  return { protocol }
}

function guardOf(options: GuardOptions | undefined): OwnGuard | undefined {
  return options && new OwnGuard(options)
}

function hostsOf(given: readonly string[], isWildcard: boolean): readonly string[] {
  if (!isWildcard) throw new TunnelError('OPTION_INVALID', 'wildcardHosts needs wildcard.')
  const hosts = given.map(host => host.toLowerCase())
  if (isHosts(hosts)) return hosts
  throw new TunnelError(
    'OPTION_INVALID',
    `wildcardHosts must be at most ${MAX_HOSTS} names such as anna or a.b, not ${given.join(', ').slice(0, 200)}.`,
  )
}

function routesOf(routes: Readonly<Record<string, number | RouteOptions>>, dial: Dial): RouteSettings[] {
  const all = Object.entries(routes).map(([given, where]) => {
    const path = given.replace(/\/+$/, '')
    // Clients take dot segments out of a path before they send it.
    if (!isRoutePath(path) || /\/\.\.?(?:\/|$)/.test(path))
      throw new TunnelError('OPTION_INVALID', `routes: "${given}" is not a path such as /api.`)
    const options: RouteOptions = typeof where === 'number' ? { port: where } : where
    if (options.later) throw new TunnelError('OPTION_INVALID', `routes: ${path} cannot come later.`)
    const origin = originOf(options, dial, options.protocol)
    return { path, origin, rewrite: rewriteOf(options.hostHeader, origin), ...protocolOf(options) }
  })
  if (all.length > MAX_ROUTES)
    throw new TunnelError('OPTION_INVALID', `A tunnel has at most ${MAX_ROUTES} routes, not ${all.length}.`)
  if (new Set(all.map(({ path }) => path)).size < all.length)
    throw new TunnelError('OPTION_INVALID', 'routes: a path is given twice.')
  return all
}

/** A TCP tunnel, likewise. */
export function tcpTunnel(options: TcpTunnelOptions, dial: Dial): TunnelSettings {
  return {
    ...rawTunnel(options, dial),
    kind: 'tcp',
    name: undefined,
    port: checkRemotePort(options.remotePort),
    isWildcard: false,
  }
}

/** A TLS tunnel, likewise. */
export function tlsTunnel(options: TlsTunnelOptions, dial: Dial): TunnelSettings {
  return {
    ...rawTunnel(options, dial),
    kind: 'tls',
    name: nameOf(options, {}),
    isNamed: isNameGiven(options, {}),
    port: undefined,
    isWildcard: options.wildcard ?? false,
    ...hostNamesOf(options.hosts),
  }
}

/** What all tunnels of bytes have. */
function rawTunnel(options: RawTunnelOptions, dial: Dial) {
  if ((options.port === undefined) === (options.unix === undefined))
    throw new TunnelError('OPTION_INVALID', 'Exactly one of port and unix says where the service is.')
  const origin = addressOrigin(options, dial)
  return {
    token: checkToken(options.token),
    origin,
    rewrite: {},
    proxyProtocol: proxyVersion(options.proxyProtocol),
    routes: [],
    pool: affinityOf(options.pool, ['none', 'address']),
    health: options.health && healthOf(options.health, origin, {}),
    guard: guardOf(options.guard),
  }
}

function proxyVersion(name: 'v1' | 'v2' | undefined): 1 | 2 | undefined {
  if (name === undefined) return undefined
  if (name === 'v1' || name === 'v2') return name === 'v1' ? 1 : 2
  throw new TunnelError('OPTION_INVALID', `proxyProtocol must be v1 or v2, not "${String(name)}".`)
}

/** A UDP tunnel, likewise. `failed` learns that the service does not listen. */
export function udpTunnel(
  options: UdpTunnelOptions,
  associate: Associate,
  failed: (error: TunnelError) => void,
): TunnelSettings {
  const { port, host = 'localhost', remotePort, token } = options
  if (!isValidPort(port)) throw new TunnelError('PORT_INVALID', `${port} is not a port.`)
  const idleTimeoutMs = positive('idleTimeoutMs', options.idleTimeoutMs ?? 60_000)
  return {
    kind: 'udp',
    name: undefined,
    port: checkRemotePort(remotePort),
    token: checkToken(token),
    origin: new DatagramOrigin({ host: parseHost(host).hostname, port, idleTimeoutMs, associate, failed }),
    rewrite: {},
    proxyProtocol: undefined,
    routes: [],
    isWildcard: false,
    pool: undefined,
    health: undefined,
    guard: guardOf(options.guard),
  }
}

function checkRemotePort(port: number | undefined): number | undefined {
  if (port === undefined || isValidPort(port)) return port
  throw new TunnelError('PORT_INVALID', `remotePort: ${port} is not a port.`)
}

function isTunnelGiven({ port, url, unix, fetch, folder, spa, later }: OriginOptions): boolean {
  return [port, url, unix, fetch, folder, spa, later].some(one => one !== undefined)
}

function healthOf(options: HealthOptions, origin: Origin, { hostHeader }: HostRewrite): HealthSettings {
  const { path = '/', kind = options.path === undefined ? 'tcp' : 'http' } = options
  if (kind !== 'tcp' && kind !== 'http')
    throw new TunnelError('OPTION_INVALID', `health.kind must be tcp or http, not "${String(kind)}".`)
  if (!/^\/[\x21-\x22\x24-\x7e]{0,1023}$/.test(path))
    throw new TunnelError('OPTION_INVALID', `health.path: "${path}" is not a path such as /health.`)
  return {
    kind,
    path,
    host: hostHeader ?? new URL(origin.url).host,
    intervalMs: positive('health.intervalMs', options.intervalMs ?? 10_000),
    timeoutMs: positive('health.timeoutMs', options.timeoutMs ?? 3_000),
    healthyAfter: checks('health.healthyAfter', options.healthyAfter ?? 1),
    unhealthyAfter: checks('health.unhealthyAfter', options.unhealthyAfter ?? 3),
  }
}

function checks(name: string, value: number): number {
  if (Number.isSafeInteger(value) && value >= 1) return value
  throw new TunnelError('OPTION_INVALID', `${name} must be a whole number from 1, not ${value}.`)
}

function affinityOf(
  pool: boolean | { readonly affinity: Affinity } | undefined,
  known: readonly Affinity[],
): Affinity | undefined {
  if (pool === undefined || pool === false) return undefined
  const affinity = pool === true ? 'none' : pool.affinity
  if (known.includes(affinity)) return affinity
  throw new TunnelError('OPTION_INVALID', `pool.affinity: "${affinity}" is none of ${known.join(', ')}.`)
}

/** Of an HTTP tunnel. Throws `OPTION_INVALID`. */
function httpPoolOf(
  pool: HttpTunnelOptions['pool'],
): Pick<TunnelSettings, 'pool' | 'poolAnswer' | 'poolLabel'> {
  if (typeof pool !== 'object' || !('to' in pool))
    return { pool: affinityOf(pool, ['none', 'cookie', 'address']) }
  const { to, answer, label } = pool
  if (to !== 'all') throw new TunnelError('OPTION_INVALID', `pool.to: "${String(to)}" is not "all".`)
  if (answer !== undefined && !isPoolAnswer(answer))
    throw new TunnelError(
      'OPTION_INVALID',
      `pool.answer: ${String(answer)} is none of first, the label of a client, and a status from 200 to 299.`,
    )
  if (label !== undefined && !isPoolLabel(label))
    throw new TunnelError(
      'OPTION_INVALID',
      `pool.label: "${String(label)}" is no label: 1 to 63 letters, digits, ., _ and -, not digits alone, and not first.`,
    )
  return {
    pool: 'all',
    ...(answer !== undefined && { poolAnswer: answer }),
    ...(label !== undefined && { poolLabel: label }),
  }
}

/** It travels in a header: anything else would be refused for a reason that the user does not see. */
function checkToken(token: string | undefined): string | undefined {
  if (token === undefined || /^[\x21-\x7e]{1,8192}$/.test(token)) return token
  throw new TunnelError('OPTION_INVALID', 'A token must be visible ASCII without spaces, and not empty.')
}

/** Throws `OPTION_INVALID` or `PORT_INVALID`. */
export function originOf(
  options: OriginOptions,
  dial: Dial,
  protocol?: HttpTunnelOptions['protocol'],
): Origin {
  const { port, url, unix, fetch, folder, spa, later, websocket } = options
  if (websocket !== undefined && fetch === undefined)
    throw new TunnelError('OPTION_INVALID', 'websocket belongs to fetch, which is not given.')
  if ([port, url, unix, fetch, folder, later || undefined].filter(one => one !== undefined).length !== 1) {
    const text = 'Exactly one of port, url, unix, fetch, folder and later says where the app is.'
    throw new TunnelError('OPTION_INVALID', text)
  }
  if (later) return new LateOrigin()
  if (folder !== undefined) return folderOrigin(folder, spa ?? false)
  if (spa !== undefined) throw new TunnelError('OPTION_INVALID', 'spa belongs to folder, which is not given.')
  return fetch === undefined
    ? addressOrigin(options, dial, true, protocol === 'h2')
    : new HandlerOrigin(fetch, undefined, websocket)
}

function addressOrigin(options: OriginOptions, dial: Dial, isHttp = false, isHttp2 = false): Origin {
  const connectTimeoutMs = positive('originConnectTimeoutMs', options.originConnectTimeoutMs ?? 10_000)
  const plain = originAddress(options)
  const address = isHttp2 && plain.tls ? { ...plain, tls: { ...plain.tls, protocol: 'h2' } } : plain
  return new AddressOrigin({ address, connectTimeoutMs, dial, isHttp })
}

function originAddress(options: OriginOptions): Address {
  const { port, host = 'localhost', url, unix, verifyOrigin } = options
  if (unix !== undefined) return { unix }
  if (url !== undefined) {
    const parsed = parseUrl(url)
    if (parsed === null || !/^https?:$/.test(parsed.protocol)) {
      throw new TunnelError('OPTION_INVALID', `"${url}" is not an http:// or https:// URL.`)
    }
    const isSecure = parsed.protocol === 'https:'
    return {
      host: parsed.hostname.replace(/^\[|\]$/g, ''),
      port: parsed.port === '' ? (isSecure ? 443 : 80) : Number(parsed.port),
      ...(isSecure && { tls: verifyOrigin === undefined ? {} : { verify: verifyOrigin } }),
    }
  }
  if (port === undefined || !isValidPort(port))
    throw new TunnelError('PORT_INVALID', `${port} is not a port.`)
  return { host: parseHost(host).hostname, port }
}

function isNameGiven({ subdomain }: { readonly subdomain?: string }, environment: Environment): boolean {
  return Boolean(subdomain ?? environment.TUNNEL_SUBDOMAIN)
}

function nameOf(options: { readonly subdomain?: string }, environment: Environment): string {
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

/** What replaces the visitor's Host and Origin; empty leaves them alone. */
function rewriteOf(hostHeader: string | undefined, origin: Origin): HostRewrite {
  if (hostHeader === undefined || hostHeader === 'preserve') return {}
  if (hostHeader === 'rewrite') return { hostHeader: new URL(origin.url).host, origin: origin.url }
  parseHost(hostHeader)
  return { hostHeader, origin: `${new URL(origin.url).protocol}//${hostHeader}` }
}

function positive(name: string, value: number): number {
  if (value > 0 && value <= MAX_TIMER_MS) return value
  throw new TunnelError('OPTION_INVALID', `${name} must be 1 to ${MAX_TIMER_MS} milliseconds, not ${value}.`)
}

/** `URL.parse`, which Node 20 does not have. */
function parseUrl(text: string): URL | null {
  return URL.canParse(text) ? new URL(text) : null
}
