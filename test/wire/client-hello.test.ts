// The name in a TLS hello: real clients' bytes, every slicing, hellos made wrong, mutations, and alerts real clients read.

import { describe, expect, test } from 'bun:test'
import { isIP } from 'node:net'
import { listenBun } from '../../src/sockets/bun.ts'
import {
  ClientHelloReader,
  type HelloVerdict,
  internalErrorAlert,
  MAX_HELLO_BYTES,
  unrecognizedNameAlert,
} from '../../src/wire/client-hello.ts'
import { concat } from '../support/link.ts'
import { testWith } from '../support/needs.ts'
import { countInputs, FUZZ, Random } from '../support/random.ts'
import hellos from '../vectors/client-hellos.json' with { type: 'json' }

const hex = (text: string): Uint8Array => Buffer.from(text.replaceAll(' ', ''), 'hex')
const latin = (text: string): Uint8Array => Buffer.from(text, 'latin1')

/** The verdict on slices, without the reason; those behind a verdict are not given any more. */
function verdictOf(...slices: readonly Uint8Array[]): HelloVerdict {
  const reader = new ClientHelloReader()
  for (const slice of slices) {
    const verdict = reader.receive(slice)
    if (verdict.kind === 'invalid') return { ...verdict, reason: '' }
    if (verdict.kind !== 'more') return verdict
  }
  return { kind: 'more' }
}

const bytewise = (bytes: Uint8Array): Uint8Array[] => Array.from(bytes, byte => Uint8Array.of(byte))
const named = (name: string, ...protocols: string[]): HelloVerdict => ({ kind: 'name', name, protocols })
const NAMELESS: HelloVerdict = { kind: 'nameless', protocols: [] }
const INVALID: HelloVerdict = { kind: 'invalid', reason: '' }

// ── Hellos made by hand ────────────────────────────────────────────────────────────────────────────────────────

/** Bytes behind their length of `lengthBytes` bytes. */
function vector(lengthBytes: number, ...pieces: readonly Uint8Array[]): Uint8Array {
  const content = concat(pieces)
  const length = Uint8Array.from(
    { length: lengthBytes },
    (_, index) => content.length >> (8 * (lengthBytes - 1 - index)),
  )
  return concat([length, content])
}
const extension = (type: number, body: Uint8Array): Uint8Array =>
  concat([Uint8Array.of(type >> 8, type), vector(2, body)])
const entry = (name: string, type = 0): Uint8Array => concat([Uint8Array.of(type), vector(2, latin(name))])
const sni = (...names: readonly string[]): Uint8Array =>
  extension(0, vector(2, ...names.map(name => entry(name))))
const alpn = (...protocols: readonly string[]): Uint8Array =>
  extension(16, vector(2, ...protocols.map(protocol => vector(1, latin(protocol)))))
const FIXED = concat([hex('0303'), new Uint8Array(32).fill(7), hex('00'), hex('0002 1301'), hex('01 00')])

/** The handshake message of these extensions. */
const message = (...extensions: readonly Uint8Array[]): Uint8Array =>
  concat([Uint8Array.of(1), vector(3, FIXED, vector(2, ...extensions))])
const record = (fragment: Uint8Array, type = 22): Uint8Array =>
  concat([Uint8Array.of(type, 3, 1), vector(2, fragment)])
const hello = (...extensions: readonly Uint8Array[]): Uint8Array => record(message(...extensions))
/** In records of `size` bytes each. */
const fragmented = (bytes: Uint8Array, size: number): Uint8Array =>
  concat(
    Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
      record(bytes.subarray(index * size, (index + 1) * size)),
    ),
  )
const bare = (body: Uint8Array): Uint8Array => record(concat([Uint8Array.of(1), vector(3, body)]))

const LONG = `${'a'.repeat(63)}.`.repeat(3) + 'b'.repeat(61)

