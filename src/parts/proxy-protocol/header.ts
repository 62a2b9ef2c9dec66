// Reads the PROXY header; `wire/proxy-protocol.ts` shows its bytes. Nothing in a header proves who wrote it, so the
// reader must trust the address of the connection.

import { formatIp, parseIp } from '../../wire/ip-address.ts'
import { type Endpoint, LOCAL, PROXY, type ProxiedRoute, V2_START } from '../../wire/proxy-protocol.ts'

export interface ProxyHeader {
  readonly version: 1 | 2
  /** The route. `undefined` for the proxy's own connection (LOCAL), or if its ends are unknown or have no IP address. */
  readonly route: ProxiedRoute | undefined
  /** Whether the visitor used TLS with the proxy (version 2, if the proxy reports it). */
  readonly isTls: boolean
}

export type ProxyVerdict =
  /** The bytes so far may be the beginning of a header: wait for more. */
  | { readonly kind: 'more' }
  /** The header, and the bytes after it: a view of the last array. */
  | { readonly kind: 'header'; readonly header: ProxyHeader; readonly rest: Uint8Array }
  /** The bytes are not the beginning of a header. */
  | { readonly kind: 'absent' }
  /** The bytes begin like a header, but are invalid. `reason` is for a log. */
  | { readonly kind: 'invalid'; readonly reason: string }

/** The maximum length of the line with its CRLF: `UNKNOWN` with two full IPv6 addresses. */
export const MAX_V1_BYTES = 107
/**
 * The maximum size of a version 2 header with its TLVs. The specification expects headers to fit in the smallest segment (536
 * bytes), but all fields that HAProxy can add (authority 255, unique id 128, names of ciphers and certificates) need more.
 */
export const MAX_V2_BYTES = 1_024

const V1_START = new TextEncoder().encode('PROXY ')
const V2_FIXED_BYTES = 16

/** The size of the address block, by family and protocol. All other pairs are refused. */
const ADDRESS_BYTES: ReadonlyMap<number, number> = new Map([
  [0x00, 0],
  [0x11, 12],
  [0x12, 12],
  [0x21, 36],
  [0x22, 36],
  [0x31, 216],
  [0x32, 216],
])
const TYPE_CRC32C = 0x03
const TYPE_TLS = 0x20
const HAS_TLS = 0x01

const MORE: ProxyVerdict = { kind: 'more' }
const ABSENT: ProxyVerdict = { kind: 'absent' }
const NOBODY_V1: ProxyHeader = { version: 1, route: undefined, isTls: false }
const NOBODY_V2: ProxyHeader = { version: 2, route: undefined, isTls: false }

const CR = 0x0d
const LF = 0x0a

/** Reads one header, however its bytes were divided. Stores at most `MAX_V2_BYTES`; never throws. */
export class ProxyHeaderReader {
  #held: Uint8Array = new Uint8Array(MAX_V1_BYTES)
  #length = 0

  /** Takes the next bytes. After any verdict but `more`, the reader cannot be used again. */
  receive(bytes: Uint8Array): ProxyVerdict {
    const before = this.#length
    // The stored bytes, with as many of these as a header can have, contain the whole header.
    this.#hold(bytes.subarray(0, MAX_V2_BYTES - before))
    const held = this.#held.subarray(0, this.#length)
    const found = startsAs(held, V1_START) ? readV1(held) : startsAs(held, V2_START) ? readV2(held) : ABSENT
    if (!('end' in found)) return found
    return { kind: 'header', header: found.header, rest: bytes.subarray(found.end - before) }
  }

  #hold(bytes: Uint8Array): void {
    const needed = this.#length + bytes.length
    if (needed > this.#held.length) {
      const larger = new Uint8Array(MAX_V2_BYTES)
      larger.set(this.#held.subarray(0, this.#length))
      this.#held = larger
    }
    this.#held.set(bytes, this.#length)
    this.#length = needed
  }
}

interface Found {
  readonly header: ProxyHeader
  readonly end: number
}

function invalid(reason: string): ProxyVerdict {
  return { kind: 'invalid', reason }
}

/** Whether the bytes, as far as there are any, match `start`. */
function startsAs(bytes: Uint8Array, start: Uint8Array): boolean {
  const length = Math.min(bytes.length, start.length)
  for (let at = 0; at < length; at++) if (bytes[at] !== start[at]) return false
  return true
}

// ── Version 1 ──────────────────────────────────────────────────────────────────────────────────────────────────

