// PROXY headers: the bytes of the specification, every slicing, mutations against a naive reader.

import { describe, expect, test } from 'bun:test'
import { isIP, isIPv4, isIPv6 } from 'node:net'
import {
  crc32c,
  MAX_V1_BYTES,
  MAX_V2_BYTES,
  ProxyHeaderReader,
} from '../../src/parts/proxy-protocol/header.ts'
import { formatIp, parseIp } from '../../src/wire/ip-address.ts'
import { encodeProxyV1, encodeProxyV2, type ProxiedRoute } from '../../src/wire/proxy-protocol.ts'
import { concat } from '../support/link.ts'
import { countInputs, FUZZ, Random } from '../support/random.ts'

const ascii = (text: string): Uint8Array => Buffer.from(text, 'latin1')
const hex = (text: string): Uint8Array => Buffer.from(text.replaceAll(' ', ''), 'hex')
const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('latin1')

/** What a reader makes of the slices, in one line: a header is followed by all the bytes behind it. */
function verdictOf(slices: readonly Uint8Array[]): string {
  const reader = new ProxyHeaderReader()
  for (const [index, slice] of slices.entries()) {
    const verdict = reader.receive(slice)
    if (verdict.kind === 'more') continue
    if (verdict.kind !== 'header') return verdict.kind
    const rest = text(concat([verdict.rest, ...slices.slice(index + 1)]))
    const { version, route, isTls } = verdict.header
    return `${version} ${nameOf(route)}${isTls ? ' tls' : ''} | ${rest}`
  }
  return 'more'
}

function nameOf(route: ProxiedRoute | undefined): string {
  if (route === undefined) return 'nobody'
  const { transport, source, destination } = route
  return `${transport} ${source.address} ${source.port} ${destination.address} ${destination.port}`
}

const bytewise = (bytes: Uint8Array): Uint8Array[] => Array.from(bytes, byte => Uint8Array.of(byte))

