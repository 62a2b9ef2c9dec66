// Body framing against a naive reading of the whole text, in random pieces, sound and broken.

import { expect, test } from 'bun:test'
import { BodyFramer } from '../../src/http/body.ts'
import { countInputs, FUZZ, Random } from '../support/random.ts'

interface Reading {
  /** Index just past the body; -1 broken; undefined when it goes on. */
  readonly end: number | undefined
  readonly payload: string
}

const TOKEN = "[!#$%&'*+.^_`|~0-9a-z-]"
const QUOTED = '"(?:[\\t\\x20\\x21\\x23-\\x5b\\x5d-\\x7e\\x80-\\xff]|\\\\[\\t\\x20-\\x7e\\x80-\\xff])*"'
const BWS = '[\\t ]*'
const EXTENSION = `${BWS};${BWS}${TOKEN}+(?:${BWS}=${BWS}(?:${TOKEN}+|${QUOTED}))?`
const SIZE_LINE = new RegExp(`^([0-9a-f]{1,16})((?:${EXTENSION})*)\\r\\n`, 'i')

/** RFC 9112 section 7.1 with our limits, written to be read: regular expressions over the whole text. */
function naive(text: string): Reading {
  let payload = ''
  let at = 0
  for (;;) {
    const line = SIZE_LINE.exec(text.slice(at))
    if (line === null) return { end: canBecomeSize(text.slice(at)) ? undefined : -1, payload }
    if ((line[2]?.length ?? 0) > 256 || BigInt(`0x${line[1]}`) > Number.MAX_SAFE_INTEGER)
      return { end: -1, payload }
    at += line[0].length
    const size = Number.parseInt(line[1]!, 16)
    if (size === 0) break
    payload += text.slice(at, at + size)
    at += size
    const behind = text.slice(at, at + 2)
    if (!'\r\n'.startsWith(behind)) return { end: -1, payload }
    if (behind.length < 2) return { end: undefined, payload }
    at += 2
  }
  const section = /^(?:[!#$%&'*+.^_`|~0-9a-z-]+:[\t\x20-\x7e\x80-\xff]*\r\n)*\r\n/i.exec(text.slice(at))
  if (section === null) return { end: canBecomeTrailers(text.slice(at)) ? undefined : -1, payload }
  const names = section[0].split('\r\n').map(line => line.split(':')[0]!.toLowerCase())
  const isForbidden = names.some(
    name => FORBIDDEN.has(name.replaceAll('_', '-')) || /^x[-_]forwarded[-_]./.test(name),
  )
  const isTooMuch = names.length - 2 > 64 || section[0].length > 8192
  return { end: isForbidden || isTooMuch ? -1 : at + section[0].length, payload }
}

const FORBIDDEN = new Set(
  (
    'host content-length transfer-encoding connection upgrade expect origin te keep-alive proxy-connection ' +
    'proxy-authorization forwarded x-real-ip true-client-ip cf-connecting-ip fastly-client-ip x-client-ip ' +
    'x-cluster-client-ip'
  ).split(' '),
)

/** Whether a size line may still come of it: some way to go on makes it one. */
function canBecomeSize(text: string): boolean {
  if (BigInt(`0x0${/^[0-9a-f]{0,17}/i.exec(text)![0]}`) > Number.MAX_SAFE_INTEGER) return false
  if ((/[; \t].*$/s.exec(text)?.[0].replace(/\r$/, '').length ?? 0) > 256) return false
  return ['', '0', 'x', '"', 'x"', ';x', '=x', '\n'].some(
    more => SIZE_LINE.test(`${text}${more}\r\n`) || SIZE_LINE.test(text + more),
  )
}

function canBecomeTrailers(text: string): boolean {
  if (text.length > 8192) return false
  const lines = text.split('\r\n')
  const last = lines.pop()!
  const whole = new RegExp(`^${TOKEN}+:[\\t\\x20-\\x7e\\x80-\\xff]*$`, 'i')
  const names = [...lines, ...(last.includes(':') ? [last] : [])].map(line =>
    line.split(':')[0]!.toLowerCase(),
  )
  if (names.some(name => FORBIDDEN.has(name.replaceAll('_', '-')) || /^x[-_]forwarded[-_]./.test(name)))
    return false
  if (lines.length + (last === '' || last === '\r' ? 0 : 1) > 64) return false
  return (
    lines.every(line => whole.test(line)) &&
    new RegExp(`^(\\r|${TOKEN}+|${TOKEN}+:[\\t\\x20-\\x7e\\x80-\\xff]*\\r?)?$`, 'i').test(last)
  )
}

/** What the framer makes of the text in pieces. */
function framed(pieces: readonly Uint8Array[], framer = new BodyFramer()): { end: number | undefined } {
  framer.begin('chunked', 0)
  let at = 0
  for (const piece of pieces) {
    const end = framer.feed(piece, 0, piece.length)
    if (end < 0) return { end: -1 }
    at += end
    if (framer.complete) return { end: at }
    expect(end).toBe(piece.length)
  }
  return { end: undefined }
}

function randomBody(random: Random): string {
  const chunks = Array.from({ length: random.below(5) }, () => {
    const data = String.fromCharCode(...random.bytes(1 + random.below(random.chance(0.1) ? 400 : 20)))
    const size = data.length.toString(16)
    const digits = random.chance(0.2) ? size.toUpperCase().padStart(1 + random.below(18), '0') : size
    const long = 'x'.repeat(random.below(random.chance(0.1) ? 300 : 5))
    const extension = random.chance(0.2)
      ? random.pick([
          `;${long}`,
          `;a=${long}`,
          `;a="${long}"`,
          `;a;b=c;${long}`,
          ';a ="b"',
          ` ;\t${long} = "\\"\\\\;${long}" ; b`,
          `${' '.repeat(long.length)};a="\\${long}\xe9"`,
        ])
      : ''
    return `${digits}${extension}\r\n${data}\r\n`
  })
  const trailers = Array.from(
    { length: random.chance(0.3) ? random.below(random.chance(0.1) ? 70 : 4) : 0 },
    () =>
      random.pick([
        'X: y\r\n',
        'x-sum:\r\n',
        'Host: a\r\n',
        'content_length: 1\r\n',
        'X-Forwarded-: 1\r\n',
        'Y: \xff\t\r\n',
      ]),
  )
  return `${chunks.join('')}0\r\n${trailers.join('')}\r\n${random.pick(['', 'GET / HTTP/1.1', '\r\n'])}`
}

const STRANGE = [
  '\r',
  '\n',
  '\r\n',
  '\0',
  ' ',
  '\t',
  ';',
  '=',
  '"',
  '\\',
  ':',
  '0',
  '5',
  'f',
  'g',
  'x',
  '-',
  '+',
  '_',
  '\x7f',
  '\xff',
  '0\r\n\r\n',
]

function mutated(text: string, random: Random): string {
  let result = text
  for (let times = random.below(3); times > 0; times--) {
    const at = random.below(result.length + 1)
    const removed = random.chance(0.5) ? random.below(4) : 0
    result =
      result.slice(0, at) + (random.chance(0.7) ? random.pick(STRANGE) : '') + result.slice(at + removed)
  }
  return random.chance(0.2) ? result.slice(0, random.below(result.length + 1)) : result
}

test('chunked bodies end where a naive reading says, however they are cut', () => {
  countInputs('chunked bodies', 4000 * FUZZ)
  for (let seed = 1; seed <= 4000 * FUZZ; seed++) {
    const random = new Random(seed)
    const text = mutated(randomBody(random), random)
    const bytes = Buffer.from(text, 'latin1')
    const expected = naive(text)
    let payload = ''
    const framer = new BodyFramer((piece, start, end) => {
      payload += Buffer.from(piece.subarray(start, end)).toString('latin1')
    })
    const pieces = random.slices(new Uint8Array(bytes), 40)
    const found = framed(pieces, framer)
    if (found.end !== expected.end || (found.end !== -1 && payload !== expected.payload))
      throw new Error(`seed ${seed}: ${JSON.stringify({ text, found, expected, payload })}`)
    if (found.end !== -1) expect(framer.payloadBytes).toBe(expected.payload.length)
  }
})

test('a length counts, and stops', () => {
  const framer = new BodyFramer()
  framer.begin('length', 5)
  const bytes = new Uint8Array(10)
  expect(framer.feed(bytes, 2, 4)).toBe(4)
  expect(framer.complete).toBeFalse()
  expect(framer.ended()).toBeFalse()
  expect(framer.feed(bytes, 4, 10)).toBe(7)
  expect([framer.complete, framer.payloadBytes]).toEqual([true, 5])
  expect(framer.feed(bytes, 7, 10)).toBe(7)
})

test('no body is complete before it begins', () => {
  const framer = new BodyFramer()
  for (const kind of ['none', 'length'] as const) {
    framer.begin(kind, 0)
    expect(framer.complete).toBeTrue()
    expect(framer.feed(new Uint8Array(3), 1, 3)).toBe(1)
  }
})

test('a body without framing ends with the connection, and any other does not', () => {
  const framer = new BodyFramer()
  framer.begin('close', 0)
  expect(framer.feed(new Uint8Array(3), 0, 3)).toBe(3)
  expect(framer.complete).toBeFalse()
  expect(framer.ended()).toBeTrue()
  framer.begin('chunked', 0)
  framer.feed(Buffer.from('5\r\nhello\r\n0\r\n'), 0, 13)
  expect(framer.ended()).toBeFalse()
})

test('one framer frames one body after another', () => {
  const framer = new BodyFramer()
  for (let round = 0; round < 3; round++) {
    expect(framed([Buffer.from('3;x\r\nabc\r\n0\r\nX: y\r\n\r\n')], framer)).toEqual({ end: 21 })
    expect(framed([Buffer.from('zz')], framer)).toEqual({ end: -1 })
    framer.begin('length', 4)
    expect(framer.feed(new Uint8Array(9), 0, 9)).toBe(4)
  }
})

test('small chunks are handed out together, large ones where they lie', () => {
  const pieces: { text: string; isOwn: boolean }[] = []
  const large = 'y'.repeat(5_000)
  const bytes = Buffer.from(
    `1\r\na\r\n2\r\nbc\r\n${large.length.toString(16)}\r\n${large}\r\n3\r\ndef\r\n0\r\n\r\n`,
  )
  const framer = new BodyFramer((from, start, end) =>
    pieces.push({ text: Buffer.from(from).toString('latin1', start, end), isOwn: from !== bytes }),
  )
  framer.begin('chunked', 0)
  expect(framer.feed(bytes, 0, bytes.length)).toBe(bytes.length)
  expect(pieces).toEqual([
    { text: 'abc', isOwn: true },
    { text: large, isOwn: false },
    { text: 'def', isOwn: false },
  ])
  const many = Buffer.from(`${'1\r\nx\r\n'.repeat(40_000)}0\r\n\r\n`)
  pieces.length = 0
  framer.begin('chunked', 0)
  framer.feed(many, 0, many.length)
  expect(pieces.length).toBeLessThan(5)
  expect(pieces.map(({ text }) => text).join('')).toBe('x'.repeat(40_000))
})

test('framing beyond framingLeft waits for another call', () => {
  let payload = ''
  const framer = new BodyFramer(
    (from, start, end) => (payload += Buffer.from(from).toString('latin1', start, end)),
  )
  const bytes = Buffer.from(`${'5\r\nhello\r\n'.repeat(100)}0\r\nX: y\r\n\r\nnext`)
  framer.begin('chunked', 0)
  let at = 0
  let calls = 0
  while (!framer.complete) {
    framer.framingLeft = 7
    const next = framer.feed(bytes, at, bytes.length)
    expect(next).toBeGreaterThan(at)
    at = next
    calls++
  }
  expect(bytes.toString('latin1', at)).toBe('next')
  expect(payload).toBe('hello'.repeat(100))
  expect(calls).toBeGreaterThan(60)
})

test('trailers of ours are refused, as an app that takes trailers for headers would believe them', () => {
  const endOf = (name: string) => {
    const framer = new BodyFramer()
    const bytes = Buffer.from(`0\r\n${name}: root\r\n\r\n`)
    framer.begin('chunked', 0)
    return framer.feed(bytes, 0, bytes.length)
  }
  for (const name of [
    'X-Localtunnels-User',
    'x_localtunnels_user',
    'x.localtunnels.user',
    `x-localtunnels-${'a'.repeat(40)}`,
  ])
    expect([name, endOf(name)]).toEqual([name, -1])
  expect(endOf('X-Local')).toBeGreaterThan(0)
})

test('credentials in trailers are refused: the guards look at those of the head', () => {
  for (const [name, isLetThrough] of [
    ['Authorization', false],
    ['COOKIE', false],
    ['Authorizations', true],
    ['Cookie2', true],
  ] as const) {
    const framer = new BodyFramer()
    const bytes = Buffer.from(`0\r\n${name}: a\r\n\r\n`)
    framer.begin('chunked', 0)
    expect([name, framer.feed(bytes, 0, bytes.length) > 0]).toEqual([name, isLetThrough])
  }
})

test('trailers may be forbidden by name, also long ones, and in the spelling of CGI', () => {
  const long = `x-${'a'.repeat(60)}`
  for (const [name, isLetThrough] of [
    ['X-Env', false],
    ['x_env', false],
    ['X-Env2', true],
    ['X-En', true],
    [long.toUpperCase(), false],
    [`${long.slice(0, -1)}b`, true],
    [`${long}a`, true],
  ] as const) {
    const framer = new BodyFramer(undefined, undefined, ['x-env', long])
    const bytes = Buffer.from(`0\r\n${name}: a\r\n\r\n`)
    framer.begin('chunked', 0)
    expect([name, framer.feed(bytes, 0, bytes.length) > 0]).toEqual([name, isLetThrough])
  }
})

test('payload that was gathered is handed out before the trailers behind it', () => {
  const order: string[] = []
  const framer = new BodyFramer(
    (from, start, end) => order.push(Buffer.from(from).toString('latin1', start, end)),
    (from, start, end) => order.push(Buffer.from(from).toString('latin1', start, end)),
  )
  const bytes = Buffer.from('1\r\na\r\n1\r\nb\r\n0\r\nX: y\r\n\r\n')
  framer.begin('chunked', 0)
  expect(framer.feed(bytes, 0, bytes.length)).toBe(bytes.length)
  expect(order).toEqual(['ab', 'X: y\r\n\r\n'])
})
