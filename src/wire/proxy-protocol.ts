// Writes PROXY headers, versions 1 and 2, which give the visitor's address before its first byte.
//
//   version 1   PROXY TCP4 203.0.113.7 192.0.2.1 56324 443\r\n        PROXY UNKNOWN…\r\n
//
//   version 2   ┌─ 12 ───────┬─ 1 ─────────┬─ 1 ──────────────┬─ 2 ────┬─ 12, 36 or 216 ────────┬ …  ┐
//               │ signature  │ 2, command  │ family, protocol │ length │ addresses, then ports  │TLVs│
//               └────────────┴─────────────┴──────────────────┴────────┴────────────────────────┴────┘
//
// Facts from doc/proxy-protocol.txt of HAProxy. `parts/proxy-protocol/` reads headers.

import { optionInvalid } from '../errors.ts'
import { formatIp, parseIp, widen } from './ip-address.ts'

/** One end of a connection. */
export interface Endpoint {
  /** The address as `formatIp` writes it: one text for each address, IPv4 even if IPv6 carried it. */
  readonly address: string
  readonly port: number
}

/** The visitor's connection, as the proxy in front saw it. */
export interface ProxiedRoute {
  readonly transport: 'tcp' | 'udp'
  readonly source: Endpoint
  readonly destination: Endpoint
}

/** The first bytes of version 2. */
export const V2_START: Uint8Array = Uint8Array.of(
  0x0d,
  0x0a,
  0x0d,
  0x0a,
  0x00,
  0x0d,
  0x0a,
  0x51,
  0x55,
  0x49,
  0x54,
  0x0a,
)
/** The version and command byte of the proxy's own connection; PROXY is that of a visitor's. */
export const LOCAL = 0x20
export const PROXY = 0x21

/**
 * Returns the line of version 1. It is UNKNOWN without a route, for UDP, which version 1 does not have, and if an end
 * has no IP address (a unix socket). Addresses of two families are written as IPv6. Throws `OPTION_INVALID`.
 */
export function encodeProxyV1(route: ProxiedRoute | undefined): Uint8Array {
  const ends = route === undefined || route.transport === 'udp' ? undefined : endsOf(route)
  if (ends === undefined) return new TextEncoder().encode('PROXY UNKNOWN\r\n')
  const { source, destination, size, ports } = ends
  const family = size === 4 ? 'TCP4' : 'TCP6'
  const text = size === 4 ? formatIp : formatAsIpv6
  return new TextEncoder().encode(
    `PROXY ${family} ${text(source)} ${text(destination)} ${ports[0]} ${ports[1]}\r\n`,
  )
}

/**
 * Returns a version 2 header without TLVs. Without a route it is LOCAL: the proxy's own connection. If an end has no
 * IP address, the family is unspecified. Throws `OPTION_INVALID`.
 */
export function encodeProxyV2(route: ProxiedRoute | undefined): Uint8Array {
  if (route === undefined) return Uint8Array.of(...V2_START, LOCAL, 0, 0, 0)
  const ends = endsOf(route)
  if (ends === undefined) return Uint8Array.of(...V2_START, PROXY, 0, 0, 0)
  const { source, destination, size, ports } = ends
  const family = (size === 4 ? 0x10 : 0x20) | (route.transport === 'tcp' ? 1 : 2)
  const portBytes = ports.flatMap(port => [port >> 8, port & 0xff])
  return Uint8Array.of(...V2_START, PROXY, family, 0, 2 * size + 4, ...source, ...destination, ...portBytes)
}

/** Returns both addresses in a size that fits both. */
function endsOf({ source, destination }: ProxiedRoute) {
  const ports: [number, number] = [source.port, destination.port]
  for (const port of ports) {
    if (!Number.isInteger(port) || port < 0 || port > 65_535) {
      throw optionInvalid(`${port} cannot stand in a PROXY header.`)
    }
  }
  const from = parseIp(source.address)
  const to = parseIp(destination.address)
  if (from === undefined || to === undefined) return undefined
  if (from.length === to.length) return { source: from, destination: to, size: from.length, ports }
  return { source: widen(from), destination: widen(to), size: 16, ports }
}

/** Returns an IPv4 address in the form that every reader of a TCP6 line accepts. */
function formatAsIpv6(bytes: Uint8Array): string {
  const text = formatIp(bytes)
  return text.includes(':') ? text : `::ffff:${text}`
}
