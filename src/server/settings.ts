// Turns a server's options into what it works with. Everything is checked here, once.

import { type Branding, checkBranding } from '../branding.ts'
import type { Certificates, ChallengeAnswers } from '../certificates.ts'
import { TunnelError } from '../errors.ts'
import { domainHint, isLoopback, isValidPort, isValidSubdomain, noPort } from '../names.ts'
import { Networks } from '../networks.ts'
import { checkNames } from '../option-names.ts'
import type { Guard, GuardMaker, Middleware, Observer } from '../plugin.ts'
import type { ServerTls } from '../sockets/bun.ts'
import type { AddressBounds } from './address-book.ts'
import { type Bounds, boundsOf, type FixedBounds } from './bounds.ts'
import { SERVER_HINTS, SERVER_NAMES, TOKEN_NAMES } from './option-names.ts'
import {
  DEFAULT_HOST,
  DEFAULT_LIMITS,
  NEVER_ZERO,
  type ServerLimits,
  type TunnelServerOptions,
} from './options.ts'
import type { AdminOptions, ClusterOptions, InboxOptions } from './part-options.ts'
import { checkPlugins } from './plugins-for.ts'
import { Policy } from './policy.ts'
import { PortRanges } from './ports.ts'
import { checkTunnelRules, type TunnelRule } from './tunnel-rule.ts'

export interface ServerSettings {
  readonly port: number
  /** Descriptors of sockets that listen already. */
  readonly inherited: readonly number[]
  /** Address to listen on. */
  readonly hostname: string
  /** At least one; URLs name the first. */
  readonly domains: readonly string[]
  /** The same, those under another one first. */
  readonly domainsByLength: readonly string[]
  readonly branding: Branding | undefined
  /** One certificate for all names. */
  readonly tls: ServerTls | undefined
  /** Certificates by name. */
  readonly certificates: Certificates | undefined
  readonly challenges: ChallengeAnswers | undefined
  /** PEM of the authorities that sign the certificates of clients; `undefined`: clients need none. */
  readonly clientCa: string | undefined
  /** `port` speaks TLS. */
  readonly isTls: boolean
  readonly tlsTerms: Pick<ServerTls, 'minVersion' | 'ciphers'>
  /** Visitors may speak HTTP/2. */
  readonly http2: boolean
  /** Visitors may speak HTTP/3 on the UDP port beside `port`. */
  readonly http3: boolean
  /** For redirects and challenges; `undefined`: none. */
  readonly httpPort: number | undefined
  /** A header line for answers over TLS, with its CRLF. */
  readonly hstsLine: Uint8Array | undefined
  readonly publicUrl: URL | undefined
  readonly policy: Policy
  readonly ports: { readonly tcp: PortRanges; readonly udp: PortRanges }
  /** For TLS tunnels; `undefined`: none. */
  readonly tlsPort: number | undefined
  readonly hasTlsPort: boolean
  /** TLS tunnels and the server itself are on one port. */
  readonly sharesTlsPort: boolean
  readonly reservedNames: ReadonlySet<string>
  /** Whose forwarding headers are believed; `undefined`: none. */
  readonly trusted: Networks | undefined
  /** Connections of trusted addresses begin with a PROXY header. */
  readonly acceptsProxyProtocol: boolean
  /** Requests a second that listeners hear of one by one; `0`: all. */
  readonly reportRate: number
  readonly guards: readonly Guard[]
  readonly guarding: GuardMaker | undefined
  readonly observers: readonly Observer[]
  readonly middlewares: readonly Middleware[]
  readonly admin: AdminOptions | undefined
  readonly cluster: ClusterOptions | undefined
  readonly inbox: InboxOptions | undefined
  readonly tunnelRules: readonly TunnelRule[]
  readonly isTraced: boolean
  readonly hasServerTiming: boolean
  readonly limits: Bounds
  /** Fixed bounds that tests have made small. */
  readonly fixed: Partial<FixedBounds>
  readonly addressBounds: AddressBounds
  /** Nothing was said about `maxAddressVisitors`: a server with few places gives one address fewer. */
  readonly isAddressShareDefault: boolean
  /** For requests that wait for their clients after the start. */
  readonly startupBounds: AddressBounds
}

const DEFAULT_PORTS = '20000-29999'

const invalid = (text: string): TunnelError => new TunnelError('OPTION_INVALID', text)

