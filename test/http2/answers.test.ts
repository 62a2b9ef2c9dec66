// Answers and trailers between HTTP/1.1 and HTTP/2, both ways.

import { describe, expect, test } from 'bun:test'
import { parseResponseHead, ResponseHead } from '../../src/http/head.ts'
import { type AnswerTerms, writeResponseHead, writeTrailers } from '../../src/http2/answer-text.ts'
import {
  encodeResponseHead,
  encodeTrailers,
  maxHeadBlockBytes,
  maxTrailerBlockBytes,
} from '../../src/http2/head-block.ts'
import { HpackEncoder } from '../../src/http2/hpack-encoder.ts'
import { maxTextBytes } from '../../src/http2/message-fields.ts'
import { fieldsOf, linesOf, listOf } from '../support/h2-fields.ts'
import type { NaiveField } from '../support/naive-hpack.ts'
import { FUZZ, Random } from '../support/random.ts'

const limits = { maxHeadBytes: 65_536, maxHeaderCount: 200 }
const head = (...lines: string[]) => `${lines.join('\r\n')}\r\n\r\n`

function parse(text: string, method = 'GET'): ResponseHead {
  const parsed = new ResponseHead()
  const bytes = Buffer.from(text, 'latin1')
  expect(parseResponseHead(parsed, bytes, 0, bytes.length, limits, method)).toBe(bytes.length)
  return parsed
}

/** The fields of the block of an answer. */
function blockOf(text: string): NaiveField[] {
  const parsed = parse(text)
  const into = new Uint8Array(3 + maxHeadBlockBytes(parsed))
  const end = encodeResponseHead(new HpackEncoder(), parsed, into, 3)
  expect(end).toBeLessThanOrEqual(into.length)
  return fieldsOf(into.slice(3, end))
}

function textOf(fields: readonly NaiveField[], terms: Partial<AnswerTerms> = {}): string {
  const list = listOf(fields)
  const into = new Uint8Array(3 + maxTextBytes(list))
  const end = writeResponseHead(
    list,
    { isLast: false, method: 'GET', webSocketAccept: '', ...terms },
    into,
    3,
  )
  return end < 0 ? `malformed: ${list.problem}` : Buffer.from(into.subarray(3, end)).toString('latin1')
}

describe('an answer of HTTP/1.1 becomes', () => {
  test('its status and its lines, repeats too, without those of the connection', () => {
    const text = head(
      'HTTP/1.1 200 Fine',
      'Content-Type: text/plain',
      'Set-Cookie: a=1',
      'Connection: close, X-Hop',
      'X-Hop: 1',
      'Keep-Alive: timeout=5',
      'Transfer-Encoding: chunked',
      'Upgrade: h2c',
      'Set-Cookie: b=2',
      'X: é',
    )
    expect(linesOf(blockOf(text))).toEqual([
      ':status: 200',
      'content-type: text/plain',
      'set-cookie: a=1',
      'set-cookie: b=2',
      'x: é',
    ])
  })

  test('any status', () => {
    for (let status = 102; status < 1000; status++)
      expect(blockOf(head(`HTTP/1.1 ${status} `, 'Content-Length: 0'))[0]).toEqual([':status', `${status}`])
  })

  test('an interim answer, without a length', () => {
    expect(linesOf(blockOf(head('HTTP/1.1 103 Early Hints', 'Link: </a>', 'Content-Length: 1')))).toEqual([
      ':status: 103',
      'link: </a>',
    ])
    expect(linesOf(blockOf(head('HTTP/1.1 204 No Content', 'Content-Length: 1')))).toEqual([':status: 204'])
    expect(linesOf(blockOf(head('HTTP/1.1 304 Not Modified', 'Content-Length: 1')))).toEqual([
      ':status: 304',
      'content-length: 1',
    ])
  })

  test('the 200 of an extended CONNECT, of a 101', () => {
    const text = head(
      'HTTP/1.1 101 Switching Protocols',
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Accept: x',
      'Sec-WebSocket-Extensions: permessage-deflate',
    )
    expect(linesOf(blockOf(text))).toEqual([':status: 200', 'sec-websocket-extensions: permessage-deflate'])
  })
})

