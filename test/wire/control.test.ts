// Control messages from strangers: what is well-formed arrives, the rest is told apart and harms nobody.

import { describe, expect, test } from 'bun:test'
import {
  type ClientMessage,
  encodeControl,
  parseClientMessage,
  parseServerMessage,
  type ServerMessage,
} from '../../src/wire/control.ts'
import { MAX_FRAME_BYTES } from '../../src/wire/frame.ts'
import { countInputs, FUZZ, Random } from '../support/random.ts'

const bytesOf = (value: unknown) =>
  new TextEncoder().encode(typeof value === 'string' ? value : JSON.stringify(value))

const clientMessages: readonly ClientMessage[] = [
  { type: 'register', ref: 0, kind: 'http', name: 'app' },
  {
    type: 'register',
    ref: 1,
    kind: 'http',
    name: 'a'.repeat(63),
    resume: 'r'.repeat(128),
    hostHeader: 'localhost:3000',
    wishes: { rewriting: { headers: ['location'] } },
  },
  { type: 'register', ref: 2, kind: 'tcp', port: 20_017, proxyProtocol: 2 },
  { type: 'register', ref: 3, kind: 'http', name: 'app', guard: { allow: ['10.0.0.0/8'], key: 'k' } },
  {
    type: 'register',
    ref: 4,
    kind: 'http',
    name: 'app',
    routes: [{ path: '/a', protocol: 'h2c' }, { path: '/b' }],
  },
  { type: 'guard', tunnel: 3, guard: { deny: ['10.0.0.1'] } },
  { type: 'watch', on: true },
  { type: 'watch', on: true, rate: 30 },
  { type: 'release', tunnel: 3 },
  { type: 'dial', tunnel: 3, count: 16 },
  { type: 'register', ref: 9, kind: 'private', name: `udp:${'a'.repeat(63)}` },
  { type: 'register', ref: 10, kind: 'connect', name: 'tcp:db' },
  { type: 'linked', link: 1 },
  { type: 'linked', link: 0xffff_ffff, trunk: true },
  { type: 'no-trunk' },
  { type: 'no-trunk', retryMs: 0 },
  { type: 'no-trunk', retryMs: 0xffff_ffff },
  { type: 'link-retired', link: 1 },
]

const serverMessages: readonly ServerMessage[] = [
  { type: 'granted', ref: 1, tunnel: 7, name: 'app', url: 'https://app.example', resume: 'secret' },
  {
    type: 'granted',
    ref: 1,
    tunnel: 7,
    name: 'app',
    url: 'https://app.example',
    resume: 'secret',
    features: ['guard', 'routes', 'of-a-newer-server'],
  },
  { type: 'refused', ref: 1, code: 'NAME_TAKEN', message: 'Another client uses this name.' },
  { type: 'revoked', tunnel: 7, code: 'NAME_RESERVED', message: 'The name is reserved by the server.' },
  { type: 'released', tunnel: 7 },
  { type: 'moved', tunnel: 7, url: 'https://app.other.example' },
  { type: 'request', id: 1, tunnel: 7, method: 'GET', path: '/?q=ü' },
  { type: 'request', id: 1, tunnel: 7, method: 'GET', path: '/', visitor: '2001:db8::7', waitedMs: 41.5 },
  { type: 'switched', id: 1, tunnel: 7 },
  { type: 'response', id: 1, tunnel: 7, status: 200, durationMs: 0.5, bytes: 5e9 },
  {
    type: 'response',
    id: 1,
    tunnel: 7,
    status: 502,
    durationMs: 0.5,
    bytes: 0,
    error: 'ORIGIN_INVALID',
    reason: 'line 3 of its head has no colon',
  },
  { type: 'response', id: 1, tunnel: 7, status: 502, durationMs: 1, bytes: 0, error: 'ORIGIN_REFUSED' },
  { type: 'requests', started: 7, requests: 5, errors: 1, bytes: 5e9, inFlight: 2 },
  { type: 'visitor-connected', id: 2, tunnel: 7, remoteAddress: '2001:db8::7', remotePort: 50_123 },
  { type: 'visitor-connected', id: 2, tunnel: 7, remoteAddress: '', remotePort: 0 },
  { type: 'visitor-disconnected', id: 2, tunnel: 7, durationMs: 0.5, bytesIn: 5e9, bytesOut: 0 },
  {
    type: 'visitor-disconnected',
    id: 2,
    tunnel: 7,
    durationMs: 1,
    bytesIn: 0,
    bytesOut: 0,
    error: 'ORIGIN_REFUSED',
  },
  { type: 'link-wanted' },
  { type: 'trunk-wanted' },
  { type: 'lane', stream: 1, link: 0, lane: 0 },
  { type: 'lane', stream: 0xffff_ffff, link: 0xffff_ffff, lane: 0xffff_ffff },
]

