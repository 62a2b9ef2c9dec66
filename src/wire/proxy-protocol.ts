// Writes the PROXY protocol, versions 1 and 2: who really connected, before the first byte of a visitor.
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

/** An end of a connection. */
export interface Endpoint {
  /** The address as `formatIp` writes it: one text for one address, IPv4 also if IPv6 carried it. */
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
/** Version 2 with a command: the proxy's own connection, or a visitor's. */
export const LOCAL = 0x20
export const PROXY = 0x21

/**
 * The line of version 1. UNKNOWN without a route, for UDP, which version 1 does not have, and when an end has no IP
 * address (a unix socket). Addresses of two families are written as IPv6. Throws `OPTION_INVALID`.
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
 * A version 2 header without TLVs. LOCAL without a route: this is the proxy's own connection. A route with an end that
 * has no IP address is relayed for an unknown family. Throws `OPTION_INVALID`.
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

/** Returns both addresses in the size that holds both. */
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

/** An IPv4 address as every reader of a TCP6 line takes it. */
function formatAsIpv6(bytes: Uint8Array): string {
  const text = formatIp(bytes)
  return text.includes(':') ? text : `::ffff:${text}`
}
