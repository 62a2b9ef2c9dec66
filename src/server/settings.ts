// Turns what a server was told into what it works with. Everything is checked here, once.

import { BlockList, isIP } from 'node:net'
import { TunnelError } from '../errors.ts'
import { isLoopback, isValidSubdomain } from '../names.ts'
import type { ServerTls } from '../sockets/bun.ts'
import type { AddressBounds } from './address-book.ts'
import {
  DEFAULT_HOST,
  DEFAULT_LIMITS,
  NEVER_ZERO,
  type ServerLimits,
  type TunnelServerOptions,
} from './options.ts'
import { Policy } from './policy.ts'
import { PortRanges } from './ports.ts'

export interface ServerSettings {
  readonly port: number
  /** Address to listen on. */
  readonly hostname: string
  /** At least one; URLs name the first. */
  readonly domains: readonly string[]
  /** The same, those under another one first. */
  readonly domainsByLength: readonly string[]
  readonly tls: ServerTls | undefined
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
  /** Whose forwarding headers are believed; `undefined`: nobody's. */
  readonly trusted: BlockList | undefined
  /** Connections of trusted addresses begin with a PROXY header. */
  readonly acceptsProxyProtocol: boolean
  readonly limits: ServerLimits
  readonly addressBounds: AddressBounds
}

const DEFAULT_PORTS = '20000-29999'

/** Throws `OPTION_INVALID` or `PORT_INVALID` for what cannot be used. */
export function serverSettings(options: TunnelServerOptions): ServerSettings {
  const { port = 8080 } = options
  checkPort(port)
  const limits = checkLimits(options.limits ?? {})
  const domains = checkDomains(options.domains ?? ['localhost'])
  return {
    port,
    hostname: options.host ?? DEFAULT_HOST,
    domains,
    domainsByLength: domains.toSorted((one, other) => other.length - one.length),
    tls: checkTls(options),
    hstsLine: hstsLine(options.hsts ?? 0),
    publicUrl: checkPublicUrl(options.publicUrl),
    policy: new Policy(options.tokens ?? []),
    ports: {
      tcp: new PortRanges(options.tcpPorts ?? DEFAULT_PORTS, 'tcpPorts'),
      udp: new PortRanges(options.udpPorts ?? DEFAULT_PORTS, 'udpPorts'),
    },
    ...checkTlsPort(options, port),
    reservedNames: new Set(options.reservedNames?.map(name => name.toLowerCase())),
    trusted: trustedList(options.trustedProxies ?? []),
    acceptsProxyProtocol: checkProxyProtocol(options, port),
    limits,
    addressBounds: addressBounds(limits, options.limits),
  }
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
export function isOpenServer({ policy, hostname }: ServerSettings): boolean {
  return policy.isOpen && !isLoopback(hostname)
}

function trustedList(ranges: readonly string[]): BlockList | undefined {
  if (ranges.length === 0) return undefined
  const list = new BlockList()
  for (const range of ranges) {
    const [address = '', bits] = range.split('/')
    const family = isIP(address)
    if (family === 0) throw new TunnelError('OPTION_INVALID', `"${range}" is not an address or a CIDR range.`)
    const type = family === 6 ? 'ipv6' : 'ipv4'
    if (bits !== undefined && !(/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 6 ? 128 : 32))) {
      throw new TunnelError('OPTION_INVALID', `"${range}" is not an address or a CIDR range.`)
    }
    if (bits === undefined) list.addAddress(address, type)
    else list.addSubnet(address, Number(bits), type)
  }
  return list
}

function checkProxyProtocol(options: TunnelServerOptions, port: number): boolean {
  const { acceptProxyProtocol, trustedProxies, tls } = options
  if (!acceptProxyProtocol) return false
  if (trustedProxies === undefined || trustedProxies.length === 0) {
    throw new TunnelError(
      'OPTION_INVALID',
      'acceptProxyProtocol needs trustedProxies: who may send the header.',
    )
  }
  if (tls !== undefined && !checkTlsPort(options, port).sharesTlsPort) {
    // The header comes before the first byte of TLS, which Bun reads itself: it would take it for a broken hello.
    throw new TunnelError(
      'OPTION_INVALID',
      'acceptProxyProtocol and tls do not go together: let the proxy do TLS.',
    )
  }
  return true
}