const MADE: readonly [string, Uint8Array, HelloVerdict][] = [
  [
    'a name and protocols',
    hello(sni('app.tunnel.example'), alpn('h2', 'http/1.1')),
    named('app.tunnel.example', 'h2', 'http/1.1'),
  ],
  ['a hello without extensions', bare(FIXED), NAMELESS],
  ['no extension', hello(), NAMELESS],
  ['upper case', hello(sni('APP.Tunnel.EXAMPLE')), named('app.tunnel.example')],
  ['a dot at the end', hello(sni('app.example.')), named('app.example')],
  ['an underscore, a lone label', hello(sni('_my_app')), named('_my_app')],
  ['the longest name', hello(sni(LONG)), named(LONG)],
  ['an IPv4 address', hello(sni('192.0.2.1'), alpn('h2')), { kind: 'nameless', protocols: ['h2'] }],
  ['an IPv6 address', hello(sni('2001:db8::1')), NAMELESS],
  [
    'unknown extensions',
    hello(extension(0x0a0a, hex('00')), sni('a.b'), extension(65281, hex('00'))),
    named('a.b'),
  ],
  ['records of one byte', fragmented(message(sni('app.example')), 1), named('app.example')],
  ['records of 3 bytes', fragmented(message(sni('app.example')), 3), named('app.example')],
  [
    'a hello of all the bytes there may be',
    fragmented(message(sni('a.b'), extension(21, new Uint8Array(16_316))), 16_384),
    named('a.b'),
  ],
  [
    'a hello of a byte more',
    fragmented(message(sni('a.b'), extension(21, new Uint8Array(16_317))), 16_384),
    INVALID,
  ],
  [
    'more in headers of records than there may be',
    fragmented(message(sni('a.b'), extension(21, new Uint8Array(4_000))), 1),
    INVALID,
  ],
  ['two names', hello(sni('a.example', 'b.example')), INVALID],
  ['the same name twice', hello(sni('a.example', 'a.example')), INVALID],
  ['the extension twice', hello(sni('a.example'), sni('a.example')), INVALID],
  ['no name in the list', hello(sni()), INVALID],
  ['an empty name', hello(sni('')), INVALID],
  ['a dot', hello(sni('.')), INVALID],
  ['two dots', hello(sni('a..b')), INVALID],
  ['two dots at the end', hello(sni('a..')), INVALID],
  ['a name of another type', hello(extension(0, vector(2, entry('a.example', 1)))), INVALID],
  ['a NUL', hello(sni('a.example\0.evil')), INVALID],
  ['a space', hello(sni('a .example')), INVALID],
  ['a slash', hello(sni('a/b')), INVALID],
  ['a port', hello(sni('a.example:443')), INVALID],
  ['a star', hello(sni('*.example')), INVALID],
  ['UTF-8', hello(sni('caf\xc3\xa9.example')), INVALID],
  ['a label with a dash in front', hello(sni('-a.example')), INVALID],
  ['a label of 64', hello(sni('a'.repeat(64))), INVALID],
  ['a name of 254', hello(sni(`${LONG}b`)), INVALID],
  [
    'bytes behind the list of names',
    hello(extension(0, concat([vector(2, entry('a.b')), hex('00')]))),
    INVALID,
  ],
  ['a name longer than its list', hello(extension(0, hex('0006 00 0009 612e62'))), INVALID],
  ['an empty server_name, as servers answer', hello(extension(0, hex(''))), INVALID],
  ['an empty list of protocols', hello(alpn()), INVALID],
  ['an empty protocol', hello(alpn('')), INVALID],
  ['a protocol longer than its list', hello(extension(16, hex('0003 09 6832'))), INVALID],
  ['an extension longer than the rest', bare(concat([FIXED, hex('0006 0000 0010 0000')])), INVALID],
  ['half an extension', bare(concat([FIXED, hex('0003 0000 00')])), INVALID],
  ['bytes behind the extensions', bare(concat([FIXED, hex('0000 00')])), INVALID],
  [
    'a session id of 33 bytes',
    bare(concat([hex('0303'), new Uint8Array(32), vector(1, new Uint8Array(33)), hex('0002 1301 01 00')])),
    INVALID,
  ],
  ['half a cipher', bare(concat([hex('0303'), new Uint8Array(32), hex('00 0003 130113 01 00')])), INVALID],
  ['no cipher', bare(concat([hex('0303'), new Uint8Array(32), hex('00 0000 01 00')])), INVALID],
  ['no compression', bare(concat([hex('0303'), new Uint8Array(32), hex('00 0002 1301 00')])), INVALID],
  ['another major version within', bare(concat([hex('0403'), FIXED.subarray(2)])), INVALID],
  ['an empty hello', bare(new Uint8Array(0)), INVALID],
  ['a ServerHello', record(hex('02 000000')), INVALID],
  ['an empty record', hex('16 0301 0000'), INVALID],
  ['a record of 16,385 bytes', hex('16 0301 4001'), INVALID],
  ['a message of 16 MB', hex('16 0301 0100 01 ffffff'), INVALID],
  ['a second message in the record', record(concat([message(), hex('01')])), INVALID],
  ['an alert within the hello', concat([record(message().subarray(0, 9)), record(hex('0100'), 21)]), INVALID],
  ['another version within the hello', concat([record(message().subarray(0, 9)), hex('16 02')]), INVALID],
  ['a request', latin('GET / HTTP/1.1\r\n\r\n'), { kind: 'foreign' }],
  ['SSH', latin('SSH-2.0-OpenSSH_9.2\r\n'), { kind: 'foreign' }],
  ['SSL 2', hex('802e 0100 02'), { kind: 'foreign' }],
  ['an alert', hex('15 0301 0002 0100'), { kind: 'foreign' }],
  ['a handshake of version 4', hex('16 0400'), { kind: 'foreign' }],
]