// Signature and version of the specification; then command, family, length, addresses, ports.
const V2 = '0d0a0d0a000d0a515549540a'
const HEADERS: readonly [string, Uint8Array, string][] = [
  [
    'the example of the specification',
    ascii('PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\n'),
    '1 tcp 192.168.0.1 56324 192.168.0.11 443',
  ],
  [
    'the longest line of IPv4',
    ascii('PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n'),
    '1 tcp 255.255.255.255 65535 255.255.255.255 65535',
  ],
  [
    'the longest line of IPv6',
    ascii(`PROXY TCP6 ${'ffff:'.repeat(7)}ffff ${'FFFF:'.repeat(7)}FFFF 65535 65535\r\n`),
    `1 tcp ${'ffff:'.repeat(7)}ffff 65535 ${'ffff:'.repeat(7)}ffff 65535`,
  ],
  [
    'IPv6 with zeros left out, port 0',
    ascii('PROXY TCP6 2001:DB8::7 ::1 0 1\r\n'),
    '1 tcp 2001:db8::7 0 ::1 1',
  ],
  [
    'IPv4 in IPv6',
    ascii('PROXY TCP6 ::ffff:10.0.0.1 ::FFFF:0a00:0002 1 2\r\n'),
    '1 tcp 10.0.0.1 1 10.0.0.2 2',
  ],
  ['the short UNKNOWN', ascii('PROXY UNKNOWN\r\n'), '1 nobody'],
  ['UNKNOWN with anything', ascii('PROXY UNKNOWN at all \0 \xff\r\n'), '1 nobody'],
  [
    'the longest line',
    ascii(`PROXY UNKNOWN ${'ffff:'.repeat(7)}ffff ${'ffff:'.repeat(7)}ffff 65535 65535\r\n`),
    '1 nobody',
  ],
  [
    'TCP over IPv4',
    hex(`${V2} 21 11 000c c0a80001 c0a8000b dc04 01bb`),
    '2 tcp 192.168.0.1 56324 192.168.0.11 443',
  ],
  ['UDP over IPv4', hex(`${V2} 21 12 000c 01020304 05060708 0001 ffff`), '2 udp 1.2.3.4 1 5.6.7.8 65535'],
  [
    'TCP over IPv6',
    hex(`${V2} 21 21 0024 20010db8${'00'.repeat(11)}07 ${'00'.repeat(15)}01 0050 1f90`),
    '2 tcp 2001:db8::7 80 ::1 8080',
  ],
  [
    'UDP over IPv6',
    hex(`${V2} 21 22 0024 ${'00'.repeat(10)}ffff0a000001 ${'00'.repeat(16)} 0050 0000`),
    '2 udp 10.0.0.1 80 :: 0',
  ],
  ['LOCAL', hex(`${V2} 20 00 0000`), '2 nobody'],
  ['LOCAL with a family nobody knows and more', hex(`${V2} 20 ff 0003 aabbcc`), '2 nobody'],
  ['an unspecified family with bytes to skip', hex(`${V2} 21 00 0005 0102030405`), '2 nobody'],
  ['a unix stream', hex(`${V2} 21 31 00d8 ${'61'.repeat(216)}`), '2 nobody'],
  ['a unix datagram', hex(`${V2} 21 32 00d8 ${'61'.repeat(216)}`), '2 nobody'],
  [
    'TLVs: an authority, nothing, an unknown one',
    hex(`${V2} 21 11 001a 01020304 05060708 0001 0002 02 0002 6162 04 0000 ee 0003 010203`),
    '2 tcp 1.2.3.4 1 5.6.7.8 2',
  ],
  [
    'a visitor that spoke TLS',
    hex(`${V2} 21 11 001c 01020304 05060708 0001 0002 20 000d 01 00000000 21 0005 544c537631`),
    '2 tcp 1.2.3.4 1 5.6.7.8 2 tls',
  ],
  [
    'a visitor that did not',
    hex(`${V2} 21 11 0014 01020304 05060708 0001 0002 20 0005 00 00000001`),
    '2 tcp 1.2.3.4 1 5.6.7.8 2',
  ],
  ['the longest header', padded(MAX_V2_BYTES), '2 tcp 1.2.3.4 1 5.6.7.8 2'],
]

/** A header of `length` bytes by a TLV of nothing. */
function padded(length: number): Uint8Array {
  const header = new Uint8Array(length)
  header.set(hex(`${V2} 21 11 0000 01020304 05060708 0001 0002 04 0000`))
  new DataView(header.buffer).setUint16(14, length - 16)
  new DataView(header.buffer).setUint16(29, length - 31)
  return header
}

/** With a TLV of the checksum behind it: its own, or another. */
function checksummed(header: Uint8Array, change = 0): Uint8Array {
  const all = concat([header, hex('03 0004 00000000')])
  const view = new DataView(all.buffer)
  view.setUint16(14, all.length - 16)
  view.setUint32(all.length - 4, (crc32c(all) ^ change) >>> 0)
  return all
}
const TCP4 = hex(`${V2} 21 11 000c c0a80001 c0a8000b dc04 01bb`)

