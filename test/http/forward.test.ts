// Heads on their way through: what is dropped, what is added, and that nothing else changes.

import { describe, expect, test } from 'bun:test'
import {
  forwardRequestHead,
  forwardResponseHead,
  type Hop,
  maxForwardedBytes,
} from '../../src/http/forward.ts'
import { parseRequestHead, parseResponseHead, RequestHead, ResponseHead } from '../../src/http/head.ts'
import { Random } from '../support/random.ts'

const limits = { maxHeadBytes: 65_536, maxHeaderCount: 200, maxTargetBytes: 16_384 }
const plain: Hop = { address: '192.0.2.7', proto: 'http', trusted: false, hostHeader: '' }
const latin1 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('latin1')

function parse(text: string): RequestHead {
  const head = new RequestHead()
  const bytes = Buffer.from(`junk${text}junk`, 'latin1')
  expect(parseRequestHead(head, bytes, 4, bytes.length, limits)).toBe(bytes.length - 4)
  return head
}

function forward(text: string, hop: Hop = plain): string {
  const head = parse(text)
  const into = new Uint8Array(maxForwardedBytes(text.length))
  return latin1(into.subarray(0, forwardRequestHead(head, hop, into, 0)))
}

function answer(text: string, options = { close: false, keepAlive10: false }): string {
  const head = new ResponseHead()
  const bytes = Buffer.from(text, 'latin1')
  expect(parseResponseHead(head, bytes, 0, bytes.length, limits, 'GET')).toBe(bytes.length)
  const into = new Uint8Array(maxForwardedBytes(bytes.length))
  return latin1(into.subarray(0, forwardResponseHead(head, options, into, 0)))
}

/** The lines that are added for a visitor at 192.0.2.7 who asked for host a. */
const ADDED =
  'X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Host: a\r\nX-Forwarded-Proto: http\r\n' +
  'Forwarded: for=192.0.2.7;host=a;proto=http\r\n\r\n'