function readV1(bytes: Uint8Array): ProxyVerdict | Found {
  const limit = Math.min(bytes.length, MAX_V1_BYTES)
  let at = 0
  while (at < limit && bytes[at] !== CR && bytes[at] !== LF) at++
  // CR or LF alone would end the line for one reader and not for another.
  if ((at < limit && bytes[at] === LF) || (at + 1 < limit && bytes[at + 1] !== LF))
    return invalid('the line has no CRLF at its end')
  if (at + 2 > MAX_V1_BYTES) return invalid(`the line is longer than ${MAX_V1_BYTES} bytes`)
  if (at + 2 > limit) return MORE
  const [, protocol, ...words] = String.fromCharCode(...bytes.subarray(0, at)).split(' ')
  // Text after UNKNOWN must be ignored.
  if (protocol === 'UNKNOWN') return { header: NOBODY_V1, end: at + 2 }
  if (protocol !== 'TCP4' && protocol !== 'TCP6')
    return invalid('the protocol is none of TCP4, TCP6 and UNKNOWN')
  if (words.length !== 4) return invalid('the line has not two addresses and two ports')
  const size = protocol === 'TCP4' ? 4 : 16
  const source = endpoint(words[0]!, words[2]!, size)
  const destination = endpoint(words[1]!, words[3]!, size)
  if (source === undefined || destination === undefined) return invalid('an address or a port is not one')
  return {
    header: { version: 1, route: { transport: 'tcp', source, destination }, isTls: false },
    end: at + 2,
  }
}

function endpoint(addressText: string, portText: string, size: number): Endpoint | undefined {
  const address = parseIp(addressText)
  const port = /^(?:0|[1-9]\d{0,4})$/.test(portText) ? Number(portText) : 65_536
  return address?.length === size && port < 65_536 ? { address: formatIp(address), port } : undefined
}

// ── Version 2 ──────────────────────────────────────────────────────────────────────────────────────────────────

function readV2(bytes: Uint8Array): ProxyVerdict | Found {
  const [command, family] = bytes.subarray(V2_START.length)
  if (command === undefined) return MORE
  if (command !== LOCAL && command !== PROXY)
    return invalid('the command is neither LOCAL nor PROXY of version 2')
  if (family === undefined) return MORE
  const addressBytes = ADDRESS_BYTES.get(family)
  // The receiver ignores everything in LOCAL except the length.
  if (addressBytes === undefined && command === PROXY) return invalid('the family and protocol are unknown')
  if (bytes.length < V2_FIXED_BYTES) return MORE
  const end = V2_FIXED_BYTES + readU16(bytes, 14)
  if (end > MAX_V2_BYTES) return invalid(`the header is longer than ${MAX_V2_BYTES} bytes`)
  const addressEnd = V2_FIXED_BYTES + (addressBytes ?? 0)
  if (command === PROXY && end < addressEnd) return invalid('the header is too short for its addresses')
  if (bytes.length < end) return MORE
  if (command === LOCAL || family === 0) return { header: NOBODY_V2, end }
  const extras = readExtras(bytes.subarray(0, end), addressEnd)
  if (typeof extras === 'string') return invalid(extras)
  // Paths of unix sockets are not addresses of visitors.
  const route = addressEnd - V2_FIXED_BYTES === 216 ? undefined : routeOf(bytes, family!)
  return { header: { version: 2, route, isTls: extras.isTls }, end }
}

function routeOf(bytes: Uint8Array, family: number): ProxiedRoute {
  const size = family >> 4 === 1 ? 4 : 16
  const at = V2_FIXED_BYTES
  const ports = at + 2 * size
  return {
    transport: (family & 0xf) === 1 ? 'tcp' : 'udp',
    source: { address: formatIp(bytes.subarray(at, at + size)), port: readU16(bytes, ports) },
    destination: { address: formatIp(bytes.subarray(at + size, ports)), port: readU16(bytes, ports + 2) },
  }
}

/** Reads the TLVs from `at` to the end. Returns a text with the fault if they are invalid. */
function readExtras(header: Uint8Array, at: number): { isTls: boolean } | string {
  let isTls = false
  while (at < header.length) {
    if (at + 3 > header.length) return 'a TLV is cut off'
    const type = header[at]!
    const value = at + 3
    at = value + readU16(header, at + 1)
    if (at > header.length) return 'a TLV is longer than the header'
    if (type === TYPE_TLS) {
      // A byte of flags, and four about the visitor's certificate.
      if (at - value < 5) return 'the TLV about TLS is too short'
      isTls ||= (header[value]! & HAS_TLS) !== 0
    } else if (type === TYPE_CRC32C) {
      if (at - value !== 4) return 'the checksum is not four bytes'
      const cleared = header.slice()
      cleared.fill(0, value, at)
      if (crc32c(cleared) !== readU16(header, value) * 65_536 + readU16(header, value + 2))
        return 'the checksum is wrong'
    }
  }
  return { isTls }
}

function readU16(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 8) | bytes[at + 1]!
}

/** The polynomial 0x1edc6f41 with its bits reversed. */
const POLYNOMIAL = 0x82f6_3b78

const TABLE: Uint32Array = Uint32Array.from({ length: 256 }, (_, byte) => {
  let rest = byte
  for (let bit = 0; bit < 8; bit++) rest = rest & 1 ? (rest >>> 1) ^ POLYNOMIAL : rest >>> 1
  return rest
})

/** Returns the checksum of all bytes, as an unsigned number of 32 bits. */
export function crc32c(bytes: Uint8Array): number {
  let rest = 0xffff_ffff
  for (const byte of bytes) rest = (rest >>> 8) ^ TABLE[(rest ^ byte) & 0xff]!
  return (rest ^ 0xffff_ffff) >>> 0
}