describe('ClientHelloReader', () => {
  test.each(hellos.map(({ by, ...rest }) => [by, rest] as const))('reads the hello of %s', (_, vectorOf) => {
    const bytes = hex(vectorOf.hex)
    const whole = verdictOf(bytes)
    if (whole.kind !== 'name' && whole.kind !== 'nameless') throw new Error(whole.kind)
    expect(whole.kind === 'name' ? whole.name : null).toBe(vectorOf.name)
    expect([...whole.protocols]).toEqual(vectorOf.protocols)
    for (let cut = 0; cut <= bytes.length; cut++) {
      expect(verdictOf(bytes.subarray(0, cut), bytes.subarray(cut))).toEqual(whole)
      if (cut < bytes.length) expect(verdictOf(bytes.subarray(0, cut))).toEqual({ kind: 'more' })
    }
    expect(verdictOf(...bytewise(bytes))).toEqual(whole)
    // Other records, the hello the same.
    for (const size of [1, 2, 5, 100, 512, 1_000]) {
      const again = fragmented(bytes.subarray(5), size)
      const expected = again.length > MAX_HELLO_BYTES ? INVALID : whole
      expect(verdictOf(again)).toEqual(expected)
    }
    // Early data follows in records of its own.
    expect(verdictOf(concat([bytes, hex('1703030001ff')]))).toEqual(whole)
  })

  test.each(MADE)('judges %s the same however it is cut', (_, bytes, expected) => {
    expect(verdictOf(bytes)).toEqual(expected)
    expect(verdictOf(...bytewise(bytes))).toEqual(expected)
    for (let seed = 0; seed < 20; seed++) {
      expect(verdictOf(...new Random(seed).slices(bytes, 40))).toEqual(expected)
    }
  })

  test('says no to what is not TLS at the first byte, and to the second', () => {
    expect(verdictOf(latin('G'))).toEqual({ kind: 'foreign' })
    expect(verdictOf(hex('1604'))).toEqual({ kind: 'foreign' })
    expect(verdictOf(hex('1603'))).toEqual({ kind: 'more' })
  })

  test('holds what arrived, not what is announced', () => {
    expect(verdictOf(hex('16 0301 3ffb 01 003ff7'))).toEqual({ kind: 'more' })
    expect(verdictOf(hex('16 0301 0100 01 003ff8'))).toEqual(INVALID)
  })

  test('knows at the header of a record that it goes on behind the hello', () => {
    expect(verdictOf(hex('16 0301 0004 01 000010 16 0301 0010'))).toEqual({ kind: 'more' })
    expect(verdictOf(hex('16 0301 0004 01 000010 16 0301 0011'))).toEqual(INVALID)
  })

  test(
    'judges mutated hellos as a naive reader does, in any slices, and never throws',
    () => {
      const kinds = new Map<string, number>()
      countInputs('client hellos', 10_000 * FUZZ)
      for (let seed = 0; seed < 10_000 * FUZZ; seed++) {
        const random = new Random(seed)
        const from = random.chance(0.5) ? hex(random.pick(hellos).hex) : random.pick(MADE.slice(0, 12))[1]
        const bytes = mutated(random, from)
        const expected = naiveVerdict(Buffer.from(bytes))
        expect({ seed, verdict: verdictOf(bytes) }).toEqual({ seed, verdict: expected })
        expect({ seed, verdict: verdictOf(...random.slices(bytes, 300)) }).toEqual({
          seed,
          verdict: expected,
        })
        kinds.set(expected.kind, (kinds.get(expected.kind) ?? 0) + 1)
      }
      for (const kind of ['more', 'name', 'nameless', 'foreign', 'invalid']) {
        expect([kind, kinds.get(kind) ?? 0]).toEqual([kind, expect.any(Number)])
        expect(kinds.get(kind) ?? 0).toBeGreaterThan(20)
      }
    },
    60_000 * FUZZ,
  )
})

