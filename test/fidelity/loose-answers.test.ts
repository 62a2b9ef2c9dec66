// Answers that are not strict HTTP/1.1 and mean one thing only: visitors get that, strictly. All else is refused with its reason.

import { describe, expect, test } from 'bun:test'
import type { TunnelClientOptions } from '../../src/client/options.ts'
import { next } from '../support/events.ts'
import { get, headerOf, ok, type RawTunnel, rawTunnel, readAnswer, statusOf } from '../support/exchange.ts'
import { get as get2, H2Peer, head as head2 } from '../support/h2-peer.ts'
import { startHttp2Site } from '../support/http2-site.ts'
import { InspectorApi } from '../support/inspector.ts'
import { RawOrigin } from '../support/raw.ts'

const chunked = (chunks: string, lines = '') =>
  `HTTP/1.1 200 OK\r\n${lines}Transfer-Encoding: chunked\r\n\r\n${chunks}`

/** What apps are known to send; all of it means `hello`. */
const LOOSE = {
  'blanks behind a chunk size': chunked('3  \r\nhel\r\n2 \r\nlo\r\n0  \r\n\r\n'),
  'the same length twice': ok('hello', 'Content-Length: 5\r\n'),
  'the same length in a list': 'HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello',
  'LF alone': 'HTTP/1.1 200 OK\nServer: httpd\nContent-Length: 5\n\nhello',
  'a length beside chunks': chunked('5\r\nhello\r\n0\r\n\r\n', 'Content-Length: 99\r\n'),
  'HTTP/1.2': ok('hello').replace('1.1', '1.2'),
  'a blank in front of the colon': ok('hello').replace(':', ' :'),
  'a folded line': ok('hello', 'X-Folded: a\r\n\tb\r\n'),
  'an empty chunk extension': chunked('5;\r\nhello\r\n0\r\n\r\n'),
  'a long chunk extension': chunked(`5;a=${'b'.repeat(4_000)}\r\nhello\r\n0\r\n\r\n`),
  'a chunk extension beyond ASCII': chunked('5;a=\xc3\xa9\r\nhello\r\n0\r\n\r\n'),
  'LF alone between chunks': chunked('5\nhello\n0\n\n'),
  'a length as a trailer': chunked('5\r\nhello\r\n0\r\nContent-Length: 5\r\n\r\n'),
  'a trailer whose name is none': chunked('5\r\nhello\r\n0\r\nX Y: 1\r\n folded\r\n\r\n'),
  'HTTP/2.0': ok('hello').replace('1.1', '2.0'),
  'two blanks in front of the status': ok('hello').replace(' ', '  '),
  'Host twice': ok('hello', 'Host: a\r\nHost: b\r\n'),
  'Connection that names the length': ok('hello', 'Connection: Content-Length\r\n'),
  'Content_Length beside the length': ok('hello', 'Content_Length: 7\r\n'),
  'a control character in a value': ok('hello', 'X-Colour: \x1b[1mred\x7f\r\n'),
  'an empty element beside chunked': chunked('5\r\nhello\r\n0\r\n\r\n').replace('chunked', ', chunked ,'),
  'a control character in the reason': ok('hello').replace('OK', 'O\bK'),
  'chunks by HTTP/1.0': chunked('5\r\nhello\r\n0\r\n\r\n').replace('1.1', '1.0'),
}

async function answered(raw: RawTunnel, bytes: string, method = 'GET', cuts = false) {
  const visitor = await raw.visit(get(raw.host).replace('GET', method))
  const app = await raw.origin.accept()
  await app.until('\r\n\r\n')
  if (cuts)
    for (const byte of bytes) {
      await app.send(byte)
      await new Promise(resolve => setImmediate(resolve))
    }
  else await app.send(bytes)
  return { ...(await readAnswer(visitor, method)), visitor, app }
}

for (const [wire, client] of [
  ['streams', {}],
  ['json', { wire: 'json' }],
] satisfies [string, TunnelClientOptions][])
  describe(`over ${wire}`, () => {
    for (const [name, bytes] of Object.entries(LOOSE))
      test.concurrent(`${name}: the visitor gets one clean framing`, async () => {
        await using raw = await rawTunnel({ client })
        const { head, payload, body } = await answered(raw, bytes)
        expect(statusOf(head)).toBe(200)
        expect(head).toMatch(/^HTTP\/1\.1 200 [^\n]*\r\n(?:[^\s:]+: [^\r\n]*\r\n)+\r\n$/)
        expect(head.match(/^(?:content.length|transfer.encoding):/gim)).toHaveLength(1)
        expect(payload).toBe('hello')
        expect(body).not.toMatch(/[ \t]\r\n|[^\r]\n|[;:]/)
        if (name === 'a folded line') expect(headerOf(head, 'x-folded')).toBe('a b')
      })
  })