const REFUSED: readonly [string, Uint8Array, 'invalid' | 'absent'][] = [
  ['a request', ascii('GET / HTTP/1.1\r\n\r\n'), 'absent'],
  ['a TLS hello', hex('16030100c8010000c4'), 'absent'],
  ['another case', ascii('proxy TCP4 1.2.3.4 1.2.3.4 1 2\r\n'), 'absent'],
  ['no space', ascii('PROXYTCP4 1.2.3.4 1.2.3.4 1 2\r\n'), 'absent'],
  ['a signature with a wrong end', hex('0d0a0d0a000d0a515549540b2100'), 'absent'],
  ['an empty line', ascii('\r\nGET / HTTP/1.1\r\n'), 'absent'],
  ['UDP in version 1', ascii('PROXY UDP4 1.2.3.4 1.2.3.4 1 2\r\n'), 'invalid'],
  ['a protocol in lower case', ascii('PROXY tcp4 1.2.3.4 1.2.3.4 1 2\r\n'), 'invalid'],
  ['two spaces', ascii('PROXY  TCP4 1.2.3.4 1.2.3.4 1 2\r\n'), 'invalid'],
  ['two spaces later', ascii('PROXY TCP4 1.2.3.4 1.2.3.4  1 2\r\n'), 'invalid'],
  ['a space at the end', ascii('PROXY TCP4 1.2.3.4 1.2.3.4 1 2 \r\n'), 'invalid'],
  ['a tab', ascii('PROXY TCP4\t1.2.3.4 1.2.3.4 1 2\r\n'), 'invalid'],
  ['a port too few', ascii('PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n'), 'invalid'],
  ['a word too many', ascii('PROXY TCP4 1.2.3.4 1.2.3.4 1 2 3\r\n'), 'invalid'],
  ['a leading zero in an address', ascii('PROXY TCP4 010.2.3.4 1.2.3.4 1 2\r\n'), 'invalid'],
  ['a leading zero in a port', ascii('PROXY TCP4 1.2.3.4 1.2.3.4 01 2\r\n'), 'invalid'],
  ['a sign', ascii('PROXY TCP4 1.2.3.4 1.2.3.4 +1 2\r\n'), 'invalid'],
  ['port 65536', ascii('PROXY TCP4 1.2.3.4 1.2.3.4 1 65536\r\n'), 'invalid'],
  ['256 in an address', ascii('PROXY TCP4 1.2.3.4 1.2.3.256 1 2\r\n'), 'invalid'],
  ['three numbers', ascii('PROXY TCP4 1.2.3 1.2.3.4 1 2\r\n'), 'invalid'],
  ['a name', ascii('PROXY TCP4 localhost 1.2.3.4 1 2\r\n'), 'invalid'],
  ['IPv6 as TCP4', ascii('PROXY TCP4 ::1 ::1 1 2\r\n'), 'invalid'],
  ['IPv4 as TCP6', ascii('PROXY TCP6 1.2.3.4 1.2.3.4 1 2\r\n'), 'invalid'],
  ['families mixed', ascii('PROXY TCP6 ::1 1.2.3.4 1 2\r\n'), 'invalid'],
  ['a zone', ascii('PROXY TCP6 fe80::1%eth0 ::1 1 2\r\n'), 'invalid'],
  ['brackets', ascii('PROXY TCP6 [::1] ::1 1 2\r\n'), 'invalid'],
  ['LF alone', ascii('PROXY TCP4 1.2.3.4 1.2.3.4 1 2\n'), 'invalid'],
  ['CR alone', ascii('PROXY TCP4 1.2.3.4 1.2.3.4 1 2\rGET'), 'invalid'],
  ['LF within UNKNOWN', ascii('PROXY UNKNOWN \n\r\n'), 'invalid'],
  ['CR within UNKNOWN', ascii('PROXY UNKNOWN \r \r\n'), 'invalid'],
  ['UNKNOWNS', ascii('PROXY UNKNOWNS\r\n'), 'invalid'],
  ['a line of 108 bytes', ascii(`PROXY UNKNOWN ${'x'.repeat(MAX_V1_BYTES - 15)}\r\n`), 'invalid'],
  ['a line without end', ascii(`PROXY UNKNOWN ${'x'.repeat(MAX_V1_BYTES)}`), 'invalid'],
  ['version 1 in binary', hex(`${V2} 11 11 000c`), 'invalid'],
  ['version 3', hex(`${V2} 31 11 000c`), 'invalid'],
  ['a command of no version', hex(`${V2} 22 11 000c`), 'invalid'],
  ['an unknown family', hex(`${V2} 21 41 000c`), 'invalid'],
  ['an unknown protocol', hex(`${V2} 21 13 000c`), 'invalid'],
  ['a stream of no family', hex(`${V2} 21 01 000c`), 'invalid'],
  ['a family of no protocol', hex(`${V2} 21 10 000c`), 'invalid'],
  ['IPv4 in 11 bytes', hex(`${V2} 21 11 000b c0a80001c0a8000bdc0401`), 'invalid'],
  ['IPv6 in the room of IPv4', hex(`${V2} 21 21 000c c0a80001c0a8000bdc0401bb`), 'invalid'],
  ['a length over the bound', hex(`${V2} 21 11 03f1`), 'invalid'],
  ['the longest length, of LOCAL too', hex(`${V2} 20 00 ffff`), 'invalid'],
  ['half a TLV', hex(`${V2} 21 11 000e 01020304 05060708 0001 0002 02 00`), 'invalid'],
  ['a TLV longer than the header', hex(`${V2} 21 11 0010 01020304 05060708 0001 0002 02 0002 61`), 'invalid'],
  ['too little about TLS', hex(`${V2} 21 11 0010 01020304 05060708 0001 0002 20 0001 01`), 'invalid'],
  ['a checksum of two bytes', hex(`${V2} 21 11 0011 01020304 05060708 0001 0002 03 0002 0000`), 'invalid'],
  ['a wrong checksum', checksummed(TCP4, 1), 'invalid'],
  ['two checksums', checksummed(checksummed(TCP4)), 'invalid'],
]