/** Bytes changed, left out or added: anywhere, or in lengths at the beginning. */
function mutated(random: Random, from: Uint8Array): Uint8Array {
  const bytes = [...from]
  for (let count = random.below(4); count > 0; count--) {
    const at = random.below(random.chance(0.3) ? 12 : bytes.length)
    const kind = random.below(6)
    const byte = random.chance(0.5) ? random.below(256) : (bytes[at] ?? 0) + (random.chance(0.5) ? 1 : 255)
    bytes.splice(at, kind === 0 ? 0 : 1, ...(kind === 1 ? [] : [byte & 255]))
  }
  return Uint8Array.from(random.chance(0.1) ? bytes.slice(0, random.below(bytes.length + 1)) : bytes)
}

/** The same rules on the whole bytes: an exception is a hello that is none. */
function naiveVerdict(bytes: Buffer): HelloVerdict {
  if (bytes.length > 0 && bytes[0] !== 22) return { kind: 'foreign' }
  if (bytes.length > 1 && bytes[1] !== 3) return { kind: 'foreign' }
  let messageBytes = Buffer.alloc(0)
  for (let at = 0; ; ) {
    if (bytes.length > at && bytes[at] !== 22) return INVALID
    if (bytes.length > at + 1 && bytes[at + 1] !== 3) return INVALID
    if (bytes.length < at + 5) return { kind: 'more' }
    const length = bytes.readUInt16BE(at + 3)
    if (length === 0 || at + 5 + length > 16_384) return INVALID
    messageBytes = Buffer.concat([messageBytes, bytes.subarray(at + 5, at + 5 + length)])
    const left = Math.max(0, at + 5 + length - bytes.length)
    if (messageBytes.length > 0 && messageBytes[0] !== 1) return INVALID
    if (messageBytes.length >= 4) {
      const missing = 4 + messageBytes.readUIntBE(1, 3) - messageBytes.length
      if (missing < left) return INVALID
      if (Math.min(bytes.length, at + 5 + length) + missing > 16_384) return INVALID
      if (missing === 0 && left === 0) break
    }
    if (left > 0) return { kind: 'more' }
    at += 5 + length
  }
  try {
    return naiveHello(messageBytes.subarray(4))
  } catch {
    return INVALID
  }
}