describe('control messages', () => {
  for (const message of clientMessages) {
    test(`${JSON.stringify(message).slice(0, 60)} reaches the server as it was`, () => {
      expect(parseClientMessage(encodeControl(message))).toEqual(message)
    })
  }
  for (const message of serverMessages) {
    test(`${JSON.stringify(message).slice(0, 60)} reaches the client as it was`, () => {
      expect(parseServerMessage(encodeControl(message))).toEqual(message)
    })
  }

  test('a guarded tunnel has a kind that a server without guards does not know', () => {
    const json = encodeControl({ type: 'register', ref: 1, kind: 'http', name: 'app', guard: { key: 'k' } })
    expect(JSON.parse(new TextDecoder().decode(json)).kind).toBe('guarded-http')
    // A newer kind, guarded: refused as any that is not known.
    const message = { type: 'register', ref: 1, kind: 'guarded-quic', guard: { key: 'k' } }
    expect(parseClientMessage(bytesOf(message))).toEqual({ ...message, type: 'register', kind: 'unknown' })
  })

  test('a guard without the kind, and the kind without a guard, break the protocol', () => {
    const register = { type: 'register', ref: 1, name: 'app' }
    for (const broken of [
      { ...register, kind: 'http', guard: {} },
      { ...register, kind: 'guarded-http' },
      { ...register, kind: 'guarded-http', guard: [] },
      { ...register, kind: 'guarded-http', guard: 'all' },
      { type: 'guard', tunnel: 1 },
      { type: 'guard', guard: {} },
    ])
      expect(parseClientMessage(bytesOf(broken))).toBeUndefined()
  })

  test('fields that a newer version added are left out', () => {
    const message = { type: 'watch', on: false, since: 3, __proto__x: 1 }
    expect(parseClientMessage(bytesOf(message))).toEqual({ type: 'watch', on: false })
  })

  test('a link that is no trunk is told as before there were any', () => {
    expect(parseClientMessage(bytesOf({ type: 'linked', link: 1, trunk: false }))).toEqual({
      type: 'linked',
      link: 1,
    })
    expect(new TextDecoder().decode(encodeControl({ type: 'linked', link: 1 }))).toBe(
      '{"type":"linked","link":1}',
    )
  })

  test('what one side says of trunks and lanes is unknown to itself', () => {
    for (const type of ['linked', 'link-retired', 'no-trunk'])
      expect(parseServerMessage(bytesOf({ type, link: 1, trunk: true }))).toBe('unknown')
    for (const type of ['trunk-wanted', 'lane'])
      expect(parseClientMessage(bytesOf({ type, stream: 1, link: 1, lane: 1 }))).toBe('unknown')
  })

  test('types of a newer version are told from broken messages', () => {
    for (const type of ['later', '__proto__', 'constructor', 'toString', '']) {
      expect(parseClientMessage(bytesOf({ type }))).toBe('unknown')
      expect(parseServerMessage(bytesOf({ type }))).toBe('unknown')
    }
  })

  const broken: readonly [string, string | Uint8Array][] = [
    ['not JSON', '{type:1}'],
    ['cut JSON', '{"type":"watch","on":tr'],
    ['an array', '[{"type":"watch","on":true}]'],
    ['a number', '5'],
    ['null', 'null'],
    ['a text', '"watch"'],
    ['no type', '{}'],
    ['a type that is no text', '{"type":1}'],
    ['a type inherited from __proto__', '{"__proto__":{"type":"watch","on":true}}'],
    ['a byte order mark', '\ufeff{"type":"watch","on":true}'],
    ['bytes that are not UTF-8', Uint8Array.of(0x22, 0xff, 0xfe, 0x22)],
    ['UTF-8 in more bytes than needed', Uint8Array.of(0x22, 0xc0, 0xaf, 0x22)],
    ['deep nesting', '['.repeat(65_000)],
    ['deep objects', '{"type":'.repeat(8000)],
  ]
  for (const [name, text] of broken) {
    test(`${name} is refused at both ends`, () => {
      const bytes = typeof text === 'string' ? bytesOf(text) : text
      expect(parseClientMessage(bytes)).toBeUndefined()
      expect(parseServerMessage(bytes)).toBeUndefined()
    })
  }

  const register = { type: 'register', ref: 1, kind: 'http', name: 'app' }
  const granted = { type: 'granted', ref: 1, tunnel: 1, name: 'app', url: 'http://app', resume: 's' }
  const connected = { type: 'visitor-connected', id: 1, tunnel: 1, remoteAddress: '192.0.2.7', remotePort: 1 }
  const disconnected = {
    type: 'visitor-disconnected',
    id: 1,
    tunnel: 1,
    durationMs: 1,
    bytesIn: 1,
    bytesOut: 1,
  }
  const lane = { type: 'lane', stream: 1, link: 1, lane: 1 }
  const notNumbers32: readonly [string, unknown][] = [
    ['missing', undefined],
    ['null', null],
    ['negative', -1],
    ['a fraction', 1.5],
    ['above 32 bits', 0x1_0000_0000],
    ['text', '1'],
    ['a list', [1]],
    ['true', true],
  ]
  const wrong: readonly [string, unknown][] = [
    ...['stream', 'link', 'lane'].flatMap(field =>
      notNumbers32.map(([name, value]): [string, unknown] => [
        `a lane whose ${field} is ${name}`,
        { ...lane, [field]: value },
      ]),
    ),
    ...['linked', 'link-retired'].flatMap(type =>
      notNumbers32.map(([name, value]): [string, unknown] => [
        `${type} whose link is ${name}`,
        { type, link: value },
      ]),
    ),
    ['a trunk that is a number', { type: 'linked', link: 1, trunk: 1 }],
    ['a trunk that is text', { type: 'linked', link: 1, trunk: 'true' }],
    ['a trunk that is null', { type: 'linked', link: 1, trunk: null }],
    ['a pause that is text', { type: 'no-trunk', retryMs: '1' }],
    ['a negative pause', { type: 'no-trunk', retryMs: -1 }],
    ['a pause without end', { type: 'no-trunk', retryMs: 0x1_0000_0000 }],
    ['a visitor from an address with an escape', { ...connected, remoteAddress: '\x1b[2J' }],
    ['a visitor without an address', { ...connected, remoteAddress: undefined }],
    ['a visitor from port 65536', { ...connected, remotePort: 65_536 }],
    ['an end of a visitor without a size', { ...disconnected, bytesOut: undefined }],
    ['an end of a visitor with a code that is no text', { ...disconnected, error: 5 }],
    ['a negative ref', { ...register, ref: -1 }],
    ['a fraction as ref', { ...register, ref: 1.5 }],
    ['a ref beyond exact numbers', { ...register, ref: 2 ** 53 }],
    ['a ref as text', { ...register, ref: '1' }],
    ['a kind that is a number', { ...register, kind: 6 }],
    ['a name missing', { ...register, name: undefined }],
    ['a port over 65535', { ...register, port: 65_536 }],
    ['a route with a query', { ...register, routes: [{ path: '/a?b' }] }],
    ['a route that ends with a slash', { ...register, routes: [{ path: '/a/' }] }],
    ['33 routes', { ...register, routes: Array(33).fill({ path: '/a' }) }],
    ['an affinity of no version', { ...register, pool: 'moon' }],
    ['a PROXY protocol of no version', { ...register, proxyProtocol: 3 }],
    ['an empty name', { ...register, name: '' }],
    ['a name over 63', { ...register, name: 'a'.repeat(64) }],
    ['a name that is an object', { ...register, name: { toString: 'app' } }],
    ['a name with an escape', { ...register, name: '\x1b[2J' }],
    ['a resume over 128', { ...register, resume: 'r'.repeat(129) }],
    ['a resume of null', { ...register, resume: null }],
    ['a host header with a line end', { ...register, hostHeader: 'a\r\nX-Evil: 1' }],
    ['a host header with a space', { ...register, hostHeader: 'a b' }],
    ['a host header that is not ASCII', { ...register, hostHeader: 'ä' }],
    ['wishes that are a text', { ...register, wishes: 'http://a' }],
    ['a route that is a list', { ...register, routes: [['/a']] }],
    ['a route whose wishes are a list', { ...register, routes: [{ path: '/a', wishes: [] }] }],
    ['a route whose host header has a space', { ...register, routes: [{ path: '/a', hostHeader: 'a b' }] }],
    ['watch without on', { type: 'watch' }],
    ['watch with a number', { type: 'watch', on: 1 }],
    ['watch with a rate below zero', { type: 'watch', on: true, rate: -1 }],
    ['watch with a rate as text', { type: 'watch', on: true, rate: '30' }],
    ['requests without their number', { type: 'requests', begun: 1, errors: 0, bytes: 0, underWay: 0 }],
    [
      'fewer than no requests',
      { type: 'requests', begun: 1, requests: -1, errors: 0, bytes: 0, underWay: 0 },
    ],
    ['release of a text', { type: 'release', tunnel: '1' }],
    ['dial without a count', { type: 'dial', tunnel: 1 }],
    ['dial of none', { type: 'dial', tunnel: 1, count: 0 }],
    ['dial of more than a server opens at once', { type: 'dial', tunnel: 1, count: 17 }],
    ['register of a private service without a name', { type: 'register', ref: 1, kind: 'private' }],
    ['register of an end without a name', { type: 'register', ref: 1, kind: 'connect' }],
    ['granted with an escape in its url', { ...granted, url: 'http://a\x1b]0;x\x07' }],
    ['granted without resume', { ...granted, resume: undefined }],
    ['refused with a C1 control', { type: 'refused', ref: 1, code: 'FLOOD', message: 'a\u009bb' }],
    ['refused with a code that is no text', { type: 'refused', ref: 1, code: 5, message: 'a' }],
    [
      'revoked with an escape in its message',
      { type: 'revoked', tunnel: 1, code: 'FLOOD', message: '\x1b[2J' },
    ],
    ['moved to an escape', { type: 'moved', tunnel: 1, url: 'http://a\x1b]0;x\x07' }],
    ['released without a number', { type: 'released' }],
    ['moved without a number', { type: 'moved', url: 'http://a' }],
    ['a request without path', { type: 'request', id: 1, tunnel: 1, method: 'GET' }],
    [
      'a response that took no number',
      { type: 'response', id: 1, tunnel: 1, status: 200, durationMs: null, bytes: 0 },
    ],
    [
      'a response of negative size',
      { type: 'response', id: 1, tunnel: 1, status: 200, durationMs: 1, bytes: -1 },
    ],
    [
      'an error that is an object',
      { type: 'response', id: 1, tunnel: 1, status: 1, durationMs: 1, bytes: 1, error: {} },
    ],
  ]
  for (const [name, message] of wrong) {
    test(`${name} is refused`, () => {
      const isForServer = /^(?:register|watch|release$|dial|link|no-trunk)/.test(
        String((message as { type: string }).type),
      ) // by construction
      const parse = isForServer ? parseClientMessage : parseServerMessage
      expect(parse(bytesOf(message))).toBeUndefined()
    })
  }

  test('a code that a newer server added becomes INTERNAL', () => {
    const refused = { type: 'refused', ref: 1, code: 'LATER', message: 'Later.' }
    expect(parseServerMessage(bytesOf(refused))).toEqual({ ...refused, type: 'refused', code: 'INTERNAL' })
    expect(parseServerMessage(bytesOf({ ...refused, code: '__proto__' }))).toMatchObject({ code: 'INTERNAL' })
  })

  test('what a visitor put into its path cannot end a session or reach a terminal', () => {
    const report = { type: 'request', id: 1, tunnel: 1, method: 'M\x07', path: '/\x1b[31m\u009b' } as const
    expect(parseServerMessage(encodeControl(report))).toMatchObject({
      method: 'M\ufffd',
      path: '/\ufffd[31m\ufffd',
    })
  })

  test('a report of the longest method and path fits one frame, whatever JSON makes of them', () => {
    for (const character of ['a', '"', '\x01', 'ü', '😀'.slice(0, 1)]) {
      const long = character.repeat(70_000)
      const bytes = encodeControl({
        type: 'request',
        id: 2 ** 53 - 1,
        tunnel: 2 ** 53 - 1,
        method: long,
        path: long,
      })
      expect(bytes.length).toBeLessThanOrEqual(MAX_FRAME_BYTES)
      expect(parseServerMessage(bytes)).toMatchObject({ type: 'request' })
    }
  })

  test('mutated messages never throw', () => {
    countInputs('control messages', 500 * FUZZ)
    const messages = [...clientMessages, ...serverMessages].map(encodeControl)
    for (let seed = 0; seed < 500 * FUZZ; seed++) {
      const random = new Random(seed)
      const bytes = Uint8Array.from(random.pick(messages))
      for (let edits = 1 + random.below(4); edits > 0; edits--)
        bytes[random.below(bytes.length)] = random.bits()
      parseClientMessage(bytes)
      parseServerMessage(bytes)
    }
  })
})

test('a long message is refused for its depth before it is parsed, whatever its texts contain', () => {
  const message = (x: string) =>
    Buffer.from(`{"type":"none","x":${x},"pad":"${'['.repeat(2_000)}\\"${'{'.repeat(50)}"}`)
  const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)
  expect(parseClientMessage(message(nested(15)))).toBe('unknown')
  expect(parseClientMessage(message(nested(16)))).toBeUndefined()
  expect(parseClientMessage(message(nested(30_000)))).toBeUndefined()
})