test.concurrent('they may come byte by byte', async () => {
  for (const bytes of Object.values(LOOSE)) {
    await using raw = await rawTunnel()
    expect((await answered(raw, bytes, 'GET', true)).payload).toBe('hello')
  }
})

test.concurrent('visitors by HTTP/2 get them, too', async () => {
  for (const [name, bytes] of Object.entries(LOOSE)) {
    using origin = new RawOrigin()
    await using site = await startHttp2Site(origin.port)
    await using peer = await H2Peer.connect(site.port)
    peer.send(head2(1, get2(site.host, '/')))
    const app = await origin.accept()
    await app.until('\r\n\r\n')
    await app.send(bytes)
    const answer = await peer.answered(1)
    expect([name, answer.field(1, ':status'), answer.body(1).toString()]).toEqual([name, '200', 'hello'])
  }
})

test.concurrent('HEAD, 204 and 304 have no body, whatever they say of its length', async () => {
  const doubled = 'Content-Length: 5\nContent-Length : 5\nTransfer-Encoding: chunked\n\n'
  for (const [method, status] of [
    ['HEAD', '200 OK'],
    ['GET', '204 No Content'],
    ['GET', '304 Not Modified'],
  ] as const) {
    await using raw = await rawTunnel()
    const { head, visitor } = await answered(raw, `HTTP/1.1 ${status}\n${doubled}`, method)
    expect(head).toStartWith(`HTTP/1.1 ${status}\r\n`)
    await visitor.send(get(raw.host))
    const app = await raw.origin.accept()
    await app.until('\r\n\r\n')
    await app.send(ok('next'))
    expect((await readAnswer(visitor)).body).toBe('next')
  }
})

for (const status of [600, 999])
  test.concurrent(`the status ${status} passes on both wires, by HTTP/1.1 and by HTTP/2`, async () => {
    const odd = ok('hello').replace('200', `${status}`)
    for (const client of [{}, { wire: 'json' }] satisfies TunnelClientOptions[]) {
      await using raw = await rawTunnel({ client })
      const { head, payload } = await answered(raw, odd)
      expect([statusOf(head), payload]).toEqual([status, 'hello'])
    }
    using origin = new RawOrigin()
    await using site = await startHttp2Site(origin.port)
    await using peer = await H2Peer.connect(site.port)
    peer.send(head2(1, get2(site.host, '/')))
    const app = await origin.accept()
    await app.until('\r\n\r\n')
    await app.send(odd)
    const answer = await peer.answered(1)
    expect([answer.field(1, ':status'), answer.body(1).toString()]).toEqual([`${status}`, 'hello'])
  })

test.concurrent('a stream whose framing was told in two ways is not used again', async () => {
  await using raw = await rawTunnel()
  const { visitor, app } = await answered(raw, LOOSE['a length beside chunks'])
  await app.end()
  await visitor.send(get(raw.host))
  await (await raw.origin.accept()).until('\r\n\r\n')
})

test.concurrent('interim answers and trailers pass, and a switch', async () => {
  await using raw = await rawTunnel()
  const visitor = await raw.visit(get(raw.host))
  const app = await raw.origin.accept()
  await app.until('\r\n\r\n')
  await app.send('HTTP/1.1 103 Early Hints\nLink : </a>\n\n')
  expect(await visitor.until('\r\n\r\n')).toBe('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n')
  await app.send(chunked('5 \r\nhello\r\n0 \r\nX-Sum: 1\r\n\r\n').replaceAll('OK\r\n', 'OK\n'))
  expect((await readAnswer(visitor)).body).toBe('5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n')
  await visitor.send(get(raw.host, '/', 'Connection: Upgrade\r\nUpgrade: websocket\r\n'))
  await app.until('\r\n\r\n')
  await app.send('HTTP/1.1 101 Switching Protocols\nConnection: Upgrade\nUpgrade: websocket\n\n\x81\n')
  expect(await visitor.until('\r\n\r\n')).toStartWith('HTTP/1.1 101 Switching Protocols\r\n')
  expect(await visitor.exactly(2)).toBe('\x81\n')
})

test.concurrent('chunks with blanks reach a visitor by HTTP/1.0 as plain bytes', async () => {
  await using raw = await rawTunnel()
  const visitor = await raw.visit(get(raw.host).replace('HTTP/1.1', 'HTTP/1.0'))
  const app = await raw.origin.accept()
  await app.until('\r\n\r\n')
  await app.send(LOOSE['blanks behind a chunk size'])
  expect((await visitor.end()).split('\r\n\r\n')[1]).toBe('hello')
})