describe('ProxyHeaderReader', () => {
  test.each(HEADERS)('reads %s, cut anywhere or in bytes', (_, bytes, expected) => {
    const all = concat([bytes, ascii('GET /')])
    for (let cut = 0; cut <= all.length; cut++) {
      expect(verdictOf([all.slice(0, cut), all.slice(cut)])).toBe(`${expected} | GET /`)
    }
    expect(verdictOf(bytewise(all))).toBe(`${expected} | GET /`)
    for (let length = 0; length < bytes.length; length++) {
      expect(verdictOf([bytes.slice(0, length)])).toBe('more')
    }
  })

  test.each(REFUSED)('refuses %s, cut anywhere or in bytes', (_, bytes, expected) => {
    for (let cut = 0; cut <= bytes.length; cut++) {
      expect(verdictOf([bytes.slice(0, cut), bytes.slice(cut)])).toBe(expected)
    }
    expect(verdictOf(bytewise(bytes))).toBe(expected)
  })

  test('says no at the first byte that no header has', () => {
    expect(verdictOf([ascii('G')])).toBe('absent')
    expect(verdictOf([hex('16')])).toBe('absent')
    expect(verdictOf([ascii('PROXX')])).toBe('absent')
    expect(verdictOf([hex(`${V2} 20 00 ffff`)])).toBe('invalid')
    expect(verdictOf([ascii(`PROXY UNKNOWN ${'x'.repeat(92)}`)])).toBe('invalid')
  })

  test('takes a header with its checksum, and the megabyte behind it untouched', () => {
    const behind = new Random(1).bytes(1_000_000)
    const verdict = new ProxyHeaderReader().receive(concat([checksummed(TCP4), behind]))
    if (verdict.kind !== 'header') throw new Error(verdict.kind)
    expect(nameOf(verdict.header.route)).toBe('tcp 192.168.0.1 56324 192.168.0.11 443')
    expect(Buffer.compare(verdict.rest, behind)).toBe(0)
  })

  test(
    'reads mutated headers like a naive reader, in any slices, and never throws',
    () => {
      let headers = 0
      countInputs('PROXY headers', 20_000 * FUZZ)
      for (let seed = 0; seed < 20_000 * FUZZ; seed++) {
        const random = new Random(seed)
        const bytes = mutated(random, random.pick(random.chance(0.9) ? HEADERS : REFUSED)[1])
        const expected = naiveVerdict(bytes)
        if (expected.startsWith('1') || expected.startsWith('2')) headers++
        expect(`${seed} ${verdictOf([bytes])}`).toBe(`${seed} ${expected}`)
        const slices = random.slices(bytes, 1 + random.below(40))
        expect(`${seed} ${verdictOf(slices)}`).toBe(`${seed} ${expected}`)
      }
      expect(headers).toBeGreaterThan(2_000)
    },
    60_000 * FUZZ,
  )
})

