// Every answer vector, whole, in two pieces cut everywhere, and byte by byte; by the strict reader and by the tolerant one.

import { expect, test } from 'bun:test'
import { BodyFramer } from '../../src/http/body.ts'
import { parseResponseHead, ResponseHead } from '../../src/http/head.ts'
import { workedMs } from '../support/within.ts'
import { ANSWERS, type AnswerVector } from '../vectors/answers.ts'

const limits = { maxHeadBytes: 600, maxHeaderCount: 8 }

function read(
  input: Uint8Array,
  cuts: readonly number[],
  method: string,
  isTolerant: boolean,
  found?: (fault: string) => void,
): AnswerVector['verdict'] | 'INCOMPLETE' {
  const head = new ResponseHead(isTolerant)
  let payload = ''
  const framer = new BodyFramer((bytes, start, end) => {
    payload += Buffer.from(bytes.subarray(start, end)).toString('latin1')
  })
  framer.isTolerant = isTolerant
  let headEnd = 0
  let at = 0
  for (const cut of cuts) {
    if (headEnd === 0) {
      const moved = cut % 7
      const bytes = new Uint8Array(moved + cut)
      bytes.set(input.subarray(0, cut), moved)
      const end = parseResponseHead(head, bytes, moved, bytes.length, limits, method)
      if (end < 0) {
        found?.(head.fault)
        return head.refusal === 'ORIGIN_INVALID' ? head.refusal : 'INCOMPLETE'
      }
      if (end === 0) continue
      headEnd = at = end - moved
      framer.begin(head.body, head.contentLength)
    }
    if (!framer.complete) at = framer.feed(input.slice(0, cut), at, cut)
    if (at < 0) {
      found?.(framer.fault)
      return 'BODY'
    }
  }
  if (headEnd === 0 || !framer.ended()) return 'INCOMPLETE'
  return { kind: head.body, body: payload, rest: Buffer.from(input.subarray(at)).toString('latin1') }
}

for (const { name, input, method = 'GET', verdict, loosely = verdict, fault, why } of ANSWERS)
  for (const isTolerant of [false, true])
    test(`${name}${isTolerant ? ', tolerantly' : ''}: ${why}`, () => {
      const bytes = Buffer.from(input, 'latin1')
      let why: string | undefined
      const whole = read(bytes, [bytes.length], method, isTolerant, found => {
        why = found
      })
      const expected = isTolerant ? loosely : verdict
      if (typeof expected === 'string') expect(whole).toBe(expected)
      else expect(whole).toEqual({ body: '', rest: '', ...expected })
      if (isTolerant && fault !== undefined) expect(why).toBe(fault)
      if (isTolerant && typeof expected === 'string') expect(why).not.toBe('')
      for (let cut = 1; cut < bytes.length; cut++)
        expect(read(bytes, [cut, bytes.length], method, isTolerant)).toEqual(whole)
      const each = Array.from(bytes, (_, index) => index + 1)
      expect(read(bytes, each, method, isTolerant)).toEqual(whole)
    })

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

const amended = (text: string): { head: ResponseHead; text: string } => {
  const head = new ResponseHead(true)
  const bytes = Buffer.from(text, 'latin1')
  expect(parseResponseHead(head, bytes, 0, bytes.length, limits, 'GET')).toBe(bytes.length)
  return { head, text: Buffer.from(head.bytes.subarray(head.start, head.end)).toString('latin1') }
}

test('a tolerant reader makes strict text of what an app means', () => {
  const { head, text } = amended(
    'HTTP/1.7 200 Fine\nServer \t: ESP32\nX-Long: a\r\n\tb \n  c\nContent-Length:\t5, 5\r\ncontent-length : 5\n\r\n',
  )
  expect(text).toBe('HTTP/1.1 200 Fine\r\nServer: ESP32\r\nX-Long: a b c\r\nContent-Length: 5\r\n\r\n')
  expect([head.isAmended, head.keepAlive, head.minorVersion]).toEqual([true, true, 1])
})

test('a tolerant reader leaves strict text where it is', () => {
  const text = 'HTTP/1.1 200 OK\r\nX:  y \r\nContent-Length: 5\r\n\r\n'
  expect(amended(text)).toMatchObject({ text, head: { isAmended: false } })
})

test('a tolerant reader leaves out what frames nothing and may be taken for framing', () => {
  const { head, text } = amended(
    'HTTP/2.0  200 OK\r\nHost: a\r\nConnection: X, Content-Length\r\nHost: b\r\nContent_Length: 7\r\nContent-Length: 5\r\n\r\n',
  )
  expect(text).toBe('HTTP/1.1 200 OK\r\nHost: a\r\nConnection: X\r\nContent-Length: 5\r\n\r\n')
  expect([head.isAmended, head.keepAlive, head.contentLength]).toEqual([true, true, 5])
})