function naiveHello(body: Buffer): HelloVerdict {
  const taker = (from: Buffer) => {
    let at = 0
    const take = (count: number) => {
      if (at + count > from.length) throw new RangeError('short')
      at += count
      return from.subarray(at - count, at)
    }
    const sized = (bytes: number) => take(take(bytes).readUIntBE(0, bytes))
    return { take, sized, left: () => from.length - at }
  }
  const must = (isSo: boolean) => {
    if (!isSo) throw new RangeError('wrong')
  }
  const fields = taker(body)
  must(fields.take(34)[0] === 3)
  must(fields.sized(1).length <= 32)
  const ciphers = fields.sized(2).length
  must(ciphers >= 2 && ciphers % 2 === 0)
  must(fields.sized(1).length >= 1)
  if (fields.left() === 0) return NAMELESS
  const extensions = taker(fields.sized(2))
  must(fields.left() === 0)
  const byType = new Map<number, Buffer>()
  while (extensions.left() > 0) {
    const type = extensions.take(2).readUInt16BE(0)
    must(!byType.has(type))
    byType.set(type, extensions.sized(2))
  }
  const protocols: string[] = []
  const alpnBody = byType.get(16)
  if (alpnBody !== undefined) {
    const outer = taker(alpnBody)
    const list = taker(outer.sized(2))
    must(outer.left() === 0 && list.left() > 0)
    while (list.left() > 0) protocols.push(list.sized(1).toString('latin1'))
    must(protocols.every(protocol => protocol !== ''))
  }
  const sniBody = byType.get(0)
  if (sniBody === undefined) return { kind: 'nameless', protocols }
  const outer = taker(sniBody)
  const list = taker(outer.sized(2))
  must(outer.left() === 0 && list.take(1)[0] === 0)
  const text = list.sized(2).toString('latin1').toLowerCase()
  must(list.left() === 0)
  if (isIP(text) !== 0 && !text.includes('%')) return { kind: 'nameless', protocols }
  const name = text.replace(/\.$/, '')
  must(/^[a-z0-9_.-]{1,253}$/.test(name))
  must(name.split('.').every(label => /^[^-].{0,62}$/.test(label) && !label.endsWith('-')))
  return { kind: 'name', name, protocols }
}

// ── Alerts, as real clients understand them ────────────────────────────────────────────────────────────────────

/** Answers every hello with the alert and closes. */
function refuseAll(alert: () => Uint8Array) {
  const listening = listenBun({
    hostname: '127.0.0.1',
    accept: socket => ({
      received() {
        socket.write(alert())
        socket.end()
      },
      drained() {},
      ended() {},
      closed() {},
    }),
  })
  return { port: listening.port, [Symbol.dispose]: () => listening.stop(true) }
}

async function said(...command: string[]): Promise<string> {
  const child = Bun.spawn(command, { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  await child.exited
  return out + err
}

describe('alerts', () => {
  test('are the bytes of RFC 8446, a new array each time', () => {
    expect(Buffer.from(unrecognizedNameAlert()).toString('hex')).toBe('15030300020270')
    expect(Buffer.from(internalErrorAlert()).toString('hex')).toBe('15030300020250')
    expect(internalErrorAlert()).not.toBe(internalErrorAlert())
  })

  const clients: readonly [string, (port: number) => string[]][] = [
    ['openssl', port => ['openssl', 's_client', '-connect', `127.0.0.1:${port}`, '-servername', 'a.example']],
    ['openssl', port => ['openssl', 's_client', '-connect', `127.0.0.1:${port}`, '-tls1_2']],
    ['curl', port => ['curl', '-sS', '-k', `https://127.0.0.1:${port}/`]],
    [
      'node',
      port => [
        'node',
        '-e',
        `require('tls').connect({ host: '127.0.0.1', port: ${port} }).on('error', console.error)`,
      ],
    ],
  ]
  for (const [index, [program, command]] of clients.entries()) {
    testWith([program], `${program} (${index}) says what they mean`, async () => {
      using nameless = refuseAll(unrecognizedNameAlert)
      using away = refuseAll(internalErrorAlert)
      expect(await said(...command(nameless.port))).toMatch(/unrecognized name/i)
      expect(await said(...command(away.port))).toMatch(/internal error/i)
    })
  }
})