/** A few bytes changed, left out, doubled or added; most often near the beginning, where the meaning is. */
function mutated(random: Random, from: Uint8Array): Uint8Array {
  const bytes = [...from, ...random.bytes(random.below(4))]
  for (let count = random.below(3); count > 0; count--) {
    const at = random.below(random.chance(0.5) ? Math.min(32, bytes.length) : bytes.length)
    const byte = random.chance(0.5)
      ? random.below(256)
      : random.pick([...ascii(' .:0129afTPU\r\n'), 0, 1, 255])
    const kind = random.below(3)
    bytes.splice(at, kind === 0 ? 0 : 1, ...(kind === 1 ? [] : [byte]))
  }
  return Uint8Array.from(random.chance(0.1) ? bytes.slice(0, random.below(bytes.length + 1)) : bytes)
}

/** The same rules written down without regard to speed or slices. */
function naiveVerdict(bytes: Uint8Array): string {
  const latin = text(bytes)
  const signature = text(hex(V2))
  if (latin.startsWith('PROXY ')) return naiveV1(latin)
  if (latin.startsWith(signature)) return naiveV2(Buffer.from(bytes))
  return 'PROXY '.startsWith(latin) || signature.startsWith(latin) ? 'more' : 'absent'
}

function naiveV1(latin: string): string {
  const line = /^[^\r\n]*\r\n/.exec(latin)?.[0]
  if (line === undefined) {
    const isOpen =
      /^[^\r\n]*\r?$/.test(latin) && latin.length < 107 && (latin.length < 106 || latin.endsWith('\r'))
    return isOpen ? 'more' : 'invalid'
  }
  if (line.length > 107) return 'invalid'
  const rest = latin.slice(line.length)
  if (/^PROXY UNKNOWN(?: [^\r\n]*)?\r\n$/.test(line)) return `1 nobody | ${rest}`
  const [, family, from = '', to = '', fromPort = '', toPort = ''] =
    /^PROXY TCP([46]) ([0-9a-fA-F.:]+) ([0-9a-fA-F.:]+) (0|[1-9]\d{0,4}) (0|[1-9]\d{0,4})\r\n$/.exec(line) ??
    []
  if (isIP(from) !== Number(family) || isIP(to) !== Number(family)) return 'invalid'
  if (Number(fromPort) > 65_535 || Number(toPort) > 65_535) return 'invalid'
  return `1 tcp ${oneName(from)} ${fromPort} ${oneName(to)} ${toPort} | ${rest}`
}

