// Micro-benchmarks of the pure functions on the tunnel's way: `bun benchmarks/index.ts utils`.

import {
  calculateBackoff,
  formatUrl,
  generateId,
  generateSubdomain,
  headersToRecord,
  isValidPort,
  isValidSubdomain,
  parseHost,
} from '../../src/names.ts'
import {
  encodeReady,
  encodeRequest,
  encodeResponse,
  parseClientMessage as parseJsonClient,
  parseServerMessage as parseJsonServer,
} from '../../src/parts/json-wire/json.ts'
import { encodeControl, parseClientMessage } from '../../src/wire/control.ts'
import { DATA, FrameDecoder, PING as PING_FRAME } from '../../src/wire/frame.ts'
import { bench, group, inTurn, keep, runSuite } from '../measure/mitata.ts'
import {
  JSON_ANSWER,
  JSON_REQUEST,
  READY_JSON,
  REQUEST,
  REQUEST_BYTES,
  REQUEST_JSON,
  RESPONSE,
  RESPONSE_BYTES,
  RESPONSE_JSON,
  writeFrame,
} from '../messages.ts'

group('ID Generation', () => {
  bench('generateId(8)', () => keep(generateId(8)))
  bench('generateId(16)', () => keep(generateId(16)))
  bench('generateId(32)', () => keep(generateId(32)))
  bench('crypto.randomUUID()', () => keep(crypto.randomUUID()))
  bench('Math.random().toString(36)', () => keep(Math.random().toString(36)))
})

group('Subdomain Generation', () => {
  bench('generateSubdomain() (adjective-noun)', () => keep(generateSubdomain()))
  bench('UUID-based', () => keep(crypto.randomUUID().slice(0, 8)))
  bench('Hex-based', () => {
    const bytes = crypto.getRandomValues(new Uint8Array(4))
    let hex = ''
    for (const byte of bytes) hex += byte.toString(16).padStart(2, '0')
    keep(hex)
  })
})

group('Subdomain Validation', () => {
  const [valid, short, invalid] = [inTurn('swift-fox'), inTurn('x'), inTurn('-x')]
  bench('isValidSubdomain("swift-fox")', () => keep(isValidSubdomain(valid())))
  bench('isValidSubdomain("x") (one character, valid here)', () => keep(isValidSubdomain(short())))
  bench('isValidSubdomain("-x") (invalid)', () => keep(isValidSubdomain(invalid())))
  const pattern = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/
  bench('bare regular expression', () => keep(pattern.test(valid())))
})

group('Port Validation', () => {
  const [valid, invalid] = [inTurn(3000, 8080), inTurn(99_999, 70_000)]
  bench('isValidPort(3000)', () => keep(isValidPort(valid())))
  bench('isValidPort(99999) (invalid)', () => keep(isValidPort(invalid())))
})

group('Host Parsing', () => {
  for (const host of ['localhost', 'example.com:8080', 'sub.domain.example.com']) {
    const next = inTurn(host)
    bench(`parseHost("${host}")`, () => keep(parseHost(next())))
  }
})

group('URL Formatting', () => {
  const next = inTurn(
    { secure: true, subdomain: 'swift-fox', hostname: 'example.com' },
    { secure: true, subdomain: 'calm-otter', hostname: 'tunnel.example' },
  )
  bench('formatUrl()', () => keep(formatUrl(next())))
  bench('Template literal', () => {
    const { secure, subdomain, hostname } = next()
    keep(`${secure ? 'https' : 'http'}://${subdomain}.${hostname}`)
  })
  bench('new URL()', () => {
    const { subdomain, hostname } = next()
    keep(new URL(`https://${subdomain}.${hostname}`).href)
  })
})

group('Backoff Calculation', () => {
  for (const attempt of [1, 5, 10]) {
    const next = inTurn(attempt)
    bench(`Attempt ${attempt}`, () => keep(calculateBackoff(next())))
  }
})