/** Throws `OPTION_INVALID` or `PORT_INVALID` for what cannot be used. `fixed`: for tests. */
export function serverSettings(
  options: TunnelServerOptions,
  fixed: Partial<FixedBounds> = {},
): ServerSettings {
  checkNames(options, SERVER_NAMES, 'TunnelServer', SERVER_HINTS)
  for (const token of options.tokens ?? [])
    if (typeof token === 'object') checkNames(token, TOKEN_NAMES, 'A token of tokens')
  const { port = 8080 } = options
  checkPort('port', port)
  const limits = boundsOf(checkLimits(options.limits ?? {}), fixed)
  const domains = checkDomains(options.domains ?? ['localhost'])
  return {
    port,
    inherited: checkInherited(options.inherited ?? []),
    hostname: options.host ?? DEFAULT_HOST,
    domains,
    domainsByLength: domains.toSorted((one, other) => other.length - one.length),
    branding: options.branding && checkBranding(options.branding),
    ...checkTls(options),
    challenges: options.challenges,
    clientCa: checkClientCa(options),
    http2: checkHttp2(options),
    http3: checkHttp3(options),
    httpPort: checkHttpPort(options),
    hstsLine: hstsLine(options.hsts ?? 0),
    publicUrl: checkPublicUrl(options.publicUrl),
    policy: new Policy(options.tokens ?? [], options.tokenReader),
    ports: {
      tcp: new PortRanges(options.tcpPorts ?? DEFAULT_PORTS, 'tcpPorts'),
      udp: new PortRanges(options.udpPorts ?? DEFAULT_PORTS, 'udpPorts'),
    },
    ...checkTlsPort(options, port),
    reservedNames: new Set(options.reservedNames?.map(name => name.toLowerCase())),
    trusted: trustedList(options.trustedProxies ?? []),
    reportRate: checkReportRate(options.reportRate ?? 0),
    acceptsProxyProtocol: checkProxyProtocol(options),
    ...checkAllPlugins(options),
    admin: options.admin,
    cluster: options.cluster,
    inbox: options.inbox,
    isTraced: options.tracing ?? options.observers?.some(observer => observer.trace !== undefined) ?? false,
    hasServerTiming: options.serverTiming ?? false,
    tunnelRules: checkTunnelRules(options.tunnelRules ?? []),
    guarding: options.guarding,
    limits,
    fixed,
    addressBounds: addressBounds(limits, options.limits),
    startupBounds: {
      maxOpen: limits.maxAddressStartupHeld,
      maxPerSecond: 0,
      includesLoopback: fixed.maxAddressStartupHeld !== undefined,
    },
    isAddressShareDefault: options.limits?.maxAddressVisitors === undefined,
  }
}

function checkInherited(descriptors: readonly number[]): readonly number[] {
  for (const descriptor of descriptors)
    if (!(Number.isInteger(descriptor) && descriptor >= 0))
      throw invalid(`inherited: ${descriptor} is not a file descriptor.`)
  return descriptors
}

function checkAllPlugins({
  guards = [],
  observers = [],
  middlewares = [],
  tunnelRules = [],
}: TunnelServerOptions) {
  checkPlugins(tunnelRules, 'tunnelRules')
  checkPlugins(guards, 'guards')
  checkPlugins(observers, 'observers')
  checkPlugins(middlewares, 'middlewares')
  return { guards, observers, middlewares }
}

function checkReportRate(rate: number): number {
  if (Number.isSafeInteger(rate) && rate >= 0) return rate
  throw invalid(`reportRate must be a whole number from 0, not ${rate}.`)
}

/** By default the loopback has none: a proxy, a load test or the app itself may be behind it. */
function addressBounds(limits: ServerLimits, wished: TunnelServerOptions['limits']): AddressBounds {
  const { maxAddressVisitors, maxAddressRate } = limits
  return {
    maxOpen: maxAddressVisitors,
    maxPerSecond: maxAddressRate,
    includesLoopback: wished?.maxAddressVisitors !== undefined || wished?.maxAddressRate !== undefined,
  }
}

/** Whether everybody who reaches this machine may have a tunnel. */
export function isOpenServer({ policy, hostname }: ServerSettings, areLocal = true): boolean {
  return policy.isOpen && !(areLocal && isLoopback(hostname))
}

function trustedList(ranges: readonly string[]): Networks | undefined {
  if (ranges.length === 0) return undefined
  const list = new Networks()
  for (const range of ranges)
    if (!list.add(range)) throw invalid(`"${range}" is not an address or a CIDR range.`)
  return list
}

function checkProxyProtocol({ acceptProxyProtocol, trustedProxies }: TunnelServerOptions): boolean {
  if (!acceptProxyProtocol) return false
  if (trustedProxies === undefined || trustedProxies.length === 0) {
    throw invalid('acceptProxyProtocol needs trustedProxies: who may send the header.')
  }
  return true
}

function checkHttp2({ http2 }: TunnelServerOptions): boolean {
  if (http2 !== undefined && typeof http2 !== 'boolean')
    throw invalid(`http2 must be true or false, not ${String(http2)}.`)
  return http2 !== false
}

function checkHttp3(options: TunnelServerOptions): boolean {
  const { http3, tls, certificates, acceptProxyProtocol } = options
  if (http3 !== undefined && typeof http3 !== 'boolean')
    throw invalid(`http3 must be true or false, not ${String(http3)}.`)
  if (http3 !== true) return false
  if ((tls ?? certificates) === undefined)
    throw invalid('http3 needs tls or certificates: there is no HTTP/3 without TLS.')
  if (acceptProxyProtocol === true)
    throw invalid(
      'http3 and acceptProxyProtocol do not go together: a PROXY header cannot name visitors who come by UDP.',
    )
  return true
}