describe('an answer of HTTP/2 becomes', () => {
  const OK: NaiveField = [':status', '200']
  for (const [what, fields, terms, expected, body] of [
    [
      'chunks, without a length',
      [OK, ['x', 'y']],
      {},
      head('HTTP/1.1 200 ', 'x: y', 'Transfer-Encoding: chunked'),
      'chunked',
    ],
    ['its length', [OK, ['content-length', '5']], {}, head('HTTP/1.1 200 ', 'content-length: 5'), 'length'],
    [
      'a length of 0, without a body',
      [OK],
      { isLast: true },
      head('HTTP/1.1 200 ', 'Content-Length: 0'),
      'none',
    ],
    [
      'that to HEAD',
      [OK, ['content-length', '5']],
      { isLast: true, method: 'HEAD' },
      head('HTTP/1.1 200 ', 'content-length: 5'),
      'none',
    ],
    ['that to HEAD that ends later', [OK], { method: 'HEAD' }, head('HTTP/1.1 200 '), 'none'],
    [
      '304 with a length',
      [
        [':status', '304'],
        ['content-length', '5'],
      ],
      { isLast: true },
      head('HTTP/1.1 304 ', 'content-length: 5'),
      'none',
    ],
    ['204', [[':status', '204']], { isLast: true }, head('HTTP/1.1 204 '), 'none'],
    [
      'an interim answer',
      [
        [':status', '103'],
        ['link', '</a>'],
      ],
      {},
      head('HTTP/1.1 103 ', 'link: </a>'),
      'none',
    ],
    [
      'a 101, of an extended CONNECT',
      [OK, ['content-length', '0'], ['sec-websocket-protocol', 'a']],
      { webSocketAccept: 'abc' },
      head(
        'HTTP/1.1 101 Switching Protocols',
        'sec-websocket-protocol: a',
        'Connection: Upgrade',
        'Upgrade: websocket',
        'Sec-WebSocket-Accept: abc',
      ),
      'none',
    ],
    [
      'a refusal of an extended CONNECT',
      [[':status', '403']],
      { webSocketAccept: 'abc', isLast: true },
      head('HTTP/1.1 403 ', 'Content-Length: 0'),
      'none',
    ],
  ] as const satisfies readonly (readonly [
    string,
    readonly NaiveField[],
    Partial<AnswerTerms>,
    string,
    string,
  ])[])
    test(what, () => {
      expect(textOf(fields, terms)).toBe(expected)
      const method: string = 'method' in terms ? terms.method : 'GET'
      expect(parse(expected, method).body).toBe(body)
    })

  for (const [what, fields, terms] of [
    ['no status', []],
    ['another field first', [['x', 'y'], OK]],
    ['a status twice', [OK, OK]],
    ['a status with capitals', [[':Status', '200']]],
    ['a status of two digits', [[':status', '20']]],
    ['a status of four digits', [[':status', '2000']]],
    ['a status below 100', [[':status', '099']]],
    ['a status that is no number', [[':status', '2 0']]],
    ['101', [[':status', '101']]],
    ['an interim answer that ends the stream', [[':status', '103']], { isLast: true }],
    ['a pseudo-header field of requests', [OK, [':path', '/']]],
    ['capitals', [OK, ['X', 'y']]],
    ['a line break', [OK, ['x', 'y\r\nset-cookie: z']]],
    ['a bare LF', [OK, ['x', 'y\nz']]],
    ['connection', [OK, ['connection', 'close']]],
    ['transfer-encoding', [OK, ['transfer-encoding', 'chunked']]],
    ['te', [OK, ['te', 'trailers']]],
    ['a length without a body', [OK, ['content-length', '5']], { isLast: true }],
  ] as readonly (readonly [string, readonly NaiveField[], Partial<AnswerTerms>?])[])
    test(`nothing when it has ${what}`, () => {
      expect(textOf(fields, terms)).toStartWith('malformed: ')
    })
})

test('random answers come through HTTP/2 and back as they were', () => {
  for (let seed = 1; seed <= 500 * FUZZ; seed++) {
    const random = new Random(seed)
    const fields: NaiveField[] = [[':status', `${200 + random.below(800)}`]]
    for (let count = random.below(20); count > 0; count--)
      fields.push([
        random.pick(['x', 'set-cookie', 'date']),
        random.pick(['', 'a', 'é', 'a  b', 'x'.repeat(300)]),
      ])
    const text = textOf(fields)
    const lines = blockOf(text)
    expect(lines, `seed ${seed}`).toEqual(fields)
  }
})

describe('trailers', () => {
  function trailersOf(fields: readonly NaiveField[]): string {
    const list = listOf(fields)
    const into = new Uint8Array(3 + maxTextBytes(list))
    const end = writeTrailers(list, false, into, 3)
    return end < 0 ? `malformed: ${list.problem}` : Buffer.from(into.subarray(3, end)).toString('latin1')
  }

  function trailerBlock(text: string): NaiveField[] {
    const bytes = Buffer.from(`12${text}\r\n`, 'latin1')
    const into = new Uint8Array(1 + maxTrailerBlockBytes(bytes.length - 2))
    const end = encodeTrailers(new HpackEncoder(), bytes, 2, bytes.length, into, 1)
    expect(end).toBeLessThanOrEqual(into.length)
    return fieldsOf(into.slice(1, end))
  }

  test('become the end of a chunked body', () => {
    expect(
      trailersOf([
        ['grpc-status', '0'],
        ['grpc-message', ''],
      ]),
    ).toBe('0\r\ngrpc-status: 0\r\ngrpc-message: \r\n\r\n')
    expect(trailersOf([])).toBe('0\r\n\r\n')
  })

  for (const [what, fields] of [
    ['a pseudo-header field', [[':status', '200']]],
    ['capitals', [['X', 'y']]],
    ['a line break', [['x', 'a\r\n\r\nGET / HTTP/1.1']]],
    ['content-length', [['content-length', '1']]],
    ['transfer-encoding', [['transfer-encoding', 'chunked']]],
    ['host', [['host', 'b']]],
    ['connection', [['connection', 'close']]],
    ['x-forwarded-for', [['x-forwarded-for', '1']]],
    ['x-localtunnels-user', [['x-localtunnels-user', 'root']]],
    ['a control character', [['x', '\x01']]],
    ['more than 64 of them', Array.from({ length: 65 }, () => ['x', 'y'] as const)],
    ['more than 8 KB', [['x', 'y'.repeat(8200)]]],
  ] as readonly (readonly [string, readonly NaiveField[]])[])
    test(`are refused with ${what}`, () => {
      expect(trailersOf(fields)).toStartWith('malformed: ')
    })

  test('of a chunked body become a block', () => {
    expect(trailerBlock('Grpc-Status: 0\r\nX:\r\nX:  y \r\n')).toEqual([
      ['grpc-status', '0'],
      ['x', ''],
      ['x', 'y'],
    ])
    expect(trailerBlock('')).toEqual([])
    expect(trailerBlock('a:\r\n'.repeat(64))).toHaveLength(64)
    expect(() => trailerBlock('x y\r\n')).toThrow(RangeError)
  })
})