describe('a forwarded request', () => {
  test('keeps every byte of what is end to end', () => {
    const head =
      'gEt-it /%2e/../x?y=\xe9 HTTP/1.0\r\nhOST: a\r\nX-B:  1 \t\r\nx-b:2\r\nCookie: c=\xff; d\r\nExpect: 100-continue\r\n'
    expect(forward(`${head}\r\n`)).toBe(head + ADDED)
  })

  test('keeps its framing', () => {
    const head = 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\nTrailer: x\r\n'
    expect(forward(`${head}\r\n`)).toBe(head + ADDED)
  })

  test('loses what belongs to one connection, and what Connection nominates', () => {
    const sent =
      'GET / HTTP/1.1\r\nHost: a\r\nConnection: close, X-Secret\r\nA: 1\r\nKeep-Alive: timeout=5\r\nx-SECRET: 2\r\n' +
      'Proxy-Connection: keep-alive\r\nProxy-Authorization: Basic x\r\nTE: trailers\r\nUpgrade: websocket\r\nB: 2\r\n\r\n'
    expect(forward(sent)).toBe(`GET / HTTP/1.1\r\nHost: a\r\nA: 1\r\nB: 2\r\n${ADDED}`)
  })

  test('keeps the wish for trailers, which pass through', () => {
    expect(forward('GET / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: TE\r\n\r\n')).toBe(
      `GET / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: TE\r\n${ADDED}`,
    )
    expect(forward('GET / HTTP/1.1\r\nHost: a\r\nTE: gzip\r\nConnection: TE\r\n\r\n')).toBe(
      `GET / HTTP/1.1\r\nHost: a\r\n${ADDED}`,
    )
  })

  test('keeps an upgrade, unless it would hide requests', () => {
    const upgrade = (to: string, connection = 'keep-alive, Upgrade'): string =>
      forward(`GET / HTTP/1.1\r\nHost: a\r\nConnection: ${connection}\r\nUpgrade: ${to}\r\n\r\n`)
    expect(upgrade('WebSocket')).toBe(
      `GET / HTTP/1.1\r\nHost: a\r\nUpgrade: WebSocket\r\nConnection: Upgrade\r\n${ADDED}`,
    )
    expect(upgrade('SPDY/3.1, tcp')).toContain('Upgrade: SPDY/3.1, tcp\r\nConnection: Upgrade\r\n')
    for (const to of ['h2c', 'websocket, h2c', 'TLS/1.0'])
      expect(upgrade(to)).toBe(`GET / HTTP/1.1\r\nHost: a\r\n${ADDED}`)
    expect(upgrade('h2c', 'Upgrade, HTTP2-Settings')).not.toContain('h2c')
  })

  test('loses what only servers of a cluster say to each other', () => {
    for (const name of ['localtunnels-visitor', 'Localtunnels_Visitor', 'localtunnels-moved'])
      expect(forward(`GET / HTTP/1.1\r\nHost: a\r\n${name}: https 1 1.2.3.4\r\n\r\n`)).toBe(
        `GET / HTTP/1.1\r\nHost: a\r\n${ADDED}`,
      )
  })

  test('loses forged forwarding lines, in any spelling', () => {
    const forged =
      'GET / HTTP/1.1\r\nX-Forwarded-For: 6.6.6.6\r\nHost: a\r\nx-forwarded-PROTO: https\r\nX-Forwarded-Host: evil\r\n' +
      'X-Forwarded-Port: 1\r\nX_Forwarded_For: 6.6.6.6\r\nX-Forwarded_Prefix: /\r\nX-Real-IP: 6.6.6.6\r\nX_Real_IP: 6.6.6.6\r\n' +
      'X.Forwarded.For: 6.6.6.6\r\nX.Forwarded!Proto: https\r\nx~real~ip: 6.6.6.6\r\n' +
      'Forwarded: for=6.6.6.6\r\nX-Requested-With: x\r\n\r\n'
    expect(forward(forged)).toBe(`GET / HTTP/1.1\r\nHost: a\r\nX-Requested-With: x\r\n${ADDED}`)
  })

  test('keeps and continues forwarding lines of a trusted proxy', () => {
    const sent =
      'GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 1.1.1.1\r\nX-Forwarded-Proto: https\r\nX-Forwarded-For: 2.2.2.2, 3.3.3.3\r\n' +
      'Forwarded: for=1.1.1.1\r\nX-Real-IP: 1.1.1.1\r\nX-Forwarded-Port: 443\r\nX-Forwarded_For: 6.6.6.6\r\n\r\n'
    expect(forward(sent, { ...plain, trusted: true })).toBe(
      'GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-Proto: https\r\nX-Real-IP: 1.1.1.1\r\nX-Forwarded-Port: 443\r\n' +
        'X-Forwarded-For: 1.1.1.1, 2.2.2.2, 3.3.3.3, 192.0.2.7\r\nX-Forwarded-Host: a\r\n' +
        'Forwarded: for=1.1.1.1, for=192.0.2.7;host=a;proto=http\r\n\r\n',
    )
    expect(forward('GET / HTTP/1.1\r\nHost: a\r\n\r\n', { ...plain, trusted: true })).toEndWith(ADDED)
    // Both forms say the same when only one was given.
    const https = 'GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-Proto: https\r\n\r\n'
    expect(forward(https, { ...plain, trusted: true })).toEndWith('for=192.0.2.7;host=a;proto=https\r\n\r\n')
    expect(forward(https, plain)).toEndWith('for=192.0.2.7;host=a;proto=http\r\n\r\n')
  })

  test('loses a nominated forwarding line before ours is added', () => {
    const sent =
      'GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 6.6.6.6\r\nConnection: X-Forwarded-For\r\n\r\n'
    for (const trusted of [false, true])
      expect(forward(sent, { ...plain, trusted })).toBe(`GET / HTTP/1.1\r\nHost: a\r\n${ADDED}`)
  })

  test('quotes addresses and hosts as RFC 7239 wants them', () => {
    const sent = 'GET / HTTP/1.1\r\nHost: [2001:db8::2]:8080\r\n\r\n'
    const forwarded = forward(sent, { ...plain, address: '2001:db8::1%eth0', proto: 'https' })
    expect(forwarded).toContain('X-Forwarded-For: 2001:db8::1\r\n')
    expect(forwarded).toContain('Forwarded: for="[2001:db8::1]";host="[2001:db8::2]:8080";proto=https\r\n')
    expect(forward('GET / HTTP/1.1\r\nHost: a\r\n\r\n', { ...plain, address: '::ffff:192.0.2.7' })).toEndWith(
      ADDED,
    )
  })

  test('gets another Host', () => {
    const sent = forward('GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n', {
      ...plain,
      hostHeader: 'localhost:3000',
    })
    expect(sent).toBe(`GET / HTTP/1.1\r\nHost: localhost:3000\r\nX: y\r\n${ADDED}`)
  })

  test('asks for a path where the visitor asked for a URL', () => {
    const line = (method: string, target: string): string =>
      forward(`${method} ${target} HTTP/1.1\r\nHost: a\r\n\r\n`).split('\r\n')[0]!
    expect(line('GET', 'http://a/x?y')).toBe('GET /x?y HTTP/1.1')
    expect(line('GET', 'HTTPS://A')).toBe('GET / HTTP/1.1')
    expect(line('GET', 'http://a?y=/')).toBe('GET /?y=/ HTTP/1.1')
    expect(line('OPTIONS', 'http://a')).toBe('OPTIONS * HTTP/1.1')
    expect(line('OPTIONS', '*')).toBe('OPTIONS * HTTP/1.1')
  })

  test('gets new lines when the connection asks for another host', () => {
    const head = new RequestHead()
    const into = new Uint8Array(4096)
    for (const host of ['a', 'b', 'b', 'a:1']) {
      const bytes = Buffer.from(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
      parseRequestHead(head, bytes, 0, bytes.length, limits)
      const text = latin1(into.subarray(0, forwardRequestHead(head, plain, into, 0)))
      expect(text).toContain(`X-Forwarded-Host: ${host}\r\n`)
    }
  })

  test('is the same from a head that arrived byte by byte', () => {
    const text =
      'GET http://a:1/x HTTP/1.1\r\nHost: a:1\r\nConnection: x, close\r\nX: 1\r\nKeep-Alive: 1\r\nY: 2\r\nForwarded: z\r\n\r\n'
    const bytes = Buffer.from(text)
    const head = new RequestHead()
    for (let cut = 1; cut <= bytes.length; cut++)
      parseRequestHead(
        head,
        Buffer.concat([Buffer.alloc(cut % 5), bytes.subarray(0, cut)]),
        cut % 5,
        (cut % 5) + cut,
        limits,
      )
    const into = new Uint8Array(4096)
    expect(latin1(into.subarray(0, forwardRequestHead(head, plain, into, 0)))).toBe(forward(text))
    const copy = head.clone()
    expect(latin1(into.subarray(0, forwardRequestHead(copy, plain, into, 0)))).toBe(forward(text))
  })

  test('never leaves cut for want of room', () => {
    const head = parse('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    expect(() => forwardRequestHead(head, plain, new Uint8Array(60), 0)).toThrow(RangeError)
    const host = 'h'.repeat(253)
    const into = new Uint8Array(maxForwardedBytes(16_384))
    const worst: Hop = {
      address: 'f'.repeat(39),
      proto: 'https',
      trusted: true,
      hostHeader: host,
    }
    const text = `GET / HTTP/1.1\r\nHost: ${host}\r\nForwarded: x\r\nX-Forwarded-For: ${'y,'.repeat(7500)}\r\n\r\n`
    expect(forwardRequestHead(parse(text), worst, into, 0)).toBeLessThan(maxForwardedBytes(text.length))
  })

  test('is a head that we would accept ourselves, with the same framing', () => {
    const random = new Random(7)
    const lines = [
      'A: b',
      'Connection: a',
      'Connection: keep-alive',
      'X-Forwarded-For: x',
      'Forwarded: y',
      'TE: trailers',
    ]
    for (let round = 0; round < 500; round++) {
      const some = Array.from({ length: random.below(12) }, () => random.pick(lines))
      const length = random.chance(0.5)
        ? [`Content-Length: ${random.below(1000)}`]
        : ['Transfer-Encoding: chunked']
      const text = `POST /x HTTP/1.1\r\n${[...some, 'Host: a', ...length, ...some].join('\r\n')}\r\n\r\n`
      const trusted = random.chance(0.5)
      const before = parse(text)
      const after = parse(forward(text, { ...plain, trusted }))
      expect([after.body, after.contentLength, after.host, after.target]).toEqual([
        before.body,
        before.contentLength,
        before.host,
        before.target,
      ])
    }
  })
})

describe('a forwarded answer', () => {
  test('keeps every byte of what is end to end, but for the version', () => {
    const lines =
      ' 299 Fine \xe9\r\nset-COOKIE: a\r\nSet-Cookie:  b \r\nTrailer: x\r\nTransfer-Encoding: chunked\r\n\r\n'
    expect(answer(`HTTP/1.1${lines}`)).toBe(`HTTP/1.1${lines}`)
    expect(answer('HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n')).toBe(
      'HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n',
    )
    expect(answer('HTTP/1.1 200\r\nA: b\r\n\r\n')).toBe('HTTP/1.1 200 \r\nA: b\r\n\r\n')
  })

  test('loses what belongs to one connection, and what Connection nominates', () => {
    expect(
      answer(
        'HTTP/1.1 200 OK\r\nConnection: close, x-y\r\nKeep-Alive: 1\r\nX-Y: 1\r\nA: b\r\nUpgrade: h2c\r\nProxy-Connection: x\r\n\r\n',
      ),
    ).toBe('HTTP/1.1 200 OK\r\nA: b\r\n\r\n')
  })

  test('says how the connection goes on where that is not plain', () => {
    const text = 'HTTP/1.1 200 OK\r\nA: b\r\n\r\n'
    expect(answer(text, { close: true, keepAlive10: false })).toBe(
      'HTTP/1.1 200 OK\r\nA: b\r\nConnection: close\r\n\r\n',
    )
    expect(answer(text, { close: false, keepAlive10: true })).toBe(
      'HTTP/1.1 200 OK\r\nA: b\r\nConnection: keep-alive\r\n\r\n',
    )
    expect(answer('HTTP/1.1 100 Continue\r\n\r\n', { close: true, keepAlive10: false })).toBe(
      'HTTP/1.1 100 Continue\r\n\r\n',
    )
  })

  test('keeps a switch of protocols, and the offer of a 426', () => {
    expect(answer('HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n')).toBe(
      'HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n',
    )
    expect(answer('HTTP/1.1 426 X\r\nUpgrade: websocket\r\nContent-Length: 0\r\n\r\n')).toBe(
      'HTTP/1.1 426 X\r\nUpgrade: websocket\r\nContent-Length: 0\r\nConnection: Upgrade\r\n\r\n',
    )
  })

  test('loses a length that it cannot have', () => {
    expect(answer('HTTP/1.1 204 X\r\nContent-Length: 5\r\n\r\n')).toBe('HTTP/1.1 204 X\r\n\r\n')
    expect(answer('HTTP/1.1 103 X\r\nTransfer-Encoding: chunked\r\n\r\n')).toBe('HTTP/1.1 103 X\r\n\r\n')
    expect(answer('HTTP/1.1 304 X\r\nContent-Length: 5\r\n\r\n')).toContain('Content-Length: 5')
  })
})