function naiveV2(bytes: Buffer): string {
  if (bytes.length > 12 && bytes[12] !== 0x20 && bytes[12] !== 0x21) return 'invalid'
  const isLocal = bytes[12] === 0x20
  const sizes: Record<number, number> = { 0: 0, 17: 12, 18: 12, 33: 36, 34: 36, 49: 216, 50: 216 }
  if (bytes.length > 13 && !isLocal && sizes[bytes[13]!] === undefined) return 'invalid'
  if (bytes.length < 16) return 'more'
  const end = 16 + bytes.readUInt16BE(14)
  const addresses = 16 + (sizes[bytes[13]!] ?? 0)
  if (end > 1_024 || (!isLocal && end < addresses)) return 'invalid'
  if (bytes.length < end) return 'more'
  const rest = bytes.toString('latin1', end)
  if (isLocal || bytes[13] === 0) return `2 nobody | ${rest}`
  let tls = ''
  let sums = 0
  for (let at = addresses; at < end; ) {
    if (at + 3 > end) return 'invalid'
    const type = bytes[at]
    const value = bytes.subarray(at + 3, Math.min(end, at + 3 + bytes.readUInt16BE(at + 1)))
    if (value.length !== bytes.readUInt16BE(at + 1)) return 'invalid'
    if (type === 0x20 && value.length < 5) return 'invalid'
    if (type === 0x20 && value[0]! % 2 === 1) tls = ' tls'
    // The only sound checksum here is that of no mutation, which has none.
    if (type === 0x03 && (value.length !== 4 || sums++ > 0 || !isSummed(bytes.subarray(0, end), at + 3)))
      return 'invalid'
    at += 3 + value.length
  }
  const family = bytes[13]! >> 4
  if (family === 3) return `2 nobody${tls} | ${rest}`
  const size = family === 1 ? 4 : 16
  const address = (at: number) =>
    oneName(
      size === 4
        ? bytes.subarray(at, at + 4).join('.')
        : (bytes
            .toString('hex', at, at + 16)
            .match(/.{4}/g)
            ?.join(':') ?? ''),
    )
  const ports = 16 + 2 * size
  return `2 ${bytes[13]! % 2 === 1 ? 'tcp' : 'udp'} ${address(16)} ${bytes.readUInt16BE(ports)} ${address(16 + size)} ${bytes.readUInt16BE(ports + 2)}${tls} | ${rest}`
}

/** The checksum bit by bit. */
function isSummed(header: Buffer, at: number): boolean {
  const cleared = Buffer.from(header).fill(0, at, at + 4)
  let sum = 0xffff_ffffn
  for (const byte of cleared) {
    sum ^= BigInt(byte)
    for (let bit = 0; bit < 8; bit++) sum = sum & 1n ? (sum >> 1n) ^ 0x82f6_3b78n : sum >> 1n
  }
  return Number(sum ^ 0xffff_ffffn) === header.readUInt32BE(at)
}

/** An address as URLs write it, IPv4 within IPv6 as IPv4. */
function oneName(address: string): string {
  if (isIPv4(address)) return address
  const name = new URL(`http://[${address}]/`).hostname.slice(1, -1)
  const mapped = /^::ffff:([0-9a-f]+):([0-9a-f]+)$/.exec(name)
  if (mapped === null) return name
  return mapped
    .slice(1)
    .flatMap(group => [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 255])
    .join('.')
}

describe('addresses', () => {
  test('the text of random bytes is read as these bytes, and is what URLs write', () => {
    for (let seed = 0; seed < 5_000 * FUZZ; seed++) {
      const random = new Random(seed)
      const bytes = random.bytes(random.chance(0.2) ? 4 : 16)
      for (let at = 0; at < bytes.length; at += 2) if (random.chance(0.5)) bytes.fill(0, at, at + 2)
      const written = formatIp(bytes)
      // IPv4 within IPv6 is IPv4.
      const isMapped = Buffer.from(bytes.subarray(0, -4)).toString('hex') === `${'0'.repeat(20)}ffff`
      const meant = Buffer.from(isMapped ? bytes.subarray(-4) : bytes)
      expect(Buffer.from(parseIp(written) ?? []).toString('hex')).toBe(meant.toString('hex'))
      expect(written).toBe(oneName(written))
    }
  })

  test('random texts are addresses exactly when node:net says so', () => {
    for (let seed = 0; seed < 50_000 * FUZZ; seed++) {
      const random = new Random(seed)
      let address = random.pick([
        '1.2.3.4',
        '::',
        '::1',
        '1::',
        'fe80::a:b',
        '1:2:3:4:5:6:7:8',
        '::ffff:1.2.3.4',
        '1:2::3:4:5:6:7',
      ])
      for (let count = random.below(4); count > 0; count--) {
        const at = random.below(address.length + 1)
        address =
          address.slice(0, at) +
          random.pick(['', ':', '::', '.', '0', '7', 'a', 'F', 'g', '255', ' ']) +
          address.slice(at + random.below(2))
      }
      const expected = isIPv4(address) ? 4 : isIPv6(address) ? 16 : 0
      expect(`${address} ${parseIp(address)?.length ?? 0}`).toBe(`${address} ${expected}`)
    }
  })

  test('the checksum is that of RFC 3720, appendix B.4', () => {
    expect(crc32c(new Uint8Array(32)).toString(16)).toBe('8a9136aa')
    expect(crc32c(new Uint8Array(32).fill(255)).toString(16)).toBe('62a8ab43')
    expect(crc32c(Uint8Array.from({ length: 32 }, (_, index) => index)).toString(16)).toBe('46dd794e')
  })
})