group('Headers Conversion', () => {
  const of = (count: number): Headers =>
    new Headers(Array.from({ length: count }, (_, i): [string, string] => [`x-header-${i}`, `value ${i}`]))
  const [two, ten, thirty] = [of(2), of(10), of(30)]
  bench('headersToRecord() (2 headers)', () => keep(headersToRecord(two)))
  bench('Object.fromEntries() (2 headers)', () => keep(Object.fromEntries(two)))
  bench('headersToRecord() (10 headers)', () => keep(headersToRecord(ten)))
  bench('Object.fromEntries() (10 headers)', () => keep(Object.fromEntries(ten)))
  bench('headersToRecord() (30 headers)', () => keep(headersToRecord(thirty)))
  bench('Object.fromEntries() (30 headers)', () => keep(Object.fromEntries(thirty)))
})

group('JSON Serialization', () => {
  bench('Serialize ready message', () => keep(encodeReady('swift-fox')))
  bench('Serialize request message', () => keep(encodeRequest(JSON_REQUEST)))
  bench('Serialize response message', () => keep(encodeResponse(42, JSON_ANSWER)))
  bench('Parse ready message', () => keep(parseJsonClient(READY_JSON)))
  bench('Parse request message', () => keep(parseJsonServer(REQUEST_JSON)))
  bench('Parse response message', () => keep(parseJsonClient(RESPONSE_JSON)))
})

group('JSON Serialization — without any checks, for scale', () => {
  bench('JSON.stringify(request)', () => keep(JSON.stringify(REQUEST)))
  bench('JSON.stringify(response)', () => keep(JSON.stringify(RESPONSE)))
  bench('JSON.parse(request)', () => keep(JSON.parse(REQUEST_JSON)))
  bench('JSON.parse(response)', () => keep(JSON.parse(RESPONSE_JSON)))
})

group('Frame Encoding (streams wire, the same messages)', () => {
  const buffer = new Uint8Array(4096)
  const register = { type: 'register', ref: 1, kind: 'http', name: 'swift-fox' } as const
  const registered = encodeControl(register)
  bench('Encode register message', () => keep(encodeControl(register)))
  bench('Encode request frame', () => keep(writeFrame(buffer, 0, DATA, 7, REQUEST_BYTES)))
  bench('Encode response frame', () => keep(writeFrame(buffer, 0, DATA, 7, RESPONSE_BYTES)))
  let bytes = 0
  const decoder = new FrameDecoder({
    data: (_, piece) => {
      bytes += piece.length
    },
    frame: () => {
      bytes++
    },
  })
  const decode = (type: number, stream: number, payload: Uint8Array): (() => void) => {
    const frame = new Uint8Array(1024)
    const whole = frame.subarray(0, writeFrame(frame, 0, type, stream, payload))
    return () => keep(decoder.receive(whole) ?? bytes)
  }
  bench('Decode register message', () => keep(parseClientMessage(registered)))
  bench('Decode ping frame', decode(PING_FRAME, 0, new Uint8Array(8)))
  bench('Decode request frame', decode(DATA, 7, REQUEST_BYTES))
  bench('Decode response frame', decode(DATA, 7, RESPONSE_BYTES))
})

group('Base64 Encoding/Decoding', () => {
  for (const [title, size] of [
    ['1 KB', 1024],
    ['64 KB', 65_536],
    ['1 MB', 1_048_576],
  ] as const) {
    const bytes = Buffer.from(crypto.getRandomValues(new Uint8Array(Math.min(size, 65_536))))
    const whole = Buffer.concat(Array.from({ length: size / bytes.length }, () => bytes))
    const text = whole.toString('base64')
    bench(`Encode ${title}`, () => keep(whole.toString('base64')))
    bench(`Decode ${title}`, () => keep(Buffer.from(text, 'base64')))
  }
})

await runSuite('utils', 'Utility Functions', {
  notes: {
    'Subdomain Validation':
      'isValidSubdomain also refuses `xn--` labels, which browsers show as other letters.',
    'URL Formatting':
      'formatUrl also brackets IPv6 addresses and leaves out the port that a scheme has anyway.',
    'JSON Serialization':
      'Our codec checks every field of a message from a stranger, and what it writes; the bare functions do not.',
    'ID Generation':
      'generateId gives unpredictable ids from the system generator; Math.random does not, and guards nothing here.',
  },
})