function checkTls({ tls, tlsMinVersion, tlsCiphers }: TunnelServerOptions): ServerTls | undefined {
  if (tlsMinVersion !== undefined && tlsMinVersion !== '1.2' && tlsMinVersion !== '1.3')
    throw new TunnelError(
      'OPTION_INVALID',
      `tlsMinVersion "${String(tlsMinVersion)}" is neither 1.2 nor 1.3.`,
    )
  if (tls === undefined && (tlsMinVersion ?? tlsCiphers) !== undefined)
    throw new TunnelError(
      'OPTION_INVALID',
      'tlsMinVersion and tlsCiphers need tls: there is no TLS without it.',
    )
  if (tls === undefined) return undefined
  return {
    cert: tls.cert,
    key: tls.key,
    ...(tlsMinVersion && { minVersion: tlsMinVersion }),
    ...(tlsCiphers !== undefined && { ciphers: tlsCiphers }),
  }
}

/** RFC 6797 section 6.1: delta-seconds, of which browsers take any. */
const MAX_HSTS_SECONDS = 10_000_000_000

function hstsLine(seconds: number): Uint8Array | undefined {
  if (!(Number.isInteger(seconds) && seconds >= 0 && seconds <= MAX_HSTS_SECONDS))
    throw new TunnelError('OPTION_INVALID', `hsts must be a number of seconds, not ${seconds}.`)
  return seconds === 0 ? undefined : Buffer.from(`Strict-Transport-Security: max-age=${seconds}\r\n`)
}

function checkTlsPort({ tlsPort, tls }: TunnelServerOptions, port: number) {
  if (tlsPort !== undefined) checkPort(tlsPort)
  const sharesTlsPort = tlsPort !== undefined && tlsPort === port && port !== 0
  if (sharesTlsPort && tls === undefined)
    throw new TunnelError('OPTION_INVALID', 'tlsPort and port are the same: that needs tls, for the others.')
  return { tlsPort, hasTlsPort: tlsPort !== undefined, sharesTlsPort }
}

function checkPort(port: number): void {
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    throw new TunnelError('PORT_INVALID', `${port} is not a port to listen on.`)
  }
}

function checkDomains(domains: readonly string[]): readonly string[] {
  if (domains.length === 0) throw new TunnelError('OPTION_INVALID', 'A server needs at least one domain.')
  return domains.map(domain => {
    const lower = domain.toLowerCase().replace(/\.$/, '')
    if (lower.split('.').every(isValidSubdomain)) return lower
    throw new TunnelError('OPTION_INVALID', `"${domain}" is not a domain name.`)
  })
}

/** What a timer can wait; more would fire at once. */
const MAX_TIMER_MS = 2_147_483_647
function checkLimits(wished: Partial<ServerLimits>): ServerLimits {
  for (const [name, value] of Object.entries(wished)) {
    if (!Object.hasOwn(DEFAULT_LIMITS, name)) {
      throw new TunnelError('OPTION_INVALID', `There is no limit called "${name}".`)
    }
    if (value === undefined) continue
    const least = NEVER_ZERO.has(name) ? 1 : 0
    const most = name.endsWith('Ms') ? MAX_TIMER_MS : Number.MAX_SAFE_INTEGER
    if (!(value >= least && value <= most)) {
      throw new TunnelError(
        'OPTION_INVALID',
        `limits.${name} must be from ${least} to ${most}, not ${value}.`,
      )
    }
  }
  const given = Object.entries(wished).filter(([, value]) => value !== undefined)
  const limits: ServerLimits = { ...DEFAULT_LIMITS, ...Object.fromEntries(given) }
  if (limits.deadAfterMs <= limits.pingIntervalMs) {
    throw new TunnelError('OPTION_INVALID', 'limits.deadAfterMs must be more than limits.pingIntervalMs.')
  }
  return limits
}

function checkPublicUrl(publicUrl: string | undefined): URL | undefined {
  if (publicUrl === undefined) return undefined
  if (URL.canParse(publicUrl) && /^https?:$/.test(new URL(publicUrl).protocol)) return new URL(publicUrl)
  throw new TunnelError('OPTION_INVALID', `publicUrl "${publicUrl}" is not an http:// or https:// URL.`)
}
