// Checks a server's options, and turns them into its settings. Nothing is checked again later.

import { type Branding, checkBranding } from '../../branding.ts'
import type { Certificates, ChallengeResponses } from '../../certificates.ts'
import { optionInvalid, type TunnelError } from '../../errors.ts'
import { domainHint, isValidPort, isValidSubdomain, noPort } from '../../names.ts'
import { Networks } from '../../networks.ts'
import { checkNames, whole } from '../../option-names.ts'
import type { Guard, GuardMaker, Middleware, Observer } from '../../plugin.ts'
import type { ServerTls } from '../../sockets/bun.ts'
import { isRoutePath } from '../../wire/control.ts'
import type { AddressBounds } from './address-counter.ts'
import { type Bounds, boundsOf, type FixedBounds } from './bounds.ts'
import { openServerFault } from './open-server.ts'
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
  /** The descriptors of inherited sockets. */
  readonly inherited: readonly number[]
  readonly hostname: string
  /** The domains, at least one; URLs name the first. */
  readonly domains: readonly string[]
  /** The domains, longest first, so that a domain under another one is found first. */
  readonly domainsByLength: readonly string[]
  readonly branding: Branding | undefined
  /** The certificate for all names, as `tls` of the options. */
  readonly tls: ServerTls | undefined
  readonly certificates: Certificates | undefined
  readonly challenges: ChallengeResponses | undefined
  /** The PEM text of the authorities that sign the certificates of clients. `undefined` if clients need none. */
  readonly clientCa: string | undefined
  /** Whether `port` speaks TLS. */
  readonly isTls: boolean
  readonly tlsTerms: Pick<ServerTls, 'minVersion' | 'ciphers'>
  /** Whether visitors may use HTTP/2. */
  readonly http2: boolean
  /** Whether visitors may use HTTP/3, on the UDP port with the number of `port`. */
  readonly http3: boolean
  /** The port for redirects and challenges. `undefined` for none. */
  readonly httpPort: number | undefined
  /** A header line for responses over TLS, with its CRLF. */
  readonly hstsLine: Uint8Array | undefined
  readonly publicUrl: URL | undefined
  /** The base path without a slash at its end; `''` if there is none. */
  readonly basePath: string
  readonly policy: Policy
  /**
   * Returns why strangers could get tunnels. `undefined` if they cannot. `areLocal`: only this machine reaches the
   * inherited sockets.
   */
  readonly openFault: (areLocal: boolean | undefined) => TunnelError | undefined
  readonly ports: { readonly tcp: PortRanges; readonly udp: PortRanges }
  /** The port for TLS tunnels. `undefined` for none. */
  readonly tlsPort: number | undefined
  readonly hasTlsPort: boolean
  readonly sharesTlsPort: boolean
  readonly reservedNames: ReadonlySet<string>
  /** The proxies whose forwarding headers are trusted. `undefined` for none. */
  readonly trusted: Networks | undefined
  /** Whether connections of trusted addresses begin with a PROXY header. */
  readonly acceptsProxyProtocol: boolean
  /** The number of requests per second that listeners get one by one; `0`: all. */
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
  readonly fixed: Partial<FixedBounds>
  readonly addressBounds: AddressBounds
  /** Whether `maxAddressVisitors` was not set. Then a server with few places lowers it. */
  readonly isAddressShareDefault: boolean
  /** The limits for each address of requests that wait after the start. */
  readonly startupBounds: AddressBounds
}

const DEFAULT_PORTS = '20000-29999'