test('a coding wins over a length, which is removed, and the connection is not used again', () => {
  const { head, text } = amended('HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n')
  expect(text).toBe('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
  expect([head.body, head.keepAlive]).toEqual(['chunked', false])
})

test('chunks by HTTP/1.0 are those of HTTP/1.1, and the connection is not used again', () => {
  const { head, text } = amended(
    'HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n',
  )
  expect(text).toBe('HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n')
  expect([head.body, head.keepAlive, head.minorVersion]).toEqual(['chunked', false, 1])
})

test('one head after the other, strict and not, leaves nothing to the next', () => {
  const head = new ResponseHead(true)
  const read = (text: string): number => {
    const bytes = Buffer.from(text, 'latin1')
    return parseResponseHead(head, bytes, 0, bytes.length, limits, 'GET')
  }
  expect(read('HTTP/1.1 100 Continue\n\nHTTP')).toBe(23)
  expect([head.status, head.isAmended]).toEqual([100, true])
  expect(read('HTTP/1.1 204 No Content\r\n\r\n')).toBe(27)
  expect([head.status, head.isAmended]).toEqual([204, false])
  expect(read('HTTP/1.1 200 OK\nX')).toBe(0)
  head.reset()
  expect(read('HTTP/1.1 404 Not Found\r\nY: z\r\n\r\n')).toBe(32)
  expect([head.status, head.headerList()]).toEqual([404, [['Y', 'z']]])
})

test('a loose head that arrives byte by byte is not read again and again', () => {
  const own = { maxHeadBytes: 65_536, maxHeaderCount: 200 }
  const bytes = Buffer.from(`HTTP/1.1 200 OK\n${`X: ${'y'.repeat(600)}\n`.repeat(100)}\n`)
  const head = new ResponseHead(true)
  const since = workedMs()
  for (let end = 1; end < bytes.length; end++)
    expect(parseResponseHead(head, bytes, 0, end, own, 'GET')).toBe(0)
  expect(parseResponseHead(head, bytes, 0, bytes.length, own, 'GET')).toBe(bytes.length)
  // Each byte twice takes tens of milliseconds, all of them each time a minute.
  expect(workedMs() - since).toBeLessThan(5_000)
})

test('a tolerant framer makes strict chunks of what an app means, wherever a body is cut', () => {
  const chunks =
    '5  \r\nhello\r\n3 ; a = "b c" \n\r\n!\n0;\xe9;\t\r\nX :y\nContent-Length: 9\r\nX-Localtunnels-User: a\r\nLong:\r\n z\r\n\n'
  const clean = '5\r\nhello\r\n3\r\n\r\n!\r\n0\r\nX: y\r\nLong:  z\r\n\r\n'
  for (let size = 1; size <= chunks.length; size++) {
    let [payload, trailers, passed] = ['', '', '']
    const framer = new BodyFramer(
      (bytes, start, end) => {
        payload += Buffer.from(bytes.subarray(start, end)).toString()
      },
      (bytes, start, end) => {
        trailers += Buffer.from(bytes.subarray(start, end)).toString()
      },
    )
    framer.isTolerant = true
    framer.begin('chunked', 0)
    for (let at = 0; at < chunks.length; at += size) {
      const bytes = Buffer.from(chunks.slice(at, at + size))
      expect(framer.feed(bytes, 0, bytes.length)).toBe(bytes.length)
      passed += Buffer.from(framer.cleaned ?? bytes).toString()
    }
    expect([framer.complete, payload, passed]).toEqual([true, 'hello\r\n!', clean])
    expect(clean).toEndWith(`0\r\n${trailers}`)
  }
})

test('a head of blanks, folds or lengths takes no time', () => {
  const own = { maxHeadBytes: 1_048_576, maxHeaderCount: 100_000 }
  for (const lines of [
    `X: a${' '.repeat(500_000)}b\n`,
    `X: a\n${' \n'.repeat(250_000)}`,
    `Content-Length: ${'5,'.repeat(250_000)}5\n`,
    'Content-Length: 5\n'.repeat(25_000),
    'Host: a\nX: y\n'.repeat(25_000),
  ]) {
    const bytes = Buffer.from(`HTTP/1.1 200 OK\n${lines}\n`)
    const since = workedMs()
    expect(parseResponseHead(new ResponseHead(true), bytes, 0, bytes.length, own, 'GET')).not.toBe(0)
    expect(workedMs() - since).toBeLessThan(1_000)
  }
})