// ── Writing ────────────────────────────────────────────────────────────────────────────────────────────────────

const route = (
  source: string,
  destination = '192.0.2.1',
  transport: 'tcp' | 'udp' = 'tcp',
): ProxiedRoute => ({
  transport,
  source: { address: source, port: 56_324 },
  destination: { address: destination, port: 443 },
})

describe('encodeProxyV1 and encodeProxyV2', () => {
  test('write the bytes of the specification', () => {
    expect(text(encodeProxyV1(route('192.168.0.1', '192.168.0.11')))).toBe(text(HEADERS[0]![1]))
    expect(text(encodeProxyV2(route('192.168.0.1', '192.168.0.11')))).toBe(text(TCP4))
    expect(text(encodeProxyV1(undefined))).toBe('PROXY UNKNOWN\r\n')
    expect(text(encodeProxyV2(undefined))).toBe(text(hex(`${V2} 20 00 0000`)))
    expect(text(encodeProxyV1(route('2001:DB8:0::7', '::1')))).toBe(
      'PROXY TCP6 2001:db8::7 ::1 56324 443\r\n',
    )
  })

  test('mixed families are written as IPv6', () => {
    expect(text(encodeProxyV1(route('2001:db8::7')))).toBe(
      'PROXY TCP6 2001:db8::7 ::ffff:192.0.2.1 56324 443\r\n',
    )
    expect(verdictOf([encodeProxyV2(route('2001:db8::7'))])).toBe('2 tcp 2001:db8::7 56324 192.0.2.1 443 | ')
  })

  test('what has no address, or no transport in version 1, is unknown', () => {
    expect(text(encodeProxyV1(route('')))).toBe('PROXY UNKNOWN\r\n')
    expect(text(encodeProxyV1(route('1.2.3.4', '5.6.7.8', 'udp')))).toBe('PROXY UNKNOWN\r\n')
    expect(text(encodeProxyV1(route('1.2.3.4 6.6.6.6', '5.6.7.8')))).toBe('PROXY UNKNOWN\r\n')
    expect(text(encodeProxyV2(route('')))).toBe(text(hex(`${V2} 21 00 0000`)))
  })

  test('a port that is none is refused', () => {
    const wrong = { ...route('1.2.3.4'), source: { address: '1.2.3.4', port: 65_536 } }
    expect(() => encodeProxyV1(wrong)).toThrow('65536')
    expect(() => encodeProxyV2(wrong)).toThrow('65536')
  })

  test('what is written is read as the same', () => {
    for (let seed = 0; seed < 2_000 * FUZZ; seed++) {
      const random = new Random(seed)
      const address = () => formatIp(random.bytes(random.chance(0.5) ? 4 : 16))
      const end = () => ({ address: address(), port: random.below(65_536) })
      const tcp = { transport: 'tcp', source: end(), destination: end() } as const
      expect(verdictOf([encodeProxyV1(tcp)])).toBe(`1 ${nameOf(tcp)} | `)
      const any = { ...tcp, transport: random.pick(['tcp', 'udp'] as const) }
      expect(verdictOf([encodeProxyV2(any)])).toBe(`2 ${nameOf(any)} | `)
    }
  })
})