/** Checks options and returns the settings. Throws `OPTION_INVALID`. `fixed`: for tests. */
export function serverSettings(
  options: TunnelServerOptions,
  fixed: Partial<FixedBounds> = {},
): ServerSettings {
  checkNames(options, SERVER_NAMES, 'TunnelServer', SERVER_HINTS)
  for (const token of options.tokens ?? [])
    if (typeof token === 'object') checkNames(token, TOKEN_NAMES, 'A token of tokens')
  const { port = 8080, httpPort, tlsPort, tls, tlsMinVersion: minVersion, tlsCiphers: ciphers } = options
  for (const [option, number = 0] of Object.entries({ port, httpPort, tlsPort }))
    if (number !== 0 && !isValidPort(number)) throw noPort(`${option} ${number}`, 0)
  checkTogether(options, port)
  const tlsTerms = { ...(minVersion && { minVersion }), ...(ciphers !== undefined && { ciphers }) }
  const limits = boundsOf(checkLimits(options.limits ?? {}), fixed)
  const domains = checkDomains(options.domains ?? ['localhost'])
  const policy = new Policy(options.tokens ?? [], options.tokenReader)
  return {
    port,
    inherited: options.inherited ?? [],
    hostname: options.host ?? DEFAULT_HOST,
    domains,
    domainsByLength: domains.toSorted((one, other) => other.length - one.length),
    branding: options.branding && checkBranding(options.branding),
    isTls: (tls ?? options.certificates) !== undefined,
    tlsTerms,
    certificates: options.certificates,
    tls: tls && { cert: tls.cert, key: tls.key, ...tlsTerms },
    challenges: options.challenges,
    clientCa: options.clientCa,
    http2: options.http2 !== false,
    http3: options.http3 === true,
    httpPort,
    hstsLine: hstsLine(options.hsts ?? 0),
    publicUrl: checkPublicUrl(options.publicUrl),
    basePath: checkBasePath(options.basePath ?? ''),
    policy,
    openFault: areLocal => (policy.isOpen ? openServerFault(options, areLocal) : undefined),
    ports: {
      tcp: new PortRanges(options.tcpPorts ?? DEFAULT_PORTS, 'tcpPorts'),
      udp: new PortRanges(options.udpPorts ?? DEFAULT_PORTS, 'udpPorts'),
    },
    tlsPort,
    hasTlsPort: tlsPort !== undefined,
    sharesTlsPort: tlsPort === port && port !== 0,
    reservedNames: new Set(options.reservedNames?.map(name => name.toLowerCase())),
    trusted: trustedList(options.trustedProxies ?? []),
    reportRate: whole('reportRate', options.reportRate ?? 0, 0),
    acceptsProxyProtocol: options.acceptProxyProtocol === true,
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

/** Checks options that depend on each other. Throws for the first wrong one. */
function checkTogether(options: TunnelServerOptions, port: number): void {
  const { tls, certificates, clientCa, httpPort, tlsPort, tlsMinVersion, tlsCiphers, http2, http3 } = options
  const { acceptProxyProtocol, trustedProxies = [], inherited = [] } = options
  const isFlag = (value: unknown) => value === undefined || typeof value === 'boolean'
  const notDescriptor = inherited.find(one => !(Number.isInteger(one) && one >= 0))
  const isPlain = (tls ?? certificates) === undefined
  const faults: readonly (readonly [isWrong: boolean, text: string])[] = [
    [notDescriptor !== undefined, `inherited: ${notDescriptor} is not a file descriptor.`],
    [
      tlsMinVersion !== undefined && tlsMinVersion !== '1.2' && tlsMinVersion !== '1.3',
      `tlsMinVersion "${String(tlsMinVersion)}" is neither 1.2 nor 1.3.`,
    ],
    [
      isPlain && (tlsMinVersion ?? tlsCiphers) !== undefined,
      'tlsMinVersion and tlsCiphers need tls or certificates: there is no TLS without them.',
    ],
    [
      tls !== undefined && certificates !== undefined,
      'tls and certificates do not go together: leave one of them out.',
    ],
    [isPlain && clientCa !== undefined, 'clientCa needs tls or certificates: clients show theirs in TLS.'],
    [
      clientCa?.includes('-----BEGIN CERTIFICATE-----') === false,
      'clientCa holds no certificate in PEM format.',
    ],
    [!isFlag(http2), `http2 must be true or false, not ${String(http2)}.`],
    [!isFlag(http3), `http3 must be true or false, not ${String(http3)}.`],
    [http3 === true && isPlain, 'http3 needs tls or certificates: there is no HTTP/3 without TLS.'],
    [
      http3 === true && acceptProxyProtocol === true,
      'http3 and acceptProxyProtocol do not go together: a PROXY header cannot name visitors who come by UDP.',
    ],
    [isPlain && httpPort !== undefined, 'httpPort needs tls or certificates: it sends visitors to https.'],
    [httpPort === port && port !== 0, `httpPort and port are both ${port}: give them different ones.`],
    [
      isPlain && tlsPort === port && port !== 0,
      'tlsPort and port are the same: that needs tls, for the others.',
    ],
    [
      acceptProxyProtocol === true && trustedProxies.length === 0,
      'acceptProxyProtocol needs trustedProxies: who may send the header.',
    ],
  ]
  const fault = faults.find(([isWrong]) => isWrong)
  if (fault !== undefined) throw optionInvalid(fault[1])
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

/**
 * Returns the limits for addresses. By default the loopback has none: a proxy, a load test or the app itself may be behind it.
 */
function addressBounds(limits: ServerLimits, wished: TunnelServerOptions['limits']): AddressBounds {
  const { maxAddressVisitors, maxAddressRate } = limits
  return {
    maxOpen: maxAddressVisitors,
    maxPerSecond: maxAddressRate,
    includesLoopback: wished?.maxAddressVisitors !== undefined || wished?.maxAddressRate !== undefined,
  }
}

function trustedList(ranges: readonly string[]): Networks | undefined {
  if (ranges.length === 0) return undefined
  const list = new Networks()
  for (const range of ranges)
    if (!list.add(range)) throw optionInvalid(`"${range}" is not an address or a CIDR range.`)
  return list
}

/** The largest max-age. RFC 6797 section 6.1 has delta-seconds, of which browsers accept any. */
const MAX_HSTS_SECONDS = 10_000_000_000

function hstsLine(seconds: number): Uint8Array | undefined {
  if (!(Number.isInteger(seconds) && seconds >= 0 && seconds <= MAX_HSTS_SECONDS))
    throw optionInvalid(`hsts must be a number of seconds, not ${seconds}.`)
  return seconds === 0 ? undefined : Buffer.from(`Strict-Transport-Security: max-age=${seconds}\r\n`)
}

function checkDomains(domains: readonly string[]): readonly string[] {
  if (domains.length === 0) throw optionInvalid('A server needs at least one domain.')
  return domains.map(domain => {
    const lower = domain.toLowerCase().replace(/\.$/, '')
    if (lower.split('.').every(isValidSubdomain)) return lower
    throw optionInvalid(`"${domain}" is not a domain name${domainHint(domain)}.`)
  })
}

/** The longest time of a timer in JavaScript; with a longer one it would fire at once. */
export const MAX_TIMER_MS = 2_147_483_647
function checkLimits(wished: Partial<ServerLimits>): ServerLimits {
  checkNames(wished, DEFAULT_LIMITS, 'limits')
  for (const [name, value] of Object.entries(wished)) {
    if (value === undefined) continue
    const least = NEVER_ZERO.has(name) ? 1 : 0
    const most = name.endsWith('Ms') ? MAX_TIMER_MS : Number.MAX_SAFE_INTEGER
    if (!(value >= least && value <= most)) {
      throw optionInvalid(`limits.${name} must be from ${least} to ${most}, not ${value}.`)
    }
  }
  const given = Object.entries(wished).filter(([, value]) => value !== undefined)
  const limits: ServerLimits = { ...DEFAULT_LIMITS, ...Object.fromEntries(given) }
  if (limits.deadAfterMs <= limits.pingIntervalMs) {
    throw optionInvalid('limits.deadAfterMs must be more than limits.pingIntervalMs.')
  }
  return limits
}

function checkBasePath(given: string): string {
  const path = given.replace(/\/+$/, '')
  if (path === '' || (isRoutePath(path) && URL.parse(path, 'http://localhost')?.pathname === path))
    return path
  throw optionInvalid(`basePath "${given}" is not a path such as /tunnel.`)
}

function checkPublicUrl(publicUrl: string | undefined): URL | undefined {
  if (publicUrl === undefined) return undefined
  if (URL.canParse(publicUrl) && /^https?:$/.test(new URL(publicUrl).protocol)) return new URL(publicUrl)
  throw optionInvalid(`publicUrl "${publicUrl}" is not an http:// or https:// URL.`)
}
