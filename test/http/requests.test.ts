// Every request vector, whole, in two pieces cut everywhere, and byte by byte: the verdict never depends on the cuts.

import { describe, expect, test } from 'bun:test'
import { BodyFramer } from '../../src/http/body.ts'
import { type HeadLimits, parseRequestHead, RequestHead } from '../../src/http/head.ts'
import { REQUESTS, type RequestVector } from '../vectors/requests.ts'

const limits: HeadLimits = { maxHeadBytes: 600, maxHeaderCount: 8, maxTargetBytes: 100 }

/** What a receiver makes of a message that arrives in pieces ending at `cuts`. */
function read(input: Uint8Array, cuts: readonly number[]): RequestVector['verdict'] {
  const head = new RequestHead()
  let payload = ''
  const framer = new BodyFramer((bytes, start, end) => {
    payload += Buffer.from(bytes.subarray(start, end)).toString('latin1')
  })
  let headEnd = 0
  let at = 0
  for (const cut of cuts) {
    if (headEnd === 0) {
      // Each time in another array and at another place, as when a caller collects pieces.
      const moved = cut % 7
      const bytes = new Uint8Array(moved + cut)
      bytes.set(input.subarray(0, cut), moved)
      const end = parseRequestHead(head, bytes, moved, bytes.length, limits)
      if (end < 0) return head.refusal
      if (end === 0) continue
      headEnd = at = end - moved
      framer.begin(head.body, head.contentLength)
    }
    if (!framer.complete) at = framer.feed(input.slice(0, cut), at, cut)
    if (at < 0) return 'BODY'
  }
  if (headEnd === 0 || !framer.complete) return 'INCOMPLETE'
  return { body: payload, rest: Buffer.from(input.subarray(at)).toString('latin1'), host: head.host }
}

for (const { name, input, verdict, why } of REQUESTS) {
  test(`${name}: ${why}`, () => {
    const bytes = Buffer.from(input, 'latin1')
    const whole = read(bytes, [bytes.length])
    if (typeof verdict === 'string') expect(whole).toBe(verdict)
    else expect(whole).toMatchObject({ body: '', rest: '', ...verdict })
    for (let cut = 1; cut < bytes.length; cut++) expect(read(bytes, [cut, bytes.length])).toEqual(whole)
    expect(
      read(
        bytes,
        Array.from(bytes, (_, index) => index + 1),
      ),
    ).toEqual(whole)
  })
}