test.concurrent('requests with any of it are refused', async () => {
  const lines = [
    'GET / HTTP/1.1\nHost: HOST\n\n',
    'GET / HTTP/1.2\r\nHost: HOST\r\n\r\n',
    'GET / HTTP/1.1\r\nHost: HOST\r\nX : y\r\n\r\n',
    'GET / HTTP/1.1\r\nHost: HOST\r\nX: y\r\n z\r\n\r\n',
    'POST / HTTP/1.1\r\nHost: HOST\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello',
    'POST / HTTP/1.1\r\nHost: HOST\r\nContent-Length: 5, 5\r\n\r\nhello',
    'POST / HTTP/1.1\r\nHost: HOST\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    'POST / HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n0\r\n\r\n',
  ]
  for (const text of lines) {
    await using raw = await rawTunnel()
    const visitor = await raw.visit(text.replace('HOST', raw.host))
    expect([400, 505]).toContain(statusOf((await readAnswer(visitor)).head))
  }
})

/** What no reader may guess at, and what is said of it. */
const REFUSED = [
  ['ICY 200 OK\r\n\r\n', 'its first line is not HTTP/1.1 and a status of three digits'],
  ['HTTP/1.1 200 OK\r\nServer: x\r\nnonsense\r\n\r\n', 'line 3 of its head has no colon'],
  ['HTTP/1.1 200 OK\r\nX: \0\r\n\r\n', 'line 2 of its head has the control character 0x00'],
  ['HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\n', 'line 2 of its head has a CR without LF'],
  [ok('hello', 'Content-Length: 6\r\n'), 'it has two lengths: 5 and 6'],
  [chunked('0\r\n\r\n', 'Transfer-Encoding: chunked\r\n'), 'it has Transfer-Encoding twice'],
  [chunked('g\r\n'), 'a chunk of its body has no size in hexadecimal digits'],
  [chunked('5\rhello'), 'the line with the size of a chunk is malformed'],
  [chunked('0\r\nnonsense\r\n\r\n'), 'line 1 of its trailers has no colon'],
  [chunked(`${'0'.repeat(17)}\r\n`), 'the size of a chunk has more than 16 digits'],
  [chunked(`5;a=${'b'.repeat(5_000)}\r\n`), 'the size of a chunk has more than 4096 bytes behind it'],
] as const

for (const [wire, client] of [
  ['streams', {}],
  ['json', { wire: 'json' }],
] satisfies [string, TunnelClientOptions][])
  test.concurrent(`over ${wire} the owner learns what is wrong, and the visitor does not`, async () => {
    for (const [bytes, reason] of REFUSED) {
      await using raw = await rawTunnel({ client })
      raw.tunnel.client.on('error', () => {})
      const response = next(raw.tunnel.client, 'response')
      const { head, body } = await answered(raw, bytes)
      expect(headerOf(head, 'x-localtunnels-error')).toBe('ORIGIN_INVALID')
      expect(body).not.toContain(reason)
      expect(await response).toMatchObject({ status: 502, error: 'ORIGIN_INVALID', reason })
    }
  })

test.concurrent('the operator learns it, with the limit that can be raised', async () => {
  const limits = { maxHeadBytes: 2_000, maxHeaderCount: 20 }
  await using raw = await rawTunnel({ server: { limits } })
  for (const [lines, reason] of [
    [`X: ${'y'.repeat(2_000)}\r\n`, 'its head is longer than 2000 bytes (max-head)'],
    ['X: y\r\n'.repeat(20), 'its head has more than 20 lines (max-header-count)'],
  ] as const) {
    const request = next(raw.tunnel.server, 'request')
    expect(statusOf((await answered(raw, ok('', lines))).head)).toBe(502)
    expect(await request).toMatchObject({ error: 'ORIGIN_INVALID', reason })
  }
})

test.concurrent('the inspector shows what it means, or what is wrong with it', async () => {
  await using raw = await rawTunnel({ client: { inspect: { port: 0 } } })
  const api = new InspectorApi(raw.tunnel.client)
  for (const [bytes, reason] of [...REFUSED, [LOOSE['LF alone'], undefined]] as const) {
    const response = next(raw.tunnel.client, 'response')
    await answered(raw, bytes)
    await response
    const [row] = await api.rows('?limit=1')
    const { json } = await api.ask(`exchanges/${row?.id}`)
    if (reason === undefined) expect([json.state, json.response.body.totalBytes]).toEqual(['done', 5])
    else {
      expect([json.state, json.code]).toEqual(['failed', 'ORIGIN_INVALID'])
      expect(json.explanation).toContain(`HTTP/1.1: ${reason}. The log`)
    }
  }
})