function checkTls({ tls, certificates, tlsMinVersion, tlsCiphers }: TunnelServerOptions) {
  if (tlsMinVersion !== undefined && tlsMinVersion !== '1.2' && tlsMinVersion !== '1.3')
    throw invalid(`tlsMinVersion "${String(tlsMinVersion)}" is neither 1.2 nor 1.3.`)
  const isTls = tls !== undefined || certificates !== undefined
  if (!isTls && (tlsMinVersion ?? tlsCiphers) !== undefined)
    throw invalid('tlsMinVersion and tlsCiphers need tls or certificates: there is no TLS without them.')
  if (tls !== undefined && certificates !== undefined)
    throw invalid('tls and certificates do not go together: leave one of them out.')
  const tlsTerms = {
    ...(tlsMinVersion && { minVersion: tlsMinVersion }),
    ...(tlsCiphers !== undefined && { ciphers: tlsCiphers }),
  }
  return { isTls, tlsTerms, certificates, tls: tls && { cert: tls.cert, key: tls.key, ...tlsTerms } }
}

function checkClientCa({ clientCa, tls, certificates }: TunnelServerOptions): string | undefined {
  if (clientCa === undefined) return undefined
  if (tls === undefined && certificates === undefined)
    throw invalid('clientCa needs tls or certificates: clients show theirs in TLS.')
  if (clientCa.includes('-----BEGIN CERTIFICATE-----')) return clientCa
  throw invalid('clientCa holds no certificate in PEM format.')
}

function checkHttpPort({
  httpPort,
  port = 8080,
  tls,
  certificates,
}: TunnelServerOptions): number | undefined {
  if (httpPort === undefined) return undefined
  checkPort('httpPort', httpPort)
  if (tls === undefined && certificates === undefined)
    throw invalid('httpPort needs tls or certificates: it sends visitors to https.')
  if (httpPort === port && port !== 0)
    throw invalid(`httpPort and port are both ${port}: give them different ones.`)
  return httpPort
}

/** RFC 6797 section 6.1: delta-seconds, of which browsers take any. */
const MAX_HSTS_SECONDS = 10_000_000_000

function hstsLine(seconds: number): Uint8Array | undefined {
  if (!(Number.isInteger(seconds) && seconds >= 0 && seconds <= MAX_HSTS_SECONDS))
    throw invalid(`hsts must be a number of seconds, not ${seconds}.`)
  return seconds === 0 ? undefined : Buffer.from(`Strict-Transport-Security: max-age=${seconds}\r\n`)
}

function checkTlsPort({ tlsPort, tls, certificates }: TunnelServerOptions, port: number) {
  if (tlsPort !== undefined) checkPort('tlsPort', tlsPort)
  const sharesTlsPort = tlsPort !== undefined && tlsPort === port && port !== 0
  if (sharesTlsPort && tls === undefined && certificates === undefined)
    throw invalid('tlsPort and port are the same: that needs tls, for the others.')
  return { tlsPort, hasTlsPort: tlsPort !== undefined, sharesTlsPort }
}

function checkPort(option: string, port: number): void {
  if (port !== 0 && !isValidPort(port)) throw noPort(`${option} ${port}`, 0)
}

function checkDomains(domains: readonly string[]): readonly string[] {
  if (domains.length === 0) throw invalid('A server needs at least one domain.')
  return domains.map(domain => {
    const lower = domain.toLowerCase().replace(/\.$/, '')
    if (lower.split('.').every(isValidSubdomain)) return lower
    throw invalid(`"${domain}" is not a domain name${domainHint(domain)}.`)
  })
}

/** What a timer can wait; more would fire at once. */
export const MAX_TIMER_MS = 2_147_483_647
function checkLimits(wished: Partial<ServerLimits>): ServerLimits {
  checkNames(wished, DEFAULT_LIMITS, 'limits')
  for (const [name, value] of Object.entries(wished)) {
    if (value === undefined) continue
    const least = NEVER_ZERO.has(name) ? 1 : 0
    const most = name.endsWith('Ms') ? MAX_TIMER_MS : Number.MAX_SAFE_INTEGER
    if (!(value >= least && value <= most)) {
      throw invalid(`limits.${name} must be from ${least} to ${most}, not ${value}.`)
    }
  }
  const given = Object.entries(wished).filter(([, value]) => value !== undefined)
  const limits: ServerLimits = { ...DEFAULT_LIMITS, ...Object.fromEntries(given) }
  if (limits.deadAfterMs <= limits.pingIntervalMs) {
    throw invalid('limits.deadAfterMs must be more than limits.pingIntervalMs.')
  }
  return limits
}

function checkPublicUrl(publicUrl: string | undefined): URL | undefined {
  if (publicUrl === undefined) return undefined
  if (URL.canParse(publicUrl) && /^https?:$/.test(new URL(publicUrl).protocol)) return new URL(publicUrl)
  throw invalid(`publicUrl "${publicUrl}" is not an http:// or https:// URL.`)
}