describe('a request head', () => {
  const generous = { maxHeadBytes: 65_536, maxHeaderCount: 200, maxTargetBytes: 16_384 }
  const parse = (text: string, head = new RequestHead()): RequestHead => {
    const bytes = Buffer.from(text, 'latin1')
    expect(parseRequestHead(head, bytes, 0, bytes.length, generous)).toBe(bytes.length)
    return head
  }

  test('says what the request line says', () => {
    const head = parse('PATCH /a/../b%20?c=\xe9 HTTP/1.0\r\nHost: X\r\n\r\n')
    expect([head.method, head.target, head.minorVersion]).toEqual(['PATCH', '/a/../b%20?c=\xe9', 0])
  })

  test('keeps names, values, order and repeats as they were sent', () => {
    const head = parse('GET / HTTP/1.1\r\nhOst: a\r\nX-A:  1 \r\nx-a: \xff\r\nX-B:\r\n\r\n')
    expect(head.headerList()).toEqual([
      ['hOst', 'a'],
      ['X-A', '1'],
      ['x-a', '\xff'],
      ['X-B', ''],
    ])
    expect(head.headerCount).toBe(4)
    expect(head.header('x-a')).toBe('1')
    expect(head.header('x-b')).toBe('')
    expect(head.header('x-c')).toBeUndefined()
  })

  test('keeps alive by version and Connection', () => {
    const alive = (version: string, line: string): boolean =>
      parse(`GET / HTTP/1.${version}\r\nHost: a\r\n${line}\r\n`).keepAlive
    expect(alive('1', '')).toBeTrue()
    expect(alive('1', 'Connection: CLOSE\r\n')).toBeFalse()
    expect(alive('1', 'Connection: x\r\nConnection: keep-alive, close\r\n')).toBeFalse()
    expect(alive('0', '')).toBeFalse()
    expect(alive('0', 'Connection: Keep-Alive\r\n')).toBeTrue()
    expect(alive('0', 'Connection: Keep-Alive, close\r\n')).toBeFalse()
  })

  test('sees an upgrade only when Connection nominates it', () => {
    const upgrade = (lines: string): string => parse(`GET / HTTP/1.1\r\nHost: a\r\n${lines}\r\n\r\n`).upgrade
    expect(upgrade('Connection: keep-alive, Upgrade\r\nUpgrade: WebSocket')).toBe('websocket')
    expect(upgrade('Connection: upgrade\r\nUpgrade: TCP, x\r\nUpgrade: y/1')).toBe('tcp, x, y/1')
    for (const hiding of [
      'h2c',
      'H2C, x',
      'x, h2c',
      'h2',
      'h3',
      'h2c-14',
      'HTTP/2.0',
      'TLS/1.2',
      'tls',
      'websocket, h2c',
    ])
      expect(upgrade(`Connection: upgrade\r\nUpgrade: ${hiding}`)).toBe('')
    expect(upgrade('Connection: upgrade\r\nUpgrade: x\r\nUpgrade:\th2c \t')).toBe('')
    for (const odd of ['a b', 'a/b/c', '\xa0a', 'a,', '/1', '"a"', 'h2c;a'])
      expect(upgrade(`Connection: upgrade\r\nUpgrade: ${odd}`)).toBe('')
    for (const plain of ['h2x', 'httpx', 'SPDY/3.1', 'tcp', 'tlsx'])
      expect(upgrade(`Connection: upgrade\r\nUpgrade: ${plain}`)).toBe(plain.toLowerCase())
    expect(upgrade('Upgrade: websocket')).toBe('')
    expect(upgrade('Connection: upgrade')).toBe('')
    expect(
      parse('GET / HTTP/1.0\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n').upgrade,
    ).toBe('')
  })

  test('sees an expectation', () => {
    expect(parse('PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\n\r\n').expectsContinue).toBeTrue()
    expect(parse('PUT / HTTP/1.0\r\nHost: a\r\nExpect: 100-continue\r\n\r\n').expectsContinue).toBeFalse()
  })

  test('carries nothing over from the request before', () => {
    const head = parse(
      'POST http://a.b/x HTTP/1.0\r\nHost: a.b\r\nContent-Length: 5\r\nConnection: keep-alive, x-y\r\nExpect: 100-continue\r\nUpgrade: x\r\n\r\n',
    )
    parse('GET /second HTTP/1.1\r\nHost: c:1\r\n\r\n', head)
    const fresh = parse('GET /second HTTP/1.1\r\nHost: c:1\r\n\r\n')
    expect(head.clone()).toEqual(fresh.clone())
    expect(head.hostWithPort).toBe('c:1')
  })

  test('that was given up leaves nothing to the next connection', () => {
    const head = new RequestHead()
    const first = Buffer.from('GET /secret HTTP/1.1\r\nHost: a\r\nX-Secret: 1\r\nX-')
    expect(parseRequestHead(head, first, 0, first.length, generous)).toBe(0)
    head.reset()
    parse('GET /second HTTP/1.1\r\nHost: b\r\n\r\n', head)
    expect([head.target, head.host, head.headerCount]).toEqual(['/second', 'b', 1])
  })

  test('outlives its bytes as a clone', () => {
    const bytes = Buffer.from('junkGET /x HTTP/1.1\r\nHost: A:80\r\nConnection: x-y\r\nX-Y: 1\r\n\r\njunk')
    const head = new RequestHead()
    parseRequestHead(head, bytes, 4, bytes.length, generous)
    const copy = head.clone()
    bytes.fill(0)
    expect([copy.target, copy.hostWithPort, copy.host]).toEqual(['/x', 'A:80', 'a'])
    expect(copy.headerList()).toEqual([
      ['Host', 'A:80'],
      ['Connection', 'x-y'],
      ['X-Y', '1'],
    ])
  })

  test('that arrives byte by byte is not read again and again', () => {
    const line = `X: ${'y'.repeat(60_000)}`
    const bytes = Buffer.from(`GET / HTTP/1.1\r\nHost: a\r\n${line}\r\n\r\n`)
    // Reads of bytes are counted, so that the bound holds on any machine.
    let reads = 0
    const counted = new Proxy(bytes, {
      get(target, key) {
        reads++
        const value: unknown = Reflect.get(target, key)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
    const head = new RequestHead()
    // The text of its Host is known then: text is made of real arrays only.
    parseRequestHead(head, bytes, 0, bytes.length, generous)
    let end = 0
    for (let cut = 1; end === 0; cut++) end = parseRequestHead(head, counted, 0, cut, generous)
    expect(end).toBe(bytes.length)
    expect(reads).toBeLessThan(8 * bytes.length)
  })
})
