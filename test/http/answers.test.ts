// Every answer vector, whole, in two pieces cut everywhere, and byte by byte.

import { expect, test } from 'bun:test'
import { BodyFramer } from '../../src/http/body.ts'
import { parseResponseHead, ResponseHead } from '../../src/http/head.ts'
import { ANSWERS, type AnswerVector } from '../vectors/answers.ts'

const limits = { maxHeadBytes: 600, maxHeaderCount: 8 }

function read(
  input: Uint8Array,
  cuts: readonly number[],
  method: string,
): AnswerVector['verdict'] | 'INCOMPLETE' {
  const head = new ResponseHead()
  let payload = ''
  const framer = new BodyFramer((bytes, start, end) => {
    payload += Buffer.from(bytes.subarray(start, end)).toString('latin1')
  })
  let headEnd = 0
  let at = 0
  for (const cut of cuts) {
    if (headEnd === 0) {
      const moved = cut % 7
      const bytes = new Uint8Array(moved + cut)
      bytes.set(input.subarray(0, cut), moved)
      const end = parseResponseHead(head, bytes, moved, bytes.length, limits, method)
      if (end < 0) return head.refusal === 'ORIGIN_INVALID' ? head.refusal : 'INCOMPLETE'
      if (end === 0) continue
      headEnd = at = end - moved
      framer.begin(head.body, head.contentLength)
    }
    if (!framer.complete) at = framer.feed(input.slice(0, cut), at, cut)
    if (at < 0) return 'BODY'
  }
  if (headEnd === 0 || !framer.ended()) return 'INCOMPLETE'
  return { kind: head.body, body: payload, rest: Buffer.from(input.subarray(at)).toString('latin1') }
}

for (const { name, input, method = 'GET', verdict, why } of ANSWERS) {
  test(`${name}: ${why}`, () => {
    const bytes = Buffer.from(input, 'latin1')
    const whole = read(bytes, [bytes.length], method)
    if (typeof verdict === 'string') expect(whole).toBe(verdict)
    else expect(whole).toEqual({ body: '', rest: '', ...verdict })
    for (let cut = 1; cut < bytes.length; cut++)
      expect(read(bytes, [cut, bytes.length], method)).toEqual(whole)
    expect(
      read(
        bytes,
        Array.from(bytes, (_, index) => index + 1),
        method,
      ),
    ).toEqual(whole)
  })
}

const parse = (text: string): ResponseHead => {
  const head = new ResponseHead()
  const bytes = Buffer.from(text, 'latin1')
  expect(
    parseResponseHead(head, bytes, 0, bytes.length, { maxHeadBytes: 65_536, maxHeaderCount: 200 }, 'GET'),
  ).toBe(bytes.length)
  return head
}

test('an answer says what its status line says', () => {
  const head = parse('HTTP/1.0 418 I am a teapot\r\nX-A: 1\r\nx-a: 2\r\n\r\n')
  expect([head.status, head.reason, head.minorVersion, head.headerCount]).toEqual([
    418,
    'I am a teapot',
    0,
    2,
  ])
  expect(head.header('x-a')).toBe('1')
  expect(head.headerList()).toEqual([
    ['X-A', '1'],
    ['x-a', '2'],
  ])
})

test('the connection of an origin goes on by version, Connection and framing', () => {
  const alive = (head: string): boolean => parse(`${head}\r\n\r\n`).keepAlive
  expect(alive('HTTP/1.1 200 OK\r\nContent-Length: 0')).toBeTrue()
  expect(alive('HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close')).toBeFalse()
  expect(alive('HTTP/1.0 200 OK\r\nContent-Length: 0')).toBeFalse()
  expect(alive('HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive')).toBeTrue()
  expect(alive('HTTP/1.1 200 OK\r\nConnection: keep-alive')).toBeFalse()
})

test('a 101 says what it switches to', () => {
  const head = parse('HTTP/1.1 101 X\r\nConnection: upgrade\r\nUpgrade: WebSocket\r\n\r\n')
  expect(head.upgrade).toBe('websocket')
})
